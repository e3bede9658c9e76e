// Strings and numbers of a schema.
#include <fmt/format.h>

#include "grammar/schema_compiler.h"

namespace cadans::grammar {

/// The texts in which a pattern is found.
Result<const TextAutomaton*> SchemaCompiler::searched(const std::string& source, Place place,
                                                      std::string_view keyword) {
    if (const auto at = patterns_.find(source); at != patterns_.end()) return &at->second;
    const auto placed = [&](Error error) {
        const std::string where = error.where.empty() ? "" : error.where + ": ";
        return Error{error.code, where + error.message, document_.name(place) + "/" + std::string(keyword)};
    };
    auto pattern = read_regex(source, limits_);
    if (!pattern) return placed(std::move(pattern).error());
    auto automaton = TextAutomaton::of(*pattern, true, limits_);
    if (!automaton) return placed(std::move(automaton).error());
    return &patterns_.emplace(source, *std::move(automaton)).first->second;
}

Result<std::optional<TextAutomaton>> SchemaCompiler::text(const Facts& facts) {
    std::optional<TextAutomaton> all;
    const auto also = [&](const TextAutomaton& other) -> Status {
        if (!all) {
            all = other;
            return Ok{};
        }
        auto both = TextAutomaton::intersection(*all, other, limits_);
        if (!both) return std::move(both).error();
        all = *std::move(both);
        return Ok{};
    };
    const Place place = facts.places.empty() ? 0 : facts.places[0];
    const auto placed = [&](Error error) { return Error{error.code, error.message, document_.name(place)}; };
    for (const auto& search : facts.patterns) {
        auto automaton = searched(search.pattern, search.place, search.keyword);
        if (!automaton) return std::move(automaton).error();
        if (Status done = also(**automaton); !done) return placed(std::move(done).error());
    }
    if (facts.length_min > 0 || facts.length_max != UINT64_MAX) {
        if (facts.length_min > limits_.string_characters_max)
            return document_.unsupported(place, "",
                                         fmt::format("'minLength' is kept up to {}", limits_.string_characters_max));
        const bool endless = facts.length_max == UINT64_MAX;
        const auto most = static_cast<uint32_t>(std::min<uint64_t>(facts.length_max, limits_.string_characters_max));
        if (facts.length_min > facts.length_max) return std::optional(TextAutomaton::words({}));
        const auto lengths =
            TextAutomaton::lengths(static_cast<uint32_t>(facts.length_min), endless ? Nfa::kEndless : most);
        if (Status done = also(lengths); !done) return placed(std::move(done).error());
    }
    return all;
}

/// Those that the notation can spell.
Result<TextAutomaton> SchemaCompiler::spellable(const TextAutomaton& texts, Place place) const {
    if (options_.quote.empty()) return texts;
    auto both = TextAutomaton::intersection(texts, TextAutomaton::without(options_.quote), limits_);
    if (!both) return Error{both.error().code, both.error().message, document_.name(place)};
    return both;
}

Nfa::State SchemaCompiler::add_spelled(Nfa& nfa, Nfa::State from, const TextAutomaton& texts) const {
    return options_.quote.empty() ? texts.add_json_string(nfa, from) : texts.add_quoted(nfa, from, options_.quote);
}

Status SchemaCompiler::add_string(Nfa& nfa, Nfa::State end, const Facts& facts) {
    const uint64_t most = std::min<uint64_t>(facts.length_max, limits_.string_characters_max);
    std::string key =
        fmt::format("{} {}", facts.length_min, facts.length_max == UINT64_MAX ? "any" : std::to_string(most));
    for (const auto& search : facts.patterns) key += "\n" + search.pattern;
    const auto [at, fresh] = strings_.try_emplace(key, 0);
    if (fresh) {
        auto automaton = text(facts);
        if (!automaton) return std::move(automaton).error();
        if (*automaton) {
            const Place place = facts.places.empty() ? 0 : facts.places[0];
            auto texts = spellable(**automaton, place);
            if (!texts) return std::move(texts).error();
            Nfa body = rules_.body();
            body.accept(add_spelled(body, 0, *texts));
            at->second = rules_.add(document_.name(place), std::move(body));
            if (Status done = fits(place); !done) return done;
        } else {
            at->second = json_.string();
        }
    }
    nfa.call(0, at->second, end);
    return Ok{};
}

Status SchemaCompiler::add_numbers(Nfa& nfa, Nfa::State end, const Facts& facts) {
    const Place place = facts.places.empty() ? 0 : facts.places[0];
    if (!(facts.types & kInteger))
        return document_.unsupported(place, "", "numbers that must not be integers are not supported");
    NumberRange range = facts.number;
    range.integers |= !(facts.types & kFraction);
    if (!range.bounded()) {
        nfa.call(0, range.integers ? json_.integer() : json_.number(), end);
        return Ok{};
    }
    Nfa body = rules_.body();
    body.accept(add_number(body, 0, range));
    nfa.call(0, rules_.add(document_.name(place), std::move(body)), end);
    return fits(place);
}

}  // namespace cadans::grammar
