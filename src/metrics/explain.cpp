#include "metrics/explain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace cadans::metrics {
namespace {

constexpr uint64_t kPicosPerNano = 1000;
constexpr uint32_t kTokensThatTellARate = 32;
constexpr uint32_t kStepsThatTellWhy = 16;

/// A template's gaps filled by name.
class Filled {
  public:
    Filled& with(std::string_view name, std::string value) {
        values_.emplace_back(name, std::move(value));
        return *this;
    }
    std::string into(std::string_view text) const {
        std::string out;
        while (!text.empty()) {
            const size_t open = std::min(text.find('{'), text.size());
            out += text.substr(0, open);
            text.remove_prefix(open);
            if (text.empty()) break;
            const size_t close = text.find('}');
            const auto value = std::ranges::find(values_, text.substr(1, close - 1), &Value::first);
            check(close != std::string_view::npos && value != values_.end(), "every gap of a phrase is filled");
            out += value->second;
            text.remove_prefix(close + 1);
        }
        return out;
    }

  private:
    using Value = std::pair<std::string_view, std::string>;
    std::vector<Value> values_;
};

/// One part of a wait, before it has words.
struct Part {
    std::string_view text;  ///< with {time}
    Nanos ns = 0;
    std::string tokens = {};
    std::string rate = {};
};

/// The finest unit in which a total of this length is told: 0.1 s from a second on, else milliseconds, else tenths.
Nanos unit_of(Nanos total) {
    if (total >= 100 * kNanosPerSecond) return kNanosPerSecond;
    if (total >= kNanosPerSecond) return kNanosPerSecond / 10;
    return total >= 10 * kNanosPerMilli ? kNanosPerMilli : kNanosPerMilli / 10;
}

/// `parts` and what is left of `total`, in whole units that sum to the rounded total: largest remainders go up.
/// The last entry is what is left.
std::vector<int64_t> rounded(const std::vector<Part>& parts, Nanos total, Nanos unit) {
    std::vector<Nanos> exact;
    Nanos left = total;
    for (const Part& part : parts) {
        exact.push_back(part.ns);
        left -= part.ns;
    }
    exact.push_back(std::max<Nanos>(left, 0));
    std::vector<int64_t> units;
    int64_t missing = (total + unit / 2) / unit;
    for (const Nanos ns : exact) {
        units.push_back(ns / unit);
        missing -= units.back();
    }
    std::vector<size_t> order(exact.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return exact[a] % unit > exact[b] % unit; });
    for (size_t i = 0; missing > 0; i = (i + 1) % order.size(), missing--) units[order[i]]++;
    return units;
}

class Teller {
  public:
    Teller(const Explained& request, Language language)
        : r_(request), f_(request.figures), language_(language), p_(phrases(language)) {}

    std::vector<Sentence> tell() {
        tell_outcome();
        tell_wait();
        tell_cache();
        tell_remembered();
        tell_rates();
        tell_guesses();
        tell_gaps();
        tell_longest();
        return std::move(out_);
    }

  private:
    void say(const char* about, std::string text) { out_.push_back({about, std::move(text)}); }
    std::string time(Nanos span) const { return time_text(span, language_); }
    std::string count(uint64_t n) const { return count_text(n, language_); }
    std::string_view token_word(uint64_t n) const { return n == 1 ? p_.token : p_.tokens; }

    void tell_outcome() {
        const Filled total = Filled().with("total", time(f_.total_ns));
        if (r_.outcome == Outcome::cancelled)
            say("outcome", total.into(f_.output_tokens > 0 ? p_.cancelled_after : p_.cancelled_before));
        if (r_.outcome == Outcome::error) say("outcome", total.into(p_.failed));
        if (r_.outcome == Outcome::refused) say("outcome", total.into(p_.refused));
    }

    /// Where the time to the first word went; where there is no such time, that of all of it.
    void tell_wait() {
        if (f_.first_word && f_.ttft_ns)
            say("first_word", wait(p_.first_word, *f_.first_word, *f_.ttft_ns, false));
        else if (r_.outcome == Outcome::stop || r_.outcome == Outcome::length)
            say("first_word", wait(p_.whole_answer, f_.receipt, f_.total_ns, true));
    }

    std::string wait(std::string_view sentence, const Receipt& receipt, Nanos total, bool writing) const {
        std::vector<Part> parts;
        const auto add = [&](Cause cause) { parts.push_back({p_.part[static_cast<size_t>(cause)], receipt[cause]}); };
        for (const Cause cause :
             {Cause::parse, Cause::tokenize, Cause::load, Cause::restore, Cause::transfer, Cause::queue})
            add(cause);
        // The step that reads a prompt's last token may be one of a single row: for a person it is reading still. Rates
        // are those of its own steps: what others took in between is told by itself.
        const Nanos wrote = receipt[Cause::own_decode];
        const bool is_last_step = !writing && wrote <= receipt[Cause::own_prefill] / 10;
        const Nanos reading = receipt[Cause::own_prefill] + (is_last_step ? wrote : 0);
        const bool paced = reading > 0 && f_.computed_tokens > 1;
        Part read{paced ? p_.part_reading : p_.part_reading_plain, reading};
        read.tokens = tokens_text(f_.computed_tokens, true, language_);
        if (paced) read.rate = rate_text(1e9 * f_.computed_tokens / static_cast<double>(reading), language_);
        parts.push_back(std::move(read));
        if (writing) {
            Part written{p_.part_writing, wrote};
            written.tokens = tokens_text(f_.output_tokens, false, language_);
            parts.push_back(std::move(written));
        } else if (!is_last_step) {
            add(Cause::own_decode);
        }
        for (const Cause cause :
             {Cause::others_prefill, Cause::others_decode, Cause::preempted, Cause::recompute, Cause::speculation_waste,
              Cause::mask, Cause::sample_and_text, Cause::client_slow, Cause::scheduler})
            add(cause);

        const Nanos unit = unit_of(total);
        const std::vector<int64_t> units = rounded(parts, total, unit);
        std::vector<std::string> told;
        for (size_t i = 0; i < parts.size(); i++) {
            if (units[i] == 0) continue;
            const Filled filled = Filled()
                                      .with("time", in_units(units[i], unit))
                                      .with("tokens", parts[i].tokens)
                                      .with("rate", parts[i].rate);
            told.push_back(filled.into(parts[i].text));
        }
        if (units.back() > 0) told.push_back(Filled().with("time", in_units(units.back(), unit)).into(p_.part_rest));
        const std::string whole = in_units((total + unit / 2) / unit, unit);
        return Filled().with("total", whole).with("parts", listed(told)).into(sentence);
    }

    std::string in_units(int64_t units, Nanos unit) const {
        const bool seconds = unit >= kNanosPerSecond / 10;
        const bool tenths = unit == kNanosPerSecond / 10 || unit == kNanosPerMilli / 10;
        std::string number = count(static_cast<uint64_t>(tenths ? units / 10 : units));
        if (tenths) number += p_.decimal + std::to_string(units % 10);
        return number + (seconds ? " s" : " ms");
    }

    static std::string listed(const std::vector<std::string>& parts) {
        std::string out;
        for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
        return out;
    }

    void tell_cache() {
        if (f_.cached_tokens > 0) {
            Filled filled;
            filled.with("n", count(f_.cached_tokens)).with("all", count(f_.prompt_tokens));
            filled.with("tokens", std::string(token_word(f_.prompt_tokens)));
            filled.with("were", std::string(f_.cached_tokens == 1 ? p_.was : p_.were));
            const std::optional<Nanos> saved = saved_time();
            if (saved) filled.with("time", time(*saved));
            say("cache", filled.into(saved ? p_.cached_saved : p_.cached));
        }
        if (!r_.miss) return;
        const Filled position = Filled().with("position", count(r_.miss_position));
        if (*r_.miss == ReuseEnd::differs && f_.cached_tokens > 0) say("cache", position.into(p_.miss_differs));
        if (*r_.miss == ReuseEnd::extends && f_.cached_tokens > 0) say("cache", position.into(p_.miss_extends));
        if (*r_.miss == ReuseEnd::evicted) say("cache", position.into(p_.miss_evicted));
        if (*r_.miss == ReuseEnd::off) say("cache", std::string(p_.miss_off));
    }

    /// What reading the cached tokens would have taken.
    std::optional<Nanos> saved_time() const {
        if (!r_.cost) return std::nullopt;
        StepShape shape;
        r_.cost->add(shape, 0, f_.cached_tokens, 0);
        return r_.cost->predict(shape) * kNanosPerMicro;
    }

    void tell_remembered() {
        if (!r_.remembered_tokens) return;
        Filled filled;
        filled.with("n", count(*r_.remembered_tokens)).with("tokens", std::string(token_word(*r_.remembered_tokens)));
        const std::optional<Nanos> again = again_after(r_);
        if (again) filled.with("time", time(*again));
        say("remembered", filled.into(again ? p_.remembered_again : p_.remembered));
    }

    void tell_rates() {
        std::optional<double> write = f_.output_tokens_per_second;
        if (!write && f_.per_output_token_ns.value_or(0) > 0)
            write = 1e9 / static_cast<double>(*f_.per_output_token_ns);
        if (!f_.prompt_tokens_per_second || !write) return;
        // Of a few tokens a rate says little, and where the answer was faster there is nothing to explain.
        if (f_.computed_tokens < kTokensThatTellARate || *f_.prompt_tokens_per_second <= *write) return;
        Filled filled;
        filled.with("read", rate_text(*f_.prompt_tokens_per_second, language_))
            .with("write", rate_text(*write, language_));
        // Below this many rows a step waits for the weights, beyond it for the arithmetic.
        const bool known = r_.cost && r_.cost->row_ps > 0 && r_.cost->weights_ps >= 2 * r_.cost->row_ps;
        if (known) {
            const auto weights = static_cast<Nanos>(r_.cost->weights_ps / cadans::StepCost::kWhole *
                                                    r_.cost->decode_scale / kPicosPerNano);
            filled.with("weights", time(weights)).with("rows", count(r_.cost->weights_ps / r_.cost->row_ps));
        }
        say("rates", filled.into(known ? p_.rates_machine : p_.rates));
    }

    void tell_guesses() {
        if (f_.drafted > 0) {
            Filled filled;
            filled.with("n", count(f_.drafted)).with("tokens", std::string(token_word(f_.drafted)));
            filled.with("right", count(f_.accepted)).with("were", std::string(f_.accepted == 1 ? p_.was : p_.were));
            filled.with("time", time(f_.receipt[Cause::speculation_waste])).with("drafting", time(f_.drafting_ns));
            say("guesses", filled.into(f_.drafting_ns > 0 ? p_.guessed_model : p_.guessed));
        }
        uint32_t held = 0;
        for (uint32_t hold = 1; hold < kDraftHolds; hold++) held += f_.draft_holds[hold];
        const auto mostly = [&](DraftHold hold) { return 2 * f_.draft_holds[static_cast<size_t>(hold)] > held; };
        if (held < kStepsThatTellWhy) return;
        if (mostly(DraftHold::slow)) say("guesses", std::string(p_.model_slow));
        if (mostly(DraftHold::unlikely)) say("guesses", std::string(p_.unlikely));
    }

    void tell_gaps() {
        if (!f_.gap_ns) return;
        const Filled filled = Filled()
                                  .with("p50", time(f_.gap_ns->p50))
                                  .with("max", time(f_.gap_ns->max))
                                  .with("n", count(r_.stalls))
                                  .with("felt", std::string(r_.stalls == 1 ? p_.felt_one : p_.felt));
        say("gaps", filled.into(r_.stalls > 0 ? p_.gaps_stalled : p_.gaps));
    }

    void tell_longest() {
        if (f_.total_ns <= 0) return;
        const Cause cause = f_.receipt.longest();
        const auto share =
            std::llround(100.0 * static_cast<double>(f_.receipt[cause]) / static_cast<double>(f_.total_ns));
        say("longest_wait", Filled()
                                .with("share", std::to_string(share))
                                .with("cause", std::string(p_.cause[static_cast<size_t>(cause)]))
                                .into(share > 50 ? p_.longest : p_.longest_part));
    }

    const Explained& r_;
    const Figures& f_;
    Language language_;
    const Phrases& p_;
    std::vector<Sentence> out_;
};

}  // namespace

std::vector<Sentence> explain(const Explained& request, Language language) { return Teller(request, language).tell(); }

std::string joined(const std::vector<Sentence>& sentences) {
    std::string out;
    for (const Sentence& sentence : sentences) out += (out.empty() ? "" : " ") + sentence.text;
    return out;
}

std::optional<Nanos> again_after(const Explained& request) {
    const Figures& f = request.figures;
    if (!request.cost || !request.remembered_tokens || f.prompt_tokens == 0) return std::nullopt;
    // The last token is computed in any case: it draws the first word.
    const uint32_t cached = std::min(*request.remembered_tokens, f.prompt_tokens - 1);
    StepShape shape;
    request.cost->add(shape, cached, f.prompt_tokens - cached, 1);
    return request.cost->predict(shape) * kNanosPerMicro + f.receipt[Cause::parse] + f.receipt[Cause::tokenize];
}

}  // namespace cadans::metrics
