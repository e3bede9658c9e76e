#include "grammar/token_mask.h"

#include <algorithm>

namespace cadans::grammar {
namespace {

constexpr uint32_t kUnknown = UINT32_MAX;  // an entry that is not there yet, or cannot be told
constexpr uint8_t kNotKnown = 2;

void set(std::span<uint64_t> bits, uint32_t token) { bits[token / 64] |= uint64_t{1} << (token % 64); }

uint64_t pair_of(uint32_t a, uint32_t b) { return (static_cast<uint64_t>(a) << 32) | b; }

template <class T>
void append(std::string& text, T value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

void MaskCache::trim() {
    if (bytes_ <= bytes_max_) return;
    entries_.clear();
    leaves_.clear();
    leaf_entries_.clear();
    bytes_ = 0;
    generation_++;
}

MaskCache::EntryId MaskCache::add(Entry entry) {
    bytes_ += sizeof(Entry) + entry.tokens.size() * 4 + entry.words.size() * 8 + entry.open.size() * 4 + 64;
    entries_.push_back(std::move(entry));
    return static_cast<EntryId>(entries_.size() - 1);
}

uint32_t MaskCache::leaf_number(const Grammar& grammar, const Grammar::Rule& rule) {
    std::string text;
    for (StateId state = rule.first; state < rule.first + rule.count; state++) {
        const auto edges = grammar.bytes_from(state);
        append(text, static_cast<uint32_t>(edges.size()) << 1 | grammar.accepts(state));
        for (const ByteEdge& edge : edges) {
            append(text, edge.to - rule.first);
            append(text, edge.lo);
            append(text, edge.hi);
        }
    }
    const size_t size = text.size();
    const auto [at, fresh] = leaves_.try_emplace(std::move(text), static_cast<uint32_t>(leaves_.size()));
    if (fresh) bytes_ += size + 64;
    return at->second;
}

Status TokenMask::fill(const Matcher& matcher, std::span<uint64_t> bits) {
    cache_.trim();
    if (generation_ != cache_.generation()) {
        generation_ = cache_.generation();
        entries_.assign(stacks_.grammar().states(), kUnknown);
        leaf_numbers_.assign(stacks_.grammar().rules().size(), kUnknown);
        entries_after_.clear();
    }
    std::fill(bits.begin(), bits.end(), 0);
    cache_.round_++;
    work_.clear();
    forget_walk();
    uint64_t visits = 0;
    bool told = !stacks_.lost(matcher.at());
    const auto take = [&](EntryId id, StackId below) {
        if (id == kUnknown) {
            told = false;
            return;
        }
        Entry& entry = cache_.entries_[id];
        if (entry.round != cache_.round_) visits += entry.visits;
        entry.round = cache_.round_;
        if (visits > cache_.visits_max_) {
            told = false;
            return;
        }
        apply(entry, bits);
        const std::pair<EntryId, StackId> more = {id, below};
        if (!entry.open.empty() && std::find(work_.begin(), work_.end(), more) == work_.end()) work_.push_back(more);
    };
    const auto top = stacks_.frames(matcher.at());
    const std::vector<Stacks::Frame> frames(top.begin(), top.end());
    for (size_t i = 0; i < frames.size() && told; i++) take(entry_of(frames[i].state), frames[i].below);
    for (size_t i = 0; i < work_.size() && told; i++) {
        const auto [entry, below] = work_[i];
        visits += i;  // what the search for it among the others costs
        const auto part = stacks_.frames(below);
        const std::vector<Stacks::Frame> returns(part.begin(), part.end());
        for (size_t k = 0; k < returns.size() && told; k++)
            take(entry_after(entry, returns[k].state), returns[k].below);
    }
    if (matcher.may_end())
        for (const TokenId end : cache_.trie().ends()) set(bits, index(end));
    if (!told || visits > cache_.visits_max_)
        return Error{ErrorCode::too_large, "the grammar has too many ways to read this answer"};
    return Ok{};
}

void TokenMask::apply(const Entry& entry, std::span<uint64_t> bits) const {
    for (const uint32_t token : entry.tokens) set(bits, token);
    for (size_t i = 0; i < entry.words.size(); i++) bits[i] |= entry.words[i];
}

/// What may come from a state that is on top, inside its own rule.
TokenMask::EntryId TokenMask::entry_of(StateId state) {
    EntryId& known = entries_[state];
    if (known != kUnknown) return known;
    const Grammar& grammar = stacks_.grammar();
    const Grammar::Rule& rule = grammar.rule_of(state);
    uint64_t shared = 0;
    if (rule.leaf) {
        uint32_t& number = leaf_numbers_[static_cast<size_t>(&rule - grammar.rules().data())];
        if (number == kUnknown) number = cache_.leaf_number(grammar, rule);
        shared = pair_of(number, state - rule.first);
        if (const auto at = cache_.leaf_entries_.find(shared); at != cache_.leaf_entries_.end())
            return known = at->second;
    }
    const TokenTrie& trie = cache_.trie();
    const PlainRun run = runs_.from(state, trie.longest_plain());
    if (run.characters >= trie.longest_plain() || (run.characters > 0 && run.exact)) {
        make_dense();
        trie.add_plain(run.characters, words_);
        walk(trie.unplain(), stacks_.of(state));
    } else {
        walk(trie.plain(), stacks_.of(state));
        walk(trie.unplain(), stacks_.of(state));
    }
    if (lost_) return kUnknown;
    known = collected();
    if (rule.leaf) cache_.leaf_entries_[shared] = known;
    return known;
}

/// What may come behind the open nodes of an entry, after returning to a state.
TokenMask::EntryId TokenMask::entry_after(EntryId before, StateId state) {
    const uint64_t key = pair_of(before, state);
    if (const auto at = entries_after_.find(key); at != entries_after_.end()) return at->second;
    const StackId start = stacks_.of(state);
    const std::vector<TokenTrie::Node> nodes = cache_.entries_[before].open;
    for (const TokenTrie::Node node : nodes) walk(node, start);
    if (lost_) return kUnknown;
    return entries_after_[key] = collected();
}

/// Follows the tree from a node as far as the stacks go; tokens found and nodes left open are added up.
void TokenMask::walk(TokenTrie::Node from, StackId start) {
    const TokenTrie& trie = cache_.trie();
    path_.assign(1, start);
    if (stacks_.ends(start) && trie.has_children(from)) open_.push_back(from);
    const bool root = trie.node(from).depth == 0;
    size_t bytes = 0;
    for (const auto& step : stacks_.steps(start)) bytes += step.hi - step.lo + 1U;
    if (!root || bytes > 32) return visit(from, from + 1, trie.node(from).end);
    const auto part = stacks_.steps(start);
    const std::vector<Stacks::Step> steps(part.begin(), part.end());
    for (const auto& step : steps)
        for (unsigned byte = step.lo; byte <= step.hi; byte++)
            if (const auto child = trie.child_of_root(from, static_cast<uint8_t>(byte)); child != from)
                visit(from, child, trie.node(child).end);
}

void TokenMask::visit(TokenTrie::Node from, TokenTrie::Node begin, TokenTrie::Node end) {
    const TokenTrie& trie = cache_.trie();
    const uint32_t base = trie.node(from).depth;
    for (TokenTrie::Node node = begin; node < end;) {
        if (++visits_ > cache_.visits_max_) return;
        const TokenTrie::NodeData& data = trie.node(node);
        const uint32_t depth = data.depth - base;
        const StackId to = stacks_.step(path_[depth - 1], data.byte);
        if (to == Stacks::kLost) lost_ = true;
        if (lost_) return;
        if (to == Stacks::kDead) {
            node = data.end;
            continue;
        }
        if (node < trie.unplain() && trie.has_children(node) && takes_all_plain(to)) {
            found(trie.tokens_below(node));
            node = data.end;
            continue;
        }
        found(trie.tokens_at(node));
        if (trie.has_children(node)) {
            if (stacks_.ends(to)) open_.push_back(node);
            if (path_.size() <= depth) path_.resize(depth + 1);
            path_[depth] = to;
        }
        node++;
    }
}

/// Whether any plain text may come, of any length, and no rule ends meanwhile.
bool TokenMask::takes_all_plain(StackId stacks) {
    if (takes_all_plain_.size() <= stacks) takes_all_plain_.resize(stacks_.size(), kNotKnown);
    uint8_t& known = takes_all_plain_[stacks];
    if (known == kNotKnown) {
        const auto frames = stacks_.frames(stacks);
        const uint32_t longest = cache_.trie().longest_plain();
        known = frames.size() == 1 && !stacks_.has_bottom(stacks) &&
                runs_.from(frames[0].state, longest).characters >= longest;
    }
    return known == 1;
}

/// Few tokens are listed, many are a bitset.
void TokenMask::found(std::span<const uint32_t> tokens) {
    if (!dense_ && tokens_.size() + tokens.size() > cache_.trie().words()) make_dense();
    if (!dense_)
        tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    else
        for (const uint32_t token : tokens) set(words_, token);
}

void TokenMask::make_dense() {
    dense_ = true;
    words_.assign(cache_.trie().words(), 0);
    for (const uint32_t token : tokens_) set(words_, token);
    tokens_.clear();
}

/// The walk's result as an entry, and the walk's memory empty again.
TokenMask::EntryId TokenMask::collected() {
    Entry entry;
    if (dense_)
        entry.words = words_;
    else
        entry.tokens = tokens_;
    entry.open = open_;
    entry.visits = visits_;
    forget_walk();
    return cache_.add(std::move(entry));
}

void TokenMask::forget_walk() {
    tokens_.clear();
    open_.clear();
    dense_ = lost_ = false;
    visits_ = 0;
}

size_t TokenMask::bytes() const noexcept {
    constexpr size_t kNodeBytes = 40;  // of a hash table, with its slot
    return (entries_.capacity() + leaf_numbers_.capacity()) * sizeof(uint32_t) + takes_all_plain_.capacity() +
           (entries_after_.size() + runs_.size()) * kNodeBytes;
}

}  // namespace cadans::grammar
