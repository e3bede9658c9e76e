// A fake model that forgets nothing: the next token is a hash of all before it, and every page knows what it holds.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "flow/step.h"
#include "kv/page_pool.h"
#include "sched/admission.h"

namespace cadans::sched {

/// The fake model: the next token is a hash of the whole history, so that a token that is lost, doubled
/// or foreign changes every later one. Its cells stand for keys and values: what was written where.
class FakeExecutor {
  public:
    FakeExecutor(const House& house, const kv::PagePool& pool);

    /// Computes the plan into `result`. `fails(seq)` marks items as failed. Empty, or the first page that
    /// does not hold what it should.
    template <class Fails>
    std::string run(const StepPlan& plan, Nanos begin, Fails&& fails, StepResult& result) {
        result.clear();
        result.id = plan.id;
        result.begin = begin;
        result.end = begin + 1000 + 10 * plan.rows();
        for (const PageCopy& copy : plan.copies) copy_page(copy);
        for (const Drafting& drafting : plan.draftings) {
            if (std::string wrong = draft(drafting, plan.items[drafting.item]); !wrong.empty()) return wrong;
            result.drafting += 1 + drafting.rows();
        }
        for (const StepItem& item : plan.items) {
            if (std::string wrong = run_item(item, fails(item.seq), result); !wrong.empty()) return wrong;
        }
        return {};
    }

    /// What follows `history`: the one true answer, computed apart from any plan.
    static TokenId next_token(uint64_t history, uint32_t vocab) {
        return TokenId{static_cast<uint32_t>(history % vocab)};
    }
    static uint64_t add(uint64_t history, TokenId token) { return mix64(history ^ (uint64_t{index(token)} + 1)); }

  private:
    void copy_page(const PageCopy& copy);
    std::string draft(const Drafting& drafting, const StepItem& item);
    std::string write_and_look(uint32_t first_group, const ModelFacts& model, std::span<const PageRun> pages,
                               uint32_t first, const std::vector<uint64_t>& prefix);
    std::string run_item(const StepItem& item, bool failed, StepResult& result);

    const House& house_;
    const kv::PagePool& pool_;
    std::vector<std::vector<uint64_t>> cells_;  ///< by group: page * kPageTokens + slot -> hash of the prefix
};

inline FakeExecutor::FakeExecutor(const House& house, const kv::PagePool& pool) : house_(house), pool_(pool) {
    cells_.resize(pool.group_count());
    for (uint32_t group = 0; group < pool.group_count(); group++) {
        cells_[group].resize(size_t{pool.pages_in(group)} * kPageTokens);
    }
}

inline void FakeExecutor::copy_page(const PageCopy& copy) {
    std::vector<uint64_t>& cells = cells_[pool_.first_group_of(copy.model) + index(copy.group)];
    const auto from = cells.begin() + std::ptrdiff_t{index(copy.from)} * kPageTokens;
    std::copy(from, from + kPageTokens, cells.begin() + std::ptrdiff_t{index(copy.to)} * kPageTokens);
}

/// Rows from `first` on write their keys, one for each prefix, and look at all that are in reach.
inline std::string FakeExecutor::write_and_look(uint32_t first_group, const ModelFacts& model,
                                                std::span<const PageRun> pages, uint32_t first,
                                                const std::vector<uint64_t>& prefix) {
    const auto end = static_cast<uint32_t>(prefix.size());
    for (uint32_t group = 0; group < pages.size(); group++) {
        const PageRun& run = pages[group];
        const auto cell = [&](uint32_t p) -> uint64_t& {
            const PageId page = run.ids[p / kPageTokens - run.first_page];
            return cells_[first_group + group][size_t{index(page)} * kPageTokens + p % kPageTokens];
        };
        for (uint32_t p = first; p < end; p++) cell(p) = prefix[p];
        const uint32_t window = model.groups[group].window_tokens;
        const uint32_t oldest = window == 0 || first < window ? 0 : first - window + 1;
        for (uint32_t p = oldest; p < end; p++)
            if (cell(p) != prefix[p]) return " finds foreign keys at " + std::to_string(p);
    }
    return {};
}

/// A draft model that is always right, never, or now and then, by the sequence.
inline std::string FakeExecutor::draft(const Drafting& drafting, const StepItem& item) {
    const ModelFacts& model = *house_.find(drafting.model);
    const uint32_t vocab = house_.find(item.model)->vocab_size;
    const auto known = static_cast<uint32_t>(item.known.size()) - item.drafts;
    uint64_t truth = index(item.model);
    for (uint32_t p = 0; p < known; p++) truth = add(truth, item.known[p]);
    for (uint32_t g = 0; g < drafting.guesses; g++) {
        const TokenId next = next_token(truth, vocab);
        const uint64_t kind = mix64(index(item.seq)) % 3;
        const bool right = kind == 0 || (kind == 1 && mix64(truth) % 4 != 0);
        drafting.out[g] = right ? next : TokenId{(index(next) + 1) % vocab};
        truth = add(truth, drafting.out[g]);
    }
    std::vector<uint64_t> prefix(drafting.first + drafting.rows());
    uint64_t history = index(drafting.model);
    for (uint32_t p = 0; p < prefix.size(); p++) prefix[p] = history = add(history, item.known[p]);
    const std::span<const PageRun> pages(drafting.pages.data(), drafting.group_count);
    const std::string wrong =
        write_and_look(pool_.first_group_of(drafting.model), model, pages, drafting.first, prefix);
    return wrong.empty() ? wrong : "the draft model of sequence " + std::to_string(index(item.seq)) + wrong;
}

inline std::string FakeExecutor::run_item(const StepItem& item, bool failed, StepResult& result) {
    const ModelFacts& model = *house_.find(item.model);
    const uint32_t first_group = pool_.first_group_of(item.model);
    ItemResult got;
    got.seq = item.seq;
    got.failed = failed;
    got.computed = item.count;
    got.scores_begin = got.scores_end = static_cast<uint32_t>(result.scores.size());
    got.accepted_begin = got.accepted_end = static_cast<uint32_t>(result.accepted.size());

    const uint32_t end = item.first + item.count;
    std::vector<uint64_t> prefix(end);
    uint64_t history = index(item.model);
    for (uint32_t p = 0; p < end; p++) prefix[p] = history = add(history, item.known[p]);

    const std::span<const PageRun> pages(item.pages.data(), item.group_count);
    if (std::string wrong = write_and_look(first_group, model, pages, item.first, prefix); !wrong.empty())
        return "sequence " + std::to_string(index(item.seq)) + wrong;
    if (item.score) {
        for (uint32_t p = item.first; p < end && p + 1 < item.known.size(); p++) {
            result.scores.push_back({item.known[p + 1], 0.0F, 0, {}});
        }
        got.scores_end = static_cast<uint32_t>(result.scores.size());
    }
    // A draft stays if it is what the row before it draws.
    for (uint32_t p = end - 1 - item.drafts; item.sample && !failed; p++) {
        const TokenId next = next_token(prefix[p], model.vocab_size);
        result.accepted.push_back({next, 0.0F, 0, {}});
        got.accepted_end++;
        got.computed = p + 1 - item.first;
        if (p + 1 == end || item.known[p + 1] != next) break;
    }
    result.items.push_back(got);
    return {};
}

}  // namespace cadans::sched
