// Drives the executor over a tiny model, with plans of the test's own making.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.h"
#include "engine/cpu_executor.h"
#include "model/testing/tiny_model.h"
#include "model/weights.h"

namespace cadans::engine::testing {

inline constexpr uint32_t kRigContext = 256;
inline constexpr uint32_t kRigPages = 400;

/// One executor with one tiny model. Page ids are handed out one after the other and never come back.
class StepRig {
  public:
    StepRig(const model::testing::TinyModel& shape, uint32_t threads, kernels::Isa isa,
            kernels::KvType kv = kernels::KvType::f16)
        : StepRig(shape, threads, kernels::kernel_table(isa), kv) {}

    StepRig(const model::testing::TinyModel& shape, uint32_t threads, const kernels::KernelTable& table,
            kernels::KvType kv = kernels::KvType::f16)
        : pool_(threads),
          bytes_(model::testing::tiny_model(shape).bytes()),
          file_(model::GgufFile::parse(bytes_, "tiny").value()) {
        model_ = model::Model::load(file_, model::read_spec(file_).value(), pool_).value();
        const EngineLimits limits{
            .max_rows = 256, .max_items = 32, .max_scores = 256, .max_context_tokens = kRigContext, .kv = kv};
        executor_ = std::make_unique<CpuExecutor>(table, pool_, limits);
        groups_ = static_cast<uint32_t>(PageGroups::of(model_->spec()).facts.size());
        executor_->add(*model_, std::vector<uint32_t>(groups_, kRigPages));
    }

    /// A second model that drafts for the first; of the same shape, it is the first one's weights again.
    void add_drafter(const model::testing::TinyModel& shape) {
        draft_bytes_ = model::testing::tiny_model(shape).bytes();
        draft_file_.emplace(model::GgufFile::parse(draft_bytes_, "tiny").value());
        drafter_ = model::Model::load(*draft_file_, model::read_spec(*draft_file_).value(), pool_).value();
        draft_groups_ = static_cast<uint32_t>(PageGroups::of(drafter_->spec()).facts.size());
        draft_id_ = executor_->add(*drafter_, std::vector<uint32_t>(draft_groups_, kRigPages));
    }

    /// A sequence of `n` made-up tokens with pages of its own.
    struct Sequence {
        std::vector<TokenId> tokens;
        std::vector<PageId> pages;
        std::vector<PageCopy> copies;  ///< made before its next rows
        uint32_t computed = 0;
        std::vector<TokenScore> scores;  ///< of tokens 1 ..
        SamplingParams sampling;
        Constraint* constraint = nullptr;
        ConstraintState constraint_at = 0;
        std::vector<TokenId> drafts;  ///< for verify(); with a drafter: as many as it shall guess, whatever they are
        uint32_t draft_computed = 0;  ///< by the drafter, in pages of the same numbers
        uint32_t draft_rows =
            0;  ///< not 0: it computes so many known tokens in the next verify(), and guesses if that is all
        Embedding* embedding = nullptr;
    };
    Sequence sequence(uint64_t seed, uint32_t n) {
        Sequence s;
        for (uint32_t i = 0; i < n; i++)
            s.tokens.push_back(TokenId{static_cast<uint32_t>(mix64(seed * 1000 + i) % model_->spec().vocab)});
        for (uint32_t p = 0; p <= n / kPageTokens + 1; p++) s.pages.push_back(PageId{next_page_++ % kRigPages});
        s.sampling.logprobs = true;
        s.sampling.top_logprobs = 20;
        return s;
    }

    /// One step: each sequence computes its next `counts[i]` tokens (0: it sits out). Collects scores.
    const StepResult& step(const std::vector<Sequence*>& all, const std::vector<uint32_t>& counts,
                           bool sample = false) {
        plan_.clear();
        for (size_t i = 0; i < all.size(); i++) {
            if (counts[i] == 0) continue;
            StepItem item;
            item.seq = SeqId{i};
            item.known = all[i]->tokens;
            item.first = all[i]->computed;
            item.count = counts[i];
            item.phase = phase_of(static_cast<uint32_t>(all[i]->tokens.size()), item.first, 0);
            item.score = true;
            item.sample = sample && item.first + item.count == item.known.size();
            item.sampling = &all[i]->sampling;
            item.constraint = all[i]->constraint;
            item.constraint_at = all[i]->constraint_at;
            item.embedding = all[i]->embedding;
            item.group_count = groups_;
            for (uint32_t g = 0; g < groups_; g++) item.pages[g] = {0, all[i]->pages};
            for (const PageCopy& copy : all[i]->copies) plan_.copies.push_back(copy);
            all[i]->copies.clear();
            plan_.rows_by_phase[static_cast<uint8_t>(item.phase)] += item.count;
            plan_.items.push_back(item);
        }
        executor_->submit(plan_);
        const StepResult& result = *executor_->poll();
        for (const ItemResult& item : result.items) {
            Sequence& s = *all[index(item.seq)];
            s.computed += item.computed;
            s.scores.insert(s.scores.end(), result.scores.begin() + item.scores_begin,
                            result.scores.begin() + item.scores_end);
        }
        return result;
    }

    /// One step: each sequence computes all it knows and its drafts behind it. Takes in what was accepted, tokens and
    /// constraint, and forgets the drafts.
    const StepResult& verify(const std::vector<Sequence*>& all) {
        plan_.clear();
        for (size_t i = 0; i < all.size(); i++) {
            Sequence& s = *all[i];
            StepItem item;
            item.seq = SeqId{i};
            item.drafts = static_cast<uint32_t>(s.drafts.size());
            item.first = s.computed;
            item.count = static_cast<uint32_t>(s.tokens.size() + s.drafts.size()) - s.computed;
            item.phase = phase_of(static_cast<uint32_t>(s.tokens.size()), item.first, item.drafts);
            s.tokens.insert(s.tokens.end(), s.drafts.begin(), s.drafts.end());
            item.known = s.tokens;
            item.sample = true;
            item.sampling = &s.sampling;
            item.constraint = s.constraint;
            item.constraint_at = s.constraint_at;
            item.group_count = groups_;
            for (uint32_t g = 0; g < groups_; g++) item.pages[g] = {0, s.pages};
            plan_.rows_by_phase[static_cast<uint8_t>(item.phase)] += item.count;
            plan_.items.push_back(item);
            if (s.draft_rows == 0) continue;
            const auto known = static_cast<uint32_t>(s.tokens.size()) - item.drafts;
            Drafting drafting;
            drafting.item = static_cast<uint32_t>(i);
            drafting.model = draft_id_;
            drafting.first = s.draft_computed;
            drafting.count = s.draft_rows;
            drafting.guesses = drafting.first + drafting.count == known ? item.drafts : 0;
            drafting.out = s.tokens.data() + known;
            drafting.group_count = draft_groups_;
            for (uint32_t g = 0; g < draft_groups_; g++) drafting.pages[g] = {0, s.pages};
            plan_.draftings.push_back(drafting);
        }
        executor_->submit(plan_);
        const StepResult& result = *executor_->poll();
        for (const Drafting& drafting : plan_.draftings) {
            const ItemResult& got = result.items[drafting.item];
            Sequence& s = *all[drafting.item];
            const uint32_t drawn = got.accepted_end - got.accepted_begin;
            s.draft_computed +=
                drafting.count + (drafting.guesses > 0 && drawn > 0 ? std::min(drafting.guesses, drawn) - 1 : 0);
            s.draft_rows = 0;
        }
        for (size_t i = 0; i < all.size(); i++) {
            Sequence& s = *all[i];
            const ItemResult& got = result.items[i];
            s.tokens.resize(s.tokens.size() - s.drafts.size());
            s.drafts.clear();
            if (got.failed || got.stuck) continue;
            s.computed += got.computed;
            for (uint32_t t = got.accepted_begin; t < got.accepted_end; t++) {
                s.tokens.push_back(result.accepted[t].token);
                s.scores.push_back(result.accepted[t]);
            }
            if (s.constraint != nullptr) s.constraint_at = got.constraint_at;
        }
        return result;
    }

    /// Computes all of one sequence in steps of `chunk`.
    void compute(Sequence& s, uint32_t chunk) {
        while (s.computed < s.tokens.size())
            step({&s}, {std::min(chunk, static_cast<uint32_t>(s.tokens.size()) - s.computed)});
    }

    /// A sequence of `tokens` that begins with the first `shared` ones of another: whole pages are shared, and the
    /// one that is not whole is copied before the next row.
    Sequence branch(const Sequence& from, uint32_t shared, const std::vector<TokenId>& tokens) {
        Sequence s = sequence(0, static_cast<uint32_t>(tokens.size()));
        s.tokens = tokens;
        s.computed = shared;
        const uint32_t whole = shared / kPageTokens;
        for (uint32_t p = 0; p < whole; p++) s.pages[p] = from.pages[p];
        for (uint16_t g = 0; g < groups_ && shared % kPageTokens != 0; g++)
            s.copies.push_back({ModelId{0}, GroupId{g}, from.pages[whole], s.pages[whole]});
        return s;
    }

    CpuExecutor& executor() { return *executor_; }
    const model::Model& model() const { return *model_; }

  private:
    ThreadPool pool_;
    model::testing::Bytes bytes_;
    model::GgufFile file_;
    std::unique_ptr<model::Model> model_;
    model::testing::Bytes draft_bytes_;
    std::optional<model::GgufFile> draft_file_;
    std::unique_ptr<model::Model> drafter_;
    std::unique_ptr<CpuExecutor> executor_;
    uint32_t groups_ = 1, draft_groups_ = 1;
    ModelId draft_id_{};
    uint32_t next_page_ = 0;
    StepPlan plan_;
};

}  // namespace cadans::engine::testing
