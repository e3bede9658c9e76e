#include "grammar/code_points.h"

#include <algorithm>

namespace cadans::grammar {
namespace {

void add_bytes(Nfa& nfa, Nfa::State from, std::string_view lo, std::string_view hi, Nfa::State to) {
    for (size_t i = 0; i < lo.size(); i++) {
        const Nfa::State next = i + 1 == lo.size() ? to : nfa.add();
        nfa.bytes(from, static_cast<uint8_t>(lo[i]), static_cast<uint8_t>(hi[i]), next);
        from = next;
    }
}

/// Splits until every byte's range is independent of the others: after that byte, all tails may come.
void add_split(Nfa& nfa, Nfa::State from, uint32_t lo, uint32_t hi, Nfa::State to) {
    for (const uint32_t last : {0x7FU, 0x7FFU, 0xFFFFU})
        if (lo <= last && last < hi) {
            add_split(nfa, from, lo, last, to);
            return add_split(nfa, from, last + 1, hi, to);
        }
    for (int tail_bits = 6; tail_bits < 24 && lo > 0x7F; tail_bits += 6) {
        const uint32_t mask = (1U << tail_bits) - 1;
        if ((lo & ~mask) == (hi & ~mask)) break;
        if ((lo & mask) != 0) {
            add_split(nfa, from, lo, lo | mask, to);
            return add_split(nfa, from, (lo | mask) + 1, hi, to);
        }
        if ((hi & mask) != mask) {
            add_split(nfa, from, lo, (hi & ~mask) - 1, to);
            return add_split(nfa, from, hi & ~mask, hi, to);
        }
    }
    add_bytes(nfa, from, utf8(lo), utf8(hi), to);
}

}  // namespace

void CodePointSet::tidy() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const CodePointRange& a, const CodePointRange& b) { return a.lo < b.lo; });
    size_t kept = 0;
    for (const CodePointRange range : ranges_) {
        if (kept > 0 && range.lo <= ranges_[kept - 1].hi + 1)
            ranges_[kept - 1].hi = std::max(ranges_[kept - 1].hi, range.hi);
        else
            ranges_[kept++] = range;
    }
    ranges_.resize(kept);
}

CodePointSet CodePointSet::complement() const {
    CodePointSet out;
    uint32_t next = 0;
    for (const CodePointRange& range : ranges_) {
        if (range.lo > next) out.ranges_.push_back({next, range.lo - 1});
        next = range.hi + 1;
    }
    if (next <= kCodePointMax) out.ranges_.push_back({next, kCodePointMax});
    return out;
}

bool CodePointSet::meets(const CodePointSet& other) const {
    auto mine = ranges_.begin(), theirs = other.ranges_.begin();
    while (mine != ranges_.end() && theirs != other.ranges_.end()) {
        if (mine->hi < theirs->lo)
            ++mine;
        else if (theirs->hi < mine->lo)
            ++theirs;
        else
            return true;
    }
    return false;
}

void add_utf8(Nfa& nfa, Nfa::State from, CodePointRange range, Nfa::State to) {
    if (range.lo < 0xD800 && range.hi >= 0xD800) {
        add_utf8(nfa, from, {range.lo, 0xD7FF}, to);
        range.lo = 0xD800;
    }
    if (range.lo >= 0xD800 && range.lo <= 0xDFFF) range.lo = 0xE000;
    if (range.lo <= range.hi) add_split(nfa, from, range.lo, range.hi, to);
}

std::string utf8(uint32_t c) {
    const auto byte = [](uint32_t value) { return static_cast<char>(static_cast<uint8_t>(value)); };
    if (c < 0x80) return {byte(c)};
    if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
    if (c >= 0xD800 && c <= 0xDFFF) return {};
    if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
    if (c > kCodePointMax) return {};
    return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
}

int64_t take_character(std::string_view& text) {
    const auto first = static_cast<uint8_t>(text[0]);
    const size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    uint32_t value = size == 1 ? first : first & (0xFFU >> (size + 1));
    for (size_t i = 1; i < size && i < text.size(); i++) value = value << 6 | (static_cast<uint8_t>(text[i]) & 0x3FU);
    if (size <= text.size() && utf8(value) == text.substr(0, size)) {
        text.remove_prefix(size);
        return value;
    }
    text.remove_prefix(1);
    return -1;
}

}  // namespace cadans::grammar
