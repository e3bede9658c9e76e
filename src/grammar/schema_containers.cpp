// Objects and arrays of a schema.
#include <fmt/format.h>

#include <algorithm>

#include "grammar/schema_compiler.h"

namespace cadans::grammar {
namespace {

constexpr size_t kNamePatternsMax = 4;       // they make twice as many classes of names each
constexpr size_t kOthersMax = 32;            // that are not declared, where properties are counted
constexpr uint64_t kCountedStates = 20'000;  // properties × counts, where properties are counted

std::string escaped(const std::string& name) {
    std::string out;
    for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
}

void insert(SchemaCompiler::Places& places, SchemaDocument::Place place) {
    const auto at = std::lower_bound(places.begin(), places.end(), place);
    if (at == places.end() || *at != place) places.insert(at, place);
}

const Json* keyword(const SchemaDocument& document, SchemaDocument::Place place, const char* name) {
    const Json& schema = document.at(place);
    if (!schema.is_object()) return nullptr;
    if (document.draft() == Draft::draft7 && schema.contains("$ref")) return nullptr;
    const auto at = schema.find(name);
    return at == schema.end() ? nullptr : &*at;
}

}  // namespace

std::vector<std::string> SchemaCompiler::declared_names(const Facts& facts) const {
    std::vector<std::string> out;
    std::set<std::string> seen;
    for (const Place place : facts.places)
        if (const Json* properties = keyword(document_, place, "properties"))
            for (const auto& [name, schema] : properties->items())
                if (seen.insert(name).second) out.push_back(name);
    for (const std::string& name : facts.required)
        if (seen.insert(name).second) out.push_back(name);
    return out;
}

/// Whether names that no schema names and no pattern matches are written.
bool SchemaCompiler::writes_undeclared(const Facts& facts) const {
    bool any_named = false;
    for (const Place place : facts.places) {
        if (keyword(document_, place, "additionalProperties") != nullptr) return true;
        for (const char* name : {"properties", "patternProperties"})
            any_named |= keyword(document_, place, name) != nullptr;
    }
    return options_.undeclared_properties || !any_named;
}

/// What the value of a property must satisfy.
Result<SchemaCompiler::Places> SchemaCompiler::property(const Facts& facts, const std::string& name) {
    Places out;
    for (const Place place : facts.places) {
        bool named = false;
        const auto add = [&](const std::string& path, const Json& schema) -> Status {
            auto below = document_.below(place, path, schema);
            if (!below) return std::move(below).error();
            insert(out, *below);
            named = true;
            return Ok{};
        };
        if (const Json* properties = keyword(document_, place, "properties"); properties && properties->contains(name))
            if (Status done = add("properties/" + escaped(name), (*properties)[name]); !done)
                return std::move(done).error();
        if (const Json* patterns = keyword(document_, place, "patternProperties"))
            for (const auto& [pattern, schema] : patterns->items()) {
                auto automaton = searched(pattern, place, "patternProperties/" + escaped(pattern));
                if (!automaton) return std::move(automaton).error();
                if (!(*automaton)->accepts(name)) continue;
                if (Status done = add("patternProperties/" + escaped(pattern), schema); !done)
                    return std::move(done).error();
            }
        const Json* additional = keyword(document_, place, "additionalProperties");
        if (!named && additional != nullptr)
            if (Status done = add("additionalProperties", *additional); !done) return std::move(done).error();
    }
    return out;
}

Result<bool> SchemaCompiler::never(const Places& places) {
    auto ways = alternatives(places);
    if (!ways) return std::move(ways).error();
    for (const Places& way : *ways) {
        auto facts = facts_of(document_, way);
        if (!facts) return std::move(facts).error();
        if (!facts->never && facts->types != 0) return false;
    }
    return true;
}

Result<SchemaCompiler::Places> SchemaCompiler::name_schemas(const Facts& facts) {
    Places out;
    for (const Place place : facts.places)
        if (const Json* names = keyword(document_, place, "propertyNames")) {
            auto below = document_.below(place, "propertyNames", *names);
            if (!below) return std::move(below).error();
            insert(out, *below);
        }
    return out;
}

/// The names that propertyNames allow; nothing when all are.
Result<std::optional<TextAutomaton>> SchemaCompiler::names(const Facts& facts) {
    auto schemas = name_schemas(facts);
    if (!schemas) return std::move(schemas).error();
    if (schemas->empty()) return std::optional<TextAutomaton>();
    auto ways = alternatives(*schemas);
    if (!ways) return std::move(ways).error();
    if (ways->size() > 1)
        return document_.unsupported((*schemas)[0], "", "choices in 'propertyNames' are not supported");
    auto said = facts_of(document_, (*ways)[0]);
    if (!said) return std::move(said).error();
    if (said->never || !(said->types & kString)) return std::optional(TextAutomaton::words({}));
    if (!said->only_values) return text(*said);
    std::vector<std::string> words;
    for (const Json* value : said->values) {
        auto valid = holds_plainly(*value, *said, 0);
        if (!valid) return std::move(valid).error();
        if (*valid && value->is_string()) words.push_back(value->get<std::string>());
    }
    return std::optional(TextAutomaton::words(words));
}

RuleId SchemaCompiler::member(Nfa key, Nfa::State behind, const std::string& name, RuleId value) {
    const Nfa::State colon = key.literal(behind, ":"), spaced = key.add();
    key.join(colon, spaced);
    key.bytes(colon, ' ', ' ', spaced);
    key.accept(key.call(spaced, value));
    return rules_.add(name, std::move(key));
}

Result<SchemaCompiler::Members> SchemaCompiler::members(const Facts& facts) {
    Members out;
    const std::vector<std::string> named = declared_names(facts);
    const Place place = facts.places.empty() ? 0 : facts.places[0];
    if (named.size() > limits_.properties)
        return document_.refused(place, "properties", fmt::format("more than {} properties", limits_.properties));
    auto allowed = names(facts);
    if (!allowed) return std::move(allowed).error();
    for (const std::string& name : named) {
        auto schemas = property(facts, name);
        if (!schemas) return std::move(schemas).error();
        auto nothing = never(*schemas);
        if (!nothing) return std::move(nothing).error();
        const bool required = std::find(facts.required.begin(), facts.required.end(), name) != facts.required.end();
        if (*nothing || (*allowed && !(*allowed)->accepts(name))) {
            out.never |= required;
            continue;
        }
        const std::string spelled = options_.quote.empty() ? json_string(name) : bare_name(name);
        if (spelled.empty())
            return unsupported("the way in which this model writes calls has no spelling for this name",
                               document_.name(place) + "/properties/" + escaped(name));
        Nfa key = rules_.body();
        const Nfa::State behind = key.literal(0, spelled);
        const RuleId rule =
            member(std::move(key), behind, document_.name(place) + "/properties/" + escaped(name), value(*schemas));
        out.declared.push_back({rule, required});
    }
    if (Status done = add_undeclared(facts, named, out); !done) return std::move(done).error();
    return out;
}

/// What the value of a property must satisfy whose name no schema names and these patterns match.
Result<SchemaCompiler::Places> SchemaCompiler::undeclared(const Facts& facts, const std::vector<std::string>& matched) {
    Places out;
    for (const Place place : facts.places) {
        bool named = false;
        if (const Json* patterns = keyword(document_, place, "patternProperties"))
            for (const auto& [pattern, schema] : patterns->items()) {
                if (std::find(matched.begin(), matched.end(), pattern) == matched.end()) continue;
                auto below = document_.below(place, "patternProperties/" + escaped(pattern), schema);
                if (!below) return std::move(below).error();
                insert(out, *below);
                named = true;
            }
        const Json* additional = keyword(document_, place, "additionalProperties");
        if (named || additional == nullptr) continue;
        auto below = document_.below(place, "additionalProperties", *additional);
        if (!below) return std::move(below).error();
        insert(out, *below);
    }
    return out;
}

/// Names that are not declared fall into classes by the patterns that match them; each class has its own values.
Status SchemaCompiler::add_undeclared(const Facts& facts, const std::vector<std::string>& named, Members& members) {
    std::vector<std::string> patterns;
    for (const Place place : facts.places)
        if (const Json* list = keyword(document_, place, "patternProperties"))
            for (const auto& [pattern, schema] : list->items())
                if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
    const Place place = facts.places.empty() ? 0 : facts.places[0];
    if (patterns.size() > kNamePatternsMax)
        return document_.unsupported(place, "patternProperties",
                                     fmt::format("more than {} patterns", kNamePatternsMax));
    auto allowed = names(facts);
    if (!allowed) return std::move(allowed).error();
    for (uint32_t which = 0; which < 1U << patterns.size(); which++) {
        if (which == 0 && !writes_undeclared(facts)) continue;
        std::vector<std::string> matched;
        for (size_t i = 0; i < patterns.size(); i++)
            if (which >> i & 1) matched.push_back(patterns[i]);
        auto schemas = undeclared(facts, matched);
        if (!schemas) return std::move(schemas).error();
        auto nothing = never(*schemas);
        if (!nothing) return std::move(nothing).error();
        if (*nothing) continue;
        Nfa key = rules_.body();
        Nfa::State behind = 0;
        if (named.empty() && patterns.empty() && !*allowed) {
            behind = key.call(0, json_.name());
        } else {
            TextAutomaton all = TextAutomaton::words(named).complement();
            const auto also = [&](const TextAutomaton& other) -> Status {
                auto both = TextAutomaton::intersection(all, other, limits_);
                if (!both) return Error{both.error().code, both.error().message, document_.name(place)};
                all = *std::move(both);
                return Ok{};
            };
            if (*allowed)
                if (Status done = also(**allowed); !done) return done;
            for (size_t i = 0; i < patterns.size(); i++) {
                auto found = searched(patterns[i], place, "patternProperties/" + escaped(patterns[i]));
                if (!found) return std::move(found).error();
                if (Status done = also(which >> i & 1 ? **found : (*found)->complement()); !done) return done;
            }
            if (!options_.quote.empty())
                if (Status done = also(TextAutomaton::bare_names()); !done) return done;
            if (all.empty()) continue;
            Nfa body = rules_.body();
            body.accept(options_.quote.empty() ? all.add_json_string(body, 0) : all.add_raw(body, 0));
            behind = key.call(0, rules_.add(document_.name(place), std::move(body)));
            if (Status done = fits(place); !done) return done;
        }
        members.undeclared.push_back(member(std::move(key), behind, document_.name(place), value(*schemas)));
    }
    return Ok{};
}

/// Members in order. Two states for each place in the order and each count that matters: after a member (where the
/// object may close) and after a comma (where a member must come, this one or a later one).
Status SchemaCompiler::add_members(Nfa& nfa, Nfa::State end, const Facts& facts, const Members& members) {
    const size_t n = members.declared.size();
    const auto needed = static_cast<size_t>(
        std::count_if(members.declared.begin(), members.declared.end(), [](const auto& m) { return m.required; }));
    const bool open = !members.undeclared.empty();
    const Place place = facts.places.empty() ? 0 : facts.places[0];
    const bool counts_most = facts.properties_max != UINT64_MAX && (open || facts.properties_max < n);
    const bool counts_least = facts.properties_min > needed;
    // A name may come twice among those that are not declared, so only the first of them surely adds to the count.
    if (open && facts.properties_min > n + 1)
        return document_.unsupported(place, "minProperties",
                                     "'minProperties' above what is declared, and one, is not supported");
    // Where others may come, a large maxProperties is kept by writing fewer.
    const uint64_t most_counted =
        open ? std::min<uint64_t>(facts.properties_max, n + kOthersMax) : facts.properties_max;
    const uint64_t counted = counts_most ? most_counted : counts_least ? facts.properties_min : 1;
    const uint64_t least = counts_least ? facts.properties_min : 0;
    if (counted * (n + 1) > kCountedStates) return document_.unsupported(place, "", "too many properties to count");
    const auto top = static_cast<size_t>(counted);

    const Nfa::State opened = nfa.call(nfa.literal(0, "{"), json_.space());
    const Nfa::State closing = nfa.add();
    nfa.bytes(nfa.call(closing, json_.space()), '}', '}', end);
    if (needed == 0 && least == 0) nfa.bytes(opened, '}', '}', end);

    std::vector<std::vector<Nfa::State>> after(n + 1), before(n + 1);
    for (size_t i = 0; i <= n; i++)
        for (size_t d = 0; d <= top; d++) {
            after[i].push_back(nfa.add());
            before[i].push_back(nfa.add());
        }
    nfa.join(opened, before[0][0]);
    size_t left = needed;  // that are required at i and behind
    for (size_t i = 0; i <= n; i++) {
        for (size_t d = 0; d <= top; d++) {
            if (d > 0) nfa.call(nfa.literal(after[i][d], ","), json_.space(), before[i][d]);
            if (d > 0 && left == 0 && d >= least) nfa.join(after[i][d], closing);
            if (i == n) continue;
            if (!members.declared[i].required) nfa.join(before[i][d], before[i + 1][d]);
            if (d < top)
                nfa.call(before[i][d], members.declared[i].member, after[i + 1][d + 1]);
            else if (!counts_most)
                nfa.call(before[i][d], members.declared[i].member, after[i + 1][d]);
        }
        if (i < n && members.declared[i].required) left--;
    }
    for (size_t d = 0; d <= top && open; d++) {
        Nfa::State at = before[n][d];
        const size_t most = counts_most ? top - d : 1;
        for (size_t u = 0; u < most; u++) {
            const Nfa::State behind = nfa.add();
            for (const RuleId rule : members.undeclared) nfa.call(at, rule, behind);
            if (d + 1 >= least) nfa.join(behind, closing);
            const Nfa::State comma = nfa.call(nfa.literal(behind, ","), json_.space());
            if (!counts_most) {
                const Nfa::State again = nfa.add();
                nfa.join(comma, again);
                for (const RuleId rule : members.undeclared) nfa.call(again, rule, behind);
            }
            at = comma;
        }
    }
    return Ok{};
}

Status SchemaCompiler::add_object(Nfa& nfa, Nfa::State end, const Facts& facts) {
    auto made = members(facts);
    if (!made) return std::move(made).error();
    if (made->never || facts.properties_min > facts.properties_max) return Ok{};
    return add_members(nfa, end, facts, *made);
}

size_t SchemaCompiler::listed_items(const Facts& facts) const {
    size_t most = 0;
    for (const Place place : facts.places)
        for (const char* name : {"prefixItems", "items"})
            if (const Json* list = keyword(document_, place, name); list != nullptr && list->is_array())
                most = std::max(most, list->size());
    return most;
}

Result<SchemaCompiler::Places> SchemaCompiler::item(const Facts& facts, size_t index) {
    Places out;
    for (const Place place : facts.places) {
        const bool old = document_.draft() == Draft::draft7;
        const Json* listed = keyword(document_, place, old ? "items" : "prefixItems");
        const Json* others = keyword(document_, place, "items");
        const bool list = listed != nullptr && listed->is_array();
        if (old && list) others = keyword(document_, place, "additionalItems");
        const Json* schema = list && index < listed->size() ? &(*listed)[index] : others;
        if (schema == nullptr) continue;
        const std::string path = list && index < listed->size()
                                     ? fmt::format("{}/{}", old ? "items" : "prefixItems", index)
                                 : old && list ? "additionalItems"
                                               : "items";
        auto below = document_.below(place, path, *schema);
        if (!below) return std::move(below).error();
        insert(out, *below);
    }
    return out;
}

Status SchemaCompiler::add_array(Nfa& nfa, Nfa::State end, const Facts& facts) {
    const Place place = facts.places.empty() ? 0 : facts.places[0];
    const size_t listed = listed_items(facts);
    uint64_t least = facts.items_min, most = facts.items_max;
    std::vector<RuleId> rules;  // of the listed items, and of all others
    for (size_t i = 0; i <= listed && i < most; i++) {
        auto schemas = item(facts, i);
        if (!schemas) return std::move(schemas).error();
        auto nothing = never(*schemas);
        if (!nothing) return std::move(nothing).error();
        if (*nothing)
            most = i;
        else
            rules.push_back(value(*schemas));
    }
    if (least > most) return Ok{};
    if (facts.unique_items && most > 1)
        return document_.unsupported(place, "uniqueItems", "'uniqueItems' is kept for arrays of at most one item");
    if (std::max<uint64_t>(least, listed) > limits_.array_items_max)
        return document_.unsupported(place, "minItems",
                                     fmt::format("arrays are kept up to {} items", limits_.array_items_max));
    const bool endless = most == UINT64_MAX;
    if (!endless) most = std::min<uint64_t>(most, limits_.array_items_max);

    const Nfa::State opened = nfa.call(nfa.literal(0, "["), json_.space());
    if (least == 0) nfa.bytes(opened, ']', ']', end);
    if (most == 0) return Ok{};
    const Nfa::State closing = nfa.add();
    nfa.bytes(nfa.call(closing, json_.space()), ']', ']', end);
    Nfa::State at = nfa.add();
    nfa.join(opened, at);
    const uint64_t last =
        endless ? std::max<uint64_t>(listed, least > 0 ? least - 1 : 0) : most - 1;  // the item that repeats, or ends
    for (uint64_t i = 0; i <= last && !nfa.full(); i++) {
        const Nfa::State behind = nfa.call(at, rules[std::min<size_t>(static_cast<size_t>(i), rules.size() - 1)]);
        if (i + 1 >= least) nfa.join(behind, closing);
        if (i < last) {
            at = nfa.call(nfa.literal(behind, ","), json_.space());
        } else if (endless) {
            nfa.call(nfa.literal(behind, ","), json_.space(), at);
        }
    }
    return Ok{};
}

}  // namespace cadans::grammar
