#include "engine/cpu_executor.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/platform.h"
#include "engine/pooling.h"

namespace cadans::engine {

/// Stands where nothing could be drawn behind a draft. No vocabulary is that large.
constexpr TokenId kNothing{UINT32_MAX};

/// One model with everything that its steps need.
struct CpuExecutor::Resident {
    /// A row whose logits are read: to draw the next token of its item, or to score a known one.
    struct Reading {
        uint32_t row;
        uint32_t item;      ///< in the batch
        uint32_t result;    ///< of the item, in the step's result
        TokenScore* score;  ///< where the outcome goes
        uint32_t drafts;    ///< of a row that is drawn from: those at and before it
        bool sample;
        bool ok;
    };

    Resident(const model::Model& m, const std::vector<uint32_t>& pages, const kernels::KernelTable& k, ThreadPool& pool,
             const EngineLimits& limits)
        : model(m),
          arena(m.spec(), limits.kv, pages),
          forward(m, arena, k, pool, limits),
          logits(size_t{kLogitRows} * m.spec().vocab),
          pooled(m.spec().width) {
        batch.reserve(limits.max_rows, limits.max_items);
        items.reserve(limits.max_items);
        readings.reserve(limits.max_rows + limits.max_items);
        drafting_of.reserve(limits.max_items);
        rows.reserve(kLogitRows);
        for (uint32_t t = 0; t < pool.threads(); t++)
            samplers.emplace_back(k, m.spec().vocab, limits.max_context_tokens);
    }

    const model::Model& model;
    KvArena arena;
    Forward forward;
    Aligned<float> logits;
    Aligned<float> pooled;          ///< one row
    std::vector<Sampler> samplers;  ///< per thread
    Batch batch;
    std::vector<StepItem> items;  ///< this model's share of the plan
    std::vector<Reading> readings;
    std::vector<uint32_t> rows;
    std::vector<uint32_t> drafting_of;  ///< of each item, while it drafts: in the plan's draftings
};

CpuExecutor::CpuExecutor(const kernels::KernelTable& table, ThreadPool& pool, const EngineLimits& limits)
    : k_(table), pool_(pool), limits_(limits) {
    result_.items.reserve(limits.max_items);
    result_.accepted.reserve(limits.max_rows);
    result_.scores.reserve(limits.max_rows);
}

CpuExecutor::~CpuExecutor() = default;

ModelId CpuExecutor::add(const model::Model& model, const std::vector<uint32_t>& pages_of_group) {
    const ModelId id = reserve();
    place(id, model, pages_of_group);
    return id;
}

ModelId CpuExecutor::reserve() {
    models_.emplace_back();
    vocab_.push_back(0);
    return ModelId{static_cast<uint16_t>(models_.size() - 1)};
}

void CpuExecutor::place(ModelId id, const model::Model& model, const std::vector<uint32_t>& pages_of_group) {
    check(index(id) < models_.size() && models_[index(id)] == nullptr, "a model is placed once, until it is removed");
    models_[index(id)] = std::make_unique<Resident>(model, pages_of_group, k_, pool_, limits_);
    vocab_[index(id)] = model.spec().vocab;
}

void CpuExecutor::remove(ModelId id) { models_[index(id)].reset(); }

void CpuExecutor::fill_pages(ModelId model, uint32_t pages) { models_[index(model)]->arena.fill(pages); }

void CpuExecutor::drop_pages(ModelId model, uint32_t pages) { models_[index(model)]->arena.drop(pages); }

void CpuExecutor::submit(const StepPlan& plan) {
    check(!finished_, "a step's result is polled before the next step is submitted");
    check(plan.rows() <= limits_.max_rows && plan.items.size() <= limits_.max_items,
          "a plan keeps the engine's limits");
    set_float_mode();
    result_.clear();
    result_.id = plan.id;
    result_.begin = steady_now();
    for (const StepItem& item : plan.items) result_.items.push_back({.seq = item.seq, .computed = item.count});
    if (!plan.draftings.empty()) {
        draft(plan);
        result_.drafting = steady_now() - result_.begin;
    }
    masks_.begin(plan.items, vocab_);
    for (const PageCopy& copy : plan.copies) models_[index(copy.model)]->arena.copy(copy.group, copy.from, copy.to);
    // Only models that the plan names are looked at: another may be coming or going.
    for (uint16_t m = 0; m < models_.size(); m++) {
        const auto names = [m](const StepItem& item) { return item.model == ModelId{m}; };
        if (std::any_of(plan.items.begin(), plan.items.end(), names)) run_model(*models_[m], plan, ModelId{m});
    }
    take_drawn(plan);
    result_.end = steady_now();
    finished_ = true;
}

/// The smaller model's part of the step: a pass over what it has not seen, and one for each further guess. All items
/// that still want one go through it side by side.
void CpuExecutor::draft(const StepPlan& plan) {
    const ModelId id = plan.draftings.front().model;
    Resident& drafter = *models_[index(id)];
    for (uint32_t pass = 0;; pass++) {
        drafter.items.clear();
        drafter.drafting_of.clear();
        for (uint32_t d = 0; d < plan.draftings.size(); d++) {
            const Drafting& drafting = plan.draftings[d];
            if (pass > 0 && pass >= drafting.guesses) continue;
            const StepItem& target = plan.items[drafting.item];
            check(drafting.model == id && vocab_[index(id)] == vocab_[index(target.model)],
                  "one model drafts in a step, with the vocabulary of whom it drafts for");
            StepItem item;
            item.model = id;
            item.seq = target.seq;
            item.known = target.known;
            item.first = pass == 0 ? drafting.first : drafting.first + drafting.count + pass - 1;
            item.count = pass == 0 ? drafting.count : 1;
            item.sample = drafting.guesses > pass;
            item.sampling = target.sampling;
            item.group_count = drafting.group_count;
            item.pages = drafting.pages;
            drafter.items.push_back(item);
            drafter.drafting_of.push_back(d);
        }
        if (drafter.items.empty()) return;
        drafter.batch.assemble(drafter.items);
        drafter.forward.run(drafter.batch);
        draw_guesses(drafter, plan, pass);
    }
}

/// One guess for each item of the pass that wants one. Where nothing can be drawn any token will do: it is only
/// checked.
void CpuExecutor::draw_guesses(Resident& drafter, const StepPlan& plan, uint32_t pass) {
    const uint32_t vocab = drafter.model.spec().vocab;
    drafter.readings.clear();
    for (uint32_t i = 0; i < drafter.items.size(); i++)
        if (drafter.items[i].sample)
            drafter.readings.push_back({drafter.batch.first_row[i + 1] - 1, i, 0, nullptr, 0, true, true});
    const std::vector<Resident::Reading>& all = drafter.readings;
    for (size_t first = 0; first < all.size(); first += kLogitRows) {
        const size_t n = std::min<size_t>(kLogitRows, all.size() - first);
        drafter.rows.clear();
        for (size_t i = 0; i < n; i++) drafter.rows.push_back(all[first + i].row);
        drafter.forward.logits(drafter.rows, drafter.logits.data());
        const auto draw = [&](uint32_t thread, uint32_t threads) {
            for (size_t i = thread; i < n; i += threads) {
                const Resident::Reading& reading = all[first + i];
                const StepItem& item = drafter.items[reading.item];
                const uint32_t end = item.first + item.count;
                TokenScore drawn;
                const bool ok = drafter.samplers[thread].sample(drafter.logits.data() + i * vocab, *item.sampling,
                                                                item.known.first(end), drawn);
                plan.draftings[drafter.drafting_of[reading.item]].out[pass] = ok ? drawn.token : TokenId{0};
            }
        };
        if (n == 1)
            draw(0, 1);
        else
            pool_.run(draw);
    }
}

void CpuExecutor::take_drawn(const StepPlan& plan) {
    masks_.wait();
    for (size_t i = 0; i < plan.items.size(); i++) {
        ItemResult& out = result_.items[i];
        if (plan.items[i].sample && !out.failed && !out.stuck) take_item(plan.items[i], out);
    }
}

/// What was drawn is accepted as far as it is what the drafts said, and the one token behind that; each moves the
/// item's constraint on. Where something goes wrong behind a draft, the item ends before it: its next step comes to
/// the same place with nothing guessed, and fails as it would have without drafts.
void CpuExecutor::take_item(const StepItem& item, ItemResult& out) {
    const std::span<const TokenId> drafts = item.known.last(item.drafts);
    uint32_t accepted = 0;
    out.constraint_at = item.constraint_at;
    try {
        while (true) {
            const TokenId token = result_.accepted[out.accepted_begin + accepted].token;
            if (token == kNothing) break;
            if (item.constraint != nullptr) {
                const ConstraintState next = item.constraint->after(out.constraint_at, token);
                out.complete = item.constraint->complete(next);
                out.constraint_at = next;
            }
            accepted++;
            if (out.complete || accepted > item.drafts || token != drafts[accepted - 1]) break;
        }
    } catch (const std::bad_alloc&) {  // the one place of a step that allocates: it fails its own sequence
        if (accepted == 0) {
            out.failed = true;
            return;
        }
    }
    out.accepted_end = out.accepted_begin + accepted;
    out.computed = item.count - item.drafts + accepted - 1;
}

const StepResult* CpuExecutor::poll() {
    if (!finished_) return nullptr;
    finished_ = false;
    return &result_;
}

void CpuExecutor::run_model(Resident& resident, const StepPlan& plan, ModelId id) {
    resident.items.clear();
    resident.readings.clear();
    for (const StepItem& item : plan.items)
        if (item.model == id) resident.items.push_back(item);
    if (resident.items.empty()) return;
    resident.batch.assemble(resident.items);
    resident.forward.run(resident.batch);

    uint32_t mine = 0;
    for (uint32_t i = 0; i < plan.items.size(); i++) {
        const StepItem& item = plan.items[i];
        if (item.model != id) continue;
        ItemResult& out = result_.items[i];
        const uint32_t first_row = resident.batch.first_row[mine];
        out.scores_begin = static_cast<uint32_t>(result_.scores.size());
        for (uint32_t t = 0; item.score && t < item.count && item.first + t + 1 < item.known.size(); t++) {
            result_.scores.emplace_back();
            resident.readings.push_back({first_row + t, mine, i, &result_.scores.back(), 0, false, true});
        }
        out.scores_end = static_cast<uint32_t>(result_.scores.size());
        out.accepted_begin = static_cast<uint32_t>(result_.accepted.size());
        const uint32_t last = first_row + item.count - 1 - item.drafts;
        for (uint32_t d = 0; item.sample && d <= item.drafts; d++) {
            result_.accepted.emplace_back();
            resident.readings.push_back({last + d, mine, i, &result_.accepted.back(), d, true, true});
        }
        out.accepted_end = static_cast<uint32_t>(result_.accepted.size());
        if (item.embedding != nullptr) {
            const std::span<float> row(resident.pooled.data(), resident.model.spec().width);
            if (!pool_rows(item, first_row, resident.forward, row)) out.failed = true;
        }
        mine++;
    }
    if (std::ranges::any_of(resident.items, [](const StepItem& item) { return item.constraint != nullptr; })) {
        const Nanos computed = steady_now();
        masks_.wait();
        result_.mask += steady_now() - computed;
    }
    read_rows(resident);
}

/// Logits a few rows at a time, then one thread a row draws or scores.
void CpuExecutor::read_rows(Resident& resident) {
    const uint32_t vocab = resident.model.spec().vocab;
    std::vector<Resident::Reading>& all = resident.readings;
    for (size_t first = 0; first < all.size(); first += kLogitRows) {
        const size_t n = std::min<size_t>(kLogitRows, all.size() - first);
        resident.rows.clear();
        for (size_t i = 0; i < n; i++) resident.rows.push_back(all[first + i].row);
        resident.forward.logits(resident.rows, resident.logits.data());
        const auto read = [&](uint32_t thread, uint32_t threads) {
            for (size_t i = thread; i < n; i += threads) {
                Resident::Reading& reading = all[first + i];
                const StepItem& item = resident.items[reading.item];
                const float* logits = resident.logits.data() + i * vocab;
                Sampler& sampler = resident.samplers[thread];
                const uint32_t position = resident.batch.position[reading.row];
                if (reading.sample) {
                    const bool may = masks_.some(reading.result, reading.drafts);
                    if (may)
                        reading.ok = sampler.sample(logits, *item.sampling, item.known.first(position + 1),
                                                    *reading.score, masks_.mask(reading.result, reading.drafts));
                    if (reading.drafts == 0)
                        result_.items[reading.result].stuck = !may;
                    else if (!may || !reading.ok)
                        reading.score->token = kNothing;
                } else {
                    reading.ok =
                        sampler.score(logits, item.known[position + 1], item.sampling->top_logprobs, *reading.score);
                }
            }
        };
        if (n == 1)
            read(0, 1);
        else
            pool_.run(read);
        for (size_t i = 0; i < n; i++)
            if (!all[first + i].ok && all[first + i].drafts == 0) result_.items[all[first + i].result].failed = true;
    }
}

}  // namespace cadans::engine
