// Which token has this text: a hash table made for look-ups that mostly fail.
#pragma once

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/random.h"

namespace cadans::text {

/// Merging by score asks for every pair of neighbours, and most pairs are no token: such a look-up touches one cache
/// line here. The texts are borrowed and must stay where they are. Thread-safe once filled.
class TextIndex {
  public:
    /// Makes room for this many texts; call it once, first.
    void reserve(size_t texts) {
        size_t slots = 16;
        while (slots < 2 * texts) slots *= 2;
        slots_.assign(slots, Slot{0, kEmpty});
        entries_.reserve(texts);
    }

    /// Adds a text unless it is there already.
    void insert(std::string_view text, TokenId id) {
        const uint64_t hash = hash_of(text);
        const size_t slot = place(text, hash);
        if (slots_[slot].entry != kEmpty) return;
        slots_[slot] = {tag_of(hash), static_cast<uint32_t>(entries_.size())};
        entries_.push_back({text, id});
    }

    std::optional<TokenId> find(std::string_view text) const noexcept {
        if (slots_.empty()) return std::nullopt;
        const uint32_t entry = slots_[place(text, hash_of(text))].entry;
        return entry == kEmpty ? std::nullopt : std::optional(entries_[entry].id);
    }

  private:
    static constexpr uint32_t kEmpty = 0xFFFFFFFFu;
    struct Slot {
        uint32_t tag, entry;
    };
    struct Entry {
        std::string_view text;
        TokenId id;
    };

    static uint64_t hash_of(std::string_view text) noexcept {
        uint64_t hash = text.size();
        for (; text.size() >= 8; text.remove_prefix(8)) {
            uint64_t chunk = 0;
            std::memcpy(&chunk, text.data(), 8);
            hash = mix64(hash ^ chunk);
        }
        uint64_t rest = 0;
        std::memcpy(&rest, text.data(), text.size());
        return mix64(hash ^ rest);
    }
    static uint32_t tag_of(uint64_t hash) noexcept { return static_cast<uint32_t>(hash >> 32); }

    /// The slot of this text, or the empty one where it would go.
    size_t place(std::string_view text, uint64_t hash) const noexcept {
        const size_t mask = slots_.size() - 1;
        for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
            if (slots_[slot].entry == kEmpty) return slot;
            if (slots_[slot].tag == tag_of(hash) && entries_[slots_[slot].entry].text == text) return slot;
        }
    }

    std::vector<Slot> slots_;
    std::vector<Entry> entries_;
};

}  // namespace cadans::text
