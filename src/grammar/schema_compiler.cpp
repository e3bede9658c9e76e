#include "grammar/schema_compiler.h"

#include <fmt/format.h>

#include <algorithm>

namespace cadans::grammar {
namespace {

constexpr uint32_t kNestingMax = 24;  // oneOf inside the branches of another
constexpr size_t kPathMax = 256;      // references and allOf behind each other

void insert(SchemaCompiler::Places& places, SchemaDocument::Place place) {
    const auto at = std::lower_bound(places.begin(), places.end(), place);
    if (at == places.end() || *at != place) places.insert(at, place);
}

}  // namespace

Result<RuleId> SchemaCompiler::write() {
    const RuleId root = value({document_.root()});
    for (size_t i = 0; i < unwritten_.size(); i++) {
        const auto [rule, places] = unwritten_[i];
        auto body = value_body(places);
        if (!body) return std::move(body).error();
        rules_.set(rule, *std::move(body));
        if (Status done = fits(places.empty() ? 0 : places[0]); !done) return std::move(done).error();
    }
    return root;
}

Status SchemaCompiler::fits(Place place) const {
    if (!rules_.full()) return Ok{};
    return bad_input("the schema becomes larger than is allowed when it is written out with all that comes before it",
                     document_.name(place));
}

Status SchemaCompiler::spend(uint64_t work, Place place) {
    if (!rules_.spend(work))
        return document_.unsupported(place, "", "the schema takes too long to compare with itself");
    return Ok{};
}

RuleId SchemaCompiler::value(Places places) {
    std::erase_if(places, [&](Place place) {
        const Json& schema = document_.at(place);
        return schema.is_boolean() ? schema.get<bool>() : schema.empty();
    });
    if (places.empty()) return json_.value();
    const auto [at, fresh] = values_.try_emplace(places, 0);
    if (fresh) {
        at->second = rules_.add(document_.name(places[0]));
        unwritten_.emplace_back(at->second, std::move(places));
    }
    return at->second;
}

Result<Nfa> SchemaCompiler::value_body(const Places& places) {
    Nfa nfa = rules_.body();
    const Nfa::State end = nfa.add();
    nfa.accept(end);
    auto ways = alternatives(places);
    if (!ways) return std::move(ways).error();
    for (const Places& way : *ways) {
        auto facts = facts_of(document_, way);
        if (!facts) return std::move(facts).error();
        if (facts->never) continue;
        if (Status done = add_alternative(nfa, end, *facts); !done) return std::move(done).error();
        if (Status done = fits(places.empty() ? 0 : places[0]); !done) return std::move(done).error();
    }
    return nfa;
}

Status SchemaCompiler::add_alternative(Nfa& nfa, Nfa::State end, const Facts& facts) {
    if (facts.only_values) {
        for (const Json* one : facts.values) {
            auto valid = holds_plainly(*one, facts, 0);
            if (!valid) return std::move(valid).error();
            if (*valid) add_literal(nfa, 0, *one, end);
        }
        return Ok{};
    }
    if (facts.types & kNull) nfa.join(nfa.literal(0, "null"), end);
    if (facts.types & kBoolean) {
        nfa.join(nfa.literal(0, "true"), end);
        nfa.join(nfa.literal(0, "false"), end);
    }
    if (facts.types & (kInteger | kFraction))
        if (Status done = add_numbers(nfa, end, facts); !done) return done;
    if (facts.types & kString)
        if (Status done = add_string(nfa, end, facts); !done) return done;
    if (facts.types & kArray)
        if (Status done = add_array(nfa, end, facts); !done) return done;
    if (facts.types & kObject)
        if (Status done = add_object(nfa, end, facts); !done) return done;
    return Ok{};
}

/// A value as the schema gives it, its names in that order.
void SchemaCompiler::add_literal(Nfa& nfa, Nfa::State from, const Json& value, Nfa::State to) {
    const auto part = [&](const Json& inner) {
        const Nfa::State behind = nfa.add();
        add_literal(nfa, from, inner, behind);
        return behind;
    };
    if (!value.is_structured()) {
        std::string text = value.is_string() ? json_string(value.get_ref<const std::string&>()) : value.dump();
        if (const std::string& quote = options_.quote; value.is_string() && !quote.empty()) {
            const auto& plain = value.get_ref<const std::string&>();
            if (plain.find(quote) != plain.npos) return;  // it cannot be spelled, so it is not written
            text = quote + plain + quote;
        }
        nfa.join(nfa.literal(from, text), to);
        return;
    }
    from = nfa.call(nfa.literal(from, value.is_array() ? "[" : "{"), json_.space());
    bool first = true;
    for (const auto& [key, inner] : value.items()) {
        if (!first) from = nfa.call(nfa.literal(from, ","), json_.space());
        if (value.is_object()) {
            const std::string name = options_.quote.empty() ? json_string(key) : bare_name(key);
            if (name.empty()) return;
            const Nfa::State colon = nfa.literal(from, name + ":");
            from = nfa.add();
            nfa.join(colon, from);
            nfa.bytes(colon, ' ', ' ', from);
        }
        from = part(inner);
        first = false;
    }
    if (!first) from = nfa.call(from, json_.space());
    nfa.join(nfa.literal(from, value.is_array() ? "]" : "}"), to);
}

/// Follows references and allOf from a place; anyOf and oneOf are put aside.
Status SchemaCompiler::expand(Place place, Expanded& out, std::vector<Place>& path) {
    if (std::find(path.begin(), path.end(), place) != path.end())
        return document_.refused(place, "", "this refers to itself without an end");
    if (path.size() > kPathMax) return document_.refused(place, "", "references are nested too deep");
    if (std::binary_search(out.places.begin(), out.places.end(), place)) return Ok{};
    path.push_back(place);
    insert(out.places, place);
    const Json& schema = document_.at(place);
    if (schema.is_object()) {
        const auto reference = schema.find("$ref");
        if (reference != schema.end()) {
            auto target = document_.target(place, reference->get<std::string>());
            if (!target) return std::move(target).error();
            if (Status done = expand(*target, out, path); !done) return done;
        }
        if (reference == schema.end() || document_.draft() != Draft::draft7) {
            if (const auto all = schema.find("allOf"); all != schema.end())
                for (size_t i = 0; i < all->size(); i++) {
                    auto part = document_.below(place, fmt::format("allOf/{}", i), (*all)[i]);
                    if (!part) return std::move(part).error();
                    if (Status done = expand(*part, out, path); !done) return done;
                }
            for (const char* keyword : {"anyOf", "oneOf"})
                if (schema.contains(keyword)) out.choices.push_back({place, keyword, path});
        }
    }
    path.pop_back();
    return Ok{};
}

Result<std::vector<SchemaCompiler::Place>> SchemaCompiler::branches(const Choice& choice) {
    std::vector<Place> out;
    const Json& list = document_.at(choice.place)[choice.keyword];
    for (size_t i = 0; i < list.size(); i++) {
        auto branch = document_.below(choice.place, fmt::format("{}/{}", choice.keyword, i), list[i]);
        if (!branch) return std::move(branch).error();
        if (list[i].is_boolean() && !list[i].get<bool>()) continue;
        out.push_back(*branch);
    }
    return out;
}

Result<std::vector<SchemaCompiler::Places>> SchemaCompiler::alternatives(const Places& places) {
    Expanded expanded;
    for (const Place place : places) {
        std::vector<Place> path;
        if (Status done = expand(place, expanded, path); !done) return std::move(done).error();
    }
    std::vector<Places> out;
    if (Status done = choose(expanded, out); !done) return std::move(done).error();
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

/// Takes the last choice that is open in each of its ways, until none is.
Status SchemaCompiler::choose(const Expanded& expanded, std::vector<Places>& out) {
    if (Status done = spend(1, expanded.places.empty() ? 0 : expanded.places[0]); !done) return done;
    if (expanded.choices.empty()) {
        out.push_back(expanded.places);
        if (out.size() > limits_.alternatives)
            return document_.unsupported(
                expanded.places.empty() ? 0 : expanded.places[0], "",
                fmt::format("choices multiply into more than {} alternatives", limits_.alternatives));
        return Ok{};
    }
    Expanded rest = expanded;
    const Choice choice = rest.choices.back();
    rest.choices.pop_back();
    auto ways = branches(choice);
    if (!ways) return std::move(ways).error();
    if (std::string_view(choice.keyword) == "oneOf")
        if (Status done = show_disjoint(choice, *ways, expanded.places); !done) return done;
    for (const Place way : *ways) {
        Expanded with = rest;
        std::vector<Place> path = choice.path;
        if (Status done = expand(way, with, path); !done) return done;
        if (Status done = choose(with, out); !done) return done;
    }
    return Ok{};
}

Status SchemaCompiler::show_disjoint(const Choice& choice, const std::vector<Place>& branches, const Places& context) {
    // Where a branch leads back here, the answer is being found further out; a refusal there refuses all.
    if (!shown_.emplace(choice.place, std::string(choice.keyword), context).second) return Ok{};
    if (nesting_ >= kNestingMax)
        return document_.unsupported(choice.place, choice.keyword,
                                     "'oneOf' is nested too deep to compare its branches");
    nesting_++;
    const Status done = compare_branches(choice, branches, context);
    nesting_--;
    return done;
}

Status SchemaCompiler::compare_branches(const Choice& choice, const std::vector<Place>& branches,
                                        const Places& context) {
    for (size_t i = 0; i < branches.size(); i++)
        for (size_t k = i + 1; k < branches.size(); k++) {
            auto apart = disjoint({branches[i]}, {branches[k]}, context);
            if (!apart) return std::move(apart).error();
            if (!*apart)
                return document_.unsupported(
                    choice.place, choice.keyword,
                    fmt::format("'oneOf' is kept where its branches exclude each other, which {} and {} do not show; "
                                "'anyOf' says what is meant in most cases",
                                document_.name(branches[i]), document_.name(branches[k])));
        }
    return Ok{};
}

Result<Grammar> schema_grammar(const nlohmann::ordered_json& schema, SchemaOptions options, const Limits& limits) {
    Rules rules(limits);
    auto root = add_schema(rules, schema, std::move(options));
    if (!root) return std::move(root).error();
    return rules.compile(*root);
}

Result<RuleId> add_schema(Rules& rules, const nlohmann::ordered_json& schema, SchemaOptions options) {
    auto document = SchemaDocument::open(schema, rules.limits());
    if (!document) return std::move(document).error();
    return SchemaCompiler(*document, std::move(options), rules).write();
}

Result<Grammar> schema_text_grammar(std::string_view schema, SchemaOptions options, const Limits& limits) {
    if (schema.size() > limits.source_bytes)
        return bad_input(fmt::format("the schema has {} bytes, {} are allowed", schema.size(), limits.source_bytes),
                         "#");
    // Brackets are counted before anything is built from them; those inside strings only make the count too careful.
    size_t depth = 0, deepest = 0;
    for (const char c : schema) {
        if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
        if ((c == ']' || c == '}') && depth > 0) depth--;
    }
    if (deepest > size_t{limits.depth} * 16) return bad_input("the schema is nested too deep", "#");
    const Json parsed = Json::parse(schema, nullptr, false);
    if (parsed.is_discarded()) return bad_input("the schema is not valid JSON", "#");
    return schema_grammar(parsed, std::move(options), limits);
}

}  // namespace cadans::grammar
