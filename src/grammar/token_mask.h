// Which tokens may come next: a bit for each, from a state and the vocabulary's tree.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/matcher.h"
#include "grammar/plain_run.h"
#include "grammar/token_trie.h"

namespace cadans::grammar {

/// What was found out about a vocabulary's tokens from one state on, kept for all grammars of a model.
///
/// An *entry* is the tokens that may come from a state without leaving its rule, and where in the tree the rule may end
/// with more of the token to come (*open* nodes): what comes there is up to the caller, hence another entry. States of
/// rules that call no others are known by the text of their automaton, so that a second grammar with the same rule
/// finds them. When more than `bytes_max` are held, all is forgotten; nothing depends on it but time.
///
/// Thread rule: one thread. Borrows the trie, which must outlive it.
class MaskCache {
  public:
    /// Nodes and entries that one mask may look at. Counted as though nothing were known before, so that no answer
    /// fails or goes on because of what others came to.
    static constexpr uint64_t kVisitsMax = 20'000'000;

    explicit MaskCache(const TokenTrie& trie, size_t bytes_max = size_t{64} << 20, uint64_t visits_max = kVisitsMax)
        : trie_(trie), bytes_max_(bytes_max), visits_max_(visits_max) {}

    const TokenTrie& trie() const noexcept { return trie_; }
    size_t bytes() const noexcept { return bytes_; }
    uint64_t generation() const noexcept { return generation_; }  ///< changes when all is forgotten

  private:
    friend class TokenMask;
    struct Entry {
        std::vector<uint32_t> tokens;  // few, or
        std::vector<uint64_t> words;   // many
        std::vector<TokenTrie::Node> open;
        uint64_t visits = 0;  // nodes looked at to make it; above visits_max_ it is not complete
        uint64_t round = 0;   // of the last mask that it is part of
    };
    using EntryId = uint32_t;

    void trim();
    EntryId add(Entry entry);
    uint32_t leaf_number(const Grammar& grammar, const Grammar::Rule& rule);

    const TokenTrie& trie_;
    size_t bytes_max_, bytes_ = 0;
    uint64_t visits_max_;
    uint64_t generation_ = 0;
    uint64_t round_ = 0;  // masks begun
    std::vector<Entry> entries_;
    std::map<std::string, uint32_t> leaves_;              // the text of a leaf rule → its number
    std::unordered_map<uint64_t, EntryId> leaf_entries_;  // (leaf, state within it)
};

/// The masks of one grammar. Thread rule: one thread. Borrows cache and stacks, which must outlive it.
class TokenMask {
  public:
    TokenMask(MaskCache& cache, Stacks& stacks) : cache_(cache), stacks_(stacks), runs_(stacks.grammar()) {}

    /// Sets bit i exactly when token i may come next; tokens that end an answer where it may end.
    ///
    /// bits    trie().words() of them, overwritten
    /// Errors  too_large: the grammar is too ambiguous to go on from here; this answer must fail, since nothing else
    ///         would be true, and every other that comes here. Elsewhere the grammar is as good as before
    /// Cost    known states: a few passes over the bits. New ones: a walk over the part of the tree that they allow
    Status fill(const Matcher& matcher, std::span<uint64_t> bits);

    size_t bytes() const noexcept;  ///< of memory, about; without the cache

  private:
    using Entry = MaskCache::Entry;
    using EntryId = MaskCache::EntryId;

    /// Each kNoEntry where it cannot be told.
    EntryId entry_of(StateId state);
    EntryId entry_after(EntryId before, StateId state);
    void walk(TokenTrie::Node from, StackId start);
    bool takes_all_plain(StackId stacks);
    void visit(TokenTrie::Node from, TokenTrie::Node begin, TokenTrie::Node end);
    void found(std::span<const uint32_t> tokens);
    void make_dense();
    void forget_walk();
    EntryId collected();
    void apply(const Entry& entry, std::span<uint64_t> bits) const;

    MaskCache& cache_;
    Stacks& stacks_;
    PlainRuns runs_;
    uint64_t generation_ = UINT64_MAX;
    std::vector<EntryId> entries_;                         // by state
    std::vector<uint32_t> leaf_numbers_;                   // by rule
    std::unordered_map<uint64_t, EntryId> entries_after_;  // (entry, state returned to)
    std::vector<uint8_t> takes_all_plain_;                 // by set of stacks: 0, 1, or not known yet
    uint64_t visits_ = 0;                                  // of the walk in progress
    bool lost_ = false;                                    // the walk came to where it cannot be told

    // Of the walk in progress, kept for their memory.
    std::vector<uint32_t> tokens_;  // found so far, or
    bool dense_ = false;            // in words_
    std::vector<TokenTrie::Node> open_;
    std::vector<StackId> path_;
    std::vector<uint64_t> words_;
    std::vector<std::pair<EntryId, StackId>> work_;
};

}  // namespace cadans::grammar
