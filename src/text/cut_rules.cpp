#include "text/cut_rules.h"

#include <algorithm>

#include "text/character_class.h"

namespace cadans::text::cut {
namespace {

using Text = const CharacterText&;

uint32_t cp(Text t, size_t i) { return t.code_points[i]; }
bool is(Text t, size_t i, uint8_t mask) { return (t.classes[i] & mask) != 0; }
bool is_newline(Text t, size_t i) { return cp(t, i) == '\n' || cp(t, i) == '\r'; }

/// The end of the run of characters of these classes from `at`.
size_t run(Text t, size_t at, size_t end, uint8_t mask) {
    while (at < end && is(t, at, mask)) at++;
    return at;
}

/// The end of the run of characters of none of these classes from `at`.
size_t run_not(Text t, size_t at, size_t end, uint8_t mask) {
    while (at < end && !is(t, at, mask)) at++;
    return at;
}

uint32_t lower_ascii(uint32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

/// 's 't 're 've 'm 'll 'd. Ignoring case, U+017F (long s) folds to s as well.
size_t contraction(Text t, size_t at, size_t end, bool any_case) {
    if (at + 1 >= end || cp(t, at) != '\'') return at;
    const auto letter = [&](size_t i) -> uint32_t {
        if (i >= end) return 0;
        if (!any_case) return cp(t, i);
        return cp(t, i) == 0x17F ? uint32_t{'s'} : lower_ascii(cp(t, i));
    };
    const uint32_t first = letter(at + 1), second = letter(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
    return first == 'l' && second == 'l' ? at + 3 : at;
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last newline of the white space; without one, all but the last space before a
/// word, so that the word keeps its own.
size_t spaces(Text t, size_t at, size_t end) {
    const size_t stop = run(t, at, end, kSpace);
    for (size_t i = stop; i > at; i--) {
        if (is_newline(t, i - 1)) return i;
    }
    return stop == end || stop - at < 2 ? stop : stop - 1;
}

size_t digits(Text t, size_t at, size_t end, size_t most) { return run(t, at, std::min(end, at + most), kNumber); }

/// " ?[^…]+" followed by newlines (and slashes): symbols that are none of `words` and no space.
size_t symbols(Text t, size_t at, size_t end, uint8_t words, bool slashes) {
    const auto mask = static_cast<uint8_t>(kSpace | words);
    const size_t begin = cp(t, at) == ' ' ? at + 1 : at;
    size_t stop = run_not(t, begin, end, mask);
    if (stop == begin) return at;
    while (stop < end && (is_newline(t, stop) || (slashes && cp(t, stop) == '/'))) stop++;
    return stop;
}

/// May stand before a word as part of it: [^\r\n\p{L}\p{N}]
bool leads_word(Text t, size_t at) { return !is(t, at, kLetter | kNumber) && !is_newline(t, at); }

size_t llama3_like(Text t, size_t at, size_t end, size_t most_digits, uint8_t word) {
    if (const size_t stop = contraction(t, at, end, true); stop > at) return stop;
    const size_t begin = leads_word(t, at) ? at + 1 : at;
    if (const size_t stop = run(t, begin, end, word); stop > begin) return stop;
    // The optional first character may also be given back, which matters when it can be part of a word (a mark).
    if (const size_t stop = run(t, at, end, word); stop > at) return stop;
    if (is(t, at, kNumber)) return digits(t, at, end, most_digits);
    if (const size_t stop = symbols(t, at, end, static_cast<uint8_t>(word | kNumber), false); stop > at) return stop;
    return spaces(t, at, end);
}

constexpr uint8_t kUpperPart = kCased | kUncased | kMark;  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
constexpr uint8_t kLowerPart = kLower | kUncased | kMark;  // [\p{Ll}\p{Lm}\p{Lo}\p{M}]

/// upper* lower+ : the star gives back characters until the plus finds one.
size_t upper_then_lower(Text t, size_t at, size_t end) {
    const size_t upper_end = run(t, at, end, kUpperPart);
    for (size_t i = upper_end + 1; i-- > at;) {
        if (i < end && is(t, i, kLowerPart)) return run(t, i, end, kLowerPart);
    }
    return at;
}

/// upper+ lower*
size_t upper_maybe_lower(Text t, size_t at, size_t end) {
    const size_t upper_end = run(t, at, end, kUpperPart);
    return upper_end == at ? at : run(t, upper_end, end, kLowerPart);
}

size_t o200k_like(Text t, size_t at, size_t end, size_t most_digits, bool contractions) {
    for (const auto word : {upper_then_lower, upper_maybe_lower}) {
        for (const size_t skip : {size_t{1}, size_t{0}}) {
            if (skip == 1 && !leads_word(t, at)) continue;
            const size_t begin = at + skip;
            const size_t stop = word(t, begin, end);
            if (stop > begin) return contractions ? contraction(t, stop, end, true) : stop;
        }
    }
    if (is(t, at, kNumber)) return digits(t, at, end, most_digits);
    if (const size_t stop = symbols(t, at, end, kLetter | kNumber, true); stop > at) return stop;
    return spaces(t, at, end);
}

bool ascii_letter(uint32_t c) { return lower_ascii(c) >= 'a' && lower_ascii(c) <= 'z'; }
bool ascii_punctuation(uint32_t c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

}  // namespace

size_t llama3(Text t, size_t at, size_t end) { return llama3_like(t, at, end, 3, kLetter); }
size_t qwen2(Text t, size_t at, size_t end) { return llama3_like(t, at, end, 1, kLetter); }
size_t qwen35(Text t, size_t at, size_t end) { return llama3_like(t, at, end, 1, kLetter | kMark); }
size_t o200k(Text t, size_t at, size_t end) { return o200k_like(t, at, end, 3, true); }
size_t tekken(Text t, size_t at, size_t end) { return o200k_like(t, at, end, 1, false); }

size_t gpt2(Text t, size_t at, size_t end) {
    if (const size_t stop = contraction(t, at, end, false); stop > at) return stop;
    const size_t begin = cp(t, at) == ' ' ? at + 1 : at;
    for (const uint8_t kind : {uint8_t{kLetter}, uint8_t{kNumber}}) {
        if (const size_t stop = run(t, begin, end, kind); stop > begin) return stop;
    }
    if (const size_t stop = run_not(t, begin, end, kSpace | kLetter | kNumber); stop > begin) return stop;
    const size_t stop = run(t, at, end, kSpace);
    return stop == end || stop - at < 2 ? stop : stop - 1;
}

size_t deepseek(Text t, size_t at, size_t end) {
    if (ascii_punctuation(cp(t, at))) {
        size_t stop = at + 1;
        while (stop < end && ascii_letter(cp(t, stop))) stop++;
        if (stop > at + 1) return stop;
    }
    const bool leads = !is(t, at, kLetter | kPunctuation | kSymbol) && !is_newline(t, at);
    for (const size_t begin : {leads ? at + 1 : at, at}) {
        if (const size_t stop = run(t, begin, end, kLetter | kMark); stop > begin) return stop;
    }
    const size_t begin = cp(t, at) == ' ' ? at + 1 : at;
    if (size_t stop = run(t, begin, end, kPunctuation | kSymbol); stop > begin) {
        while (stop < end && is_newline(t, stop)) stop++;
        return stop;
    }
    return spaces(t, at, end);
}

size_t one_digit(Text t, size_t at, size_t end) { return digits(t, at, end, 1); }
size_t three_digits(Text t, size_t at, size_t end) { return digits(t, at, end, 3); }
size_t digit_run(Text t, size_t at, size_t end) { return run(t, at, end, kNumber); }

size_t three_ascii_digits(Text t, size_t at, size_t end) {
    if (end - at < 3) return at;
    for (size_t i = at; i < at + 3; i++) {
        if (cp(t, i) < '0' || cp(t, i) > '9') return at;
    }
    return at + 3;
}

size_t punctuation_run(Text t, size_t at, size_t end) {
    const auto fits = [&](size_t i) {
        const uint32_t c = cp(t, i);
        return is(t, i, kPunctuation) || c == '$' || c == '+' || (c >= '<' && c <= '>') || c == '^' || c == '~' ||
               c == '|';
    };
    while (at < end && fits(at)) at++;
    return at;
}

size_t cjk_run(Text t, size_t at, size_t end) {
    const auto fits = [&](size_t i) {
        const uint32_t c = cp(t, i);
        return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
    };
    while (at < end && fits(at)) at++;
    return at;
}

}  // namespace cadans::text::cut
