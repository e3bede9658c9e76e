// Whether a given value satisfies a schema, and whether two schemas have no value in common.
#include <algorithm>

#include "grammar/schema_compiler.h"

namespace cadans::grammar {
namespace {

constexpr uint32_t kDepthMax = 64;      // of values and references that are followed
constexpr uint32_t kDisjointDepth = 8;  // of properties inside properties that may tell branches apart

uint64_t characters(std::string_view text) {
    uint64_t count = 0;
    for (; !text.empty(); count++) (void)take_character(text);
    return count;
}

bool within(const Json& number, const NumberRange& range) {
    const auto value = Decimal::read(number.dump());
    if (!value) return false;
    if (range.low && (compare(*value, *range.low) < 0 || (range.low_open && compare(*value, *range.low) == 0)))
        return false;
    if (range.high && (compare(*value, *range.high) > 0 || (range.high_open && compare(*value, *range.high) == 0)))
        return false;
    if (range.multiple == 1) return true;
    if (!value->whole()) return false;
    uint64_t rest = 0;
    for (int64_t i = 0; i < value->exponent && i < 400; i++)
        rest = (rest * 10 + static_cast<uint64_t>(i < static_cast<int64_t>(value->digits.size())
                                                      ? value->digits[static_cast<size_t>(i)] - '0'
                                                      : 0)) %
               range.multiple;
    return rest == 0;
}

bool all_different(const Json& array) {
    for (size_t i = 0; i < array.size(); i++)
        for (size_t k = i + 1; k < array.size(); k++)
            if (same_value(array[i], array[k])) return false;
    return true;
}

}  // namespace

Result<bool> SchemaCompiler::holds(const Json& value, const Places& places, uint32_t depth) {
    for (const Place place : places) {
        auto one = holds_at(value, place, depth);
        if (!one || !*one) return one;
    }
    return true;
}

Result<bool> SchemaCompiler::holds_at(const Json& value, Place place, uint32_t depth) {
    if (depth > kDepthMax) return document_.unsupported(place, "", "a value nested too deep to be checked");
    if (Status done = spend(1, place); !done) return std::move(done).error();
    Expanded all;
    std::vector<Place> path;
    if (Status done = expand(place, all, path); !done) return std::move(done).error();
    auto facts = facts_of(document_, all.places);
    if (!facts) return std::move(facts).error();
    auto plain = holds_plainly(value, *facts, depth);
    if (!plain || !*plain) return plain;
    for (const Choice& choice : all.choices) {
        auto ways = branches(choice);
        if (!ways) return std::move(ways).error();
        size_t valid = 0;
        for (const Place way : *ways) {
            auto one = holds_at(value, way, depth + 1);
            if (!one) return one;
            valid += *one;
        }
        if (valid == 0 || (valid > 1 && std::string_view(choice.keyword) == "oneOf")) return false;
    }
    return true;
}

Result<bool> SchemaCompiler::holds_plainly(const Json& value, const Facts& facts, uint32_t depth) {
    if (facts.never || !(facts.types & type_of(value))) return false;
    if (facts.only_values && std::none_of(facts.values.begin(), facts.values.end(),
                                          [&](const Json* one) { return same_value(value, *one); }))
        return false;
    if (value.is_number()) return within(value, facts.number);
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        const uint64_t length = characters(text);
        if (length < facts.length_min || length > facts.length_max) return false;
        for (const auto& search : facts.patterns) {
            auto automaton = searched(search.pattern, search.place, search.keyword);
            if (!automaton) return std::move(automaton).error();
            if (!(*automaton)->accepts(text)) return false;
        }
    }
    if (value.is_array() || value.is_object()) return holds_members(value, facts, depth);
    return true;
}

Result<bool> SchemaCompiler::holds_members(const Json& value, const Facts& facts, uint32_t depth) {
    if (value.is_array()) {
        if (value.size() < facts.items_min || value.size() > facts.items_max) return false;
        if (facts.unique_items && !all_different(value)) return false;
        for (size_t i = 0; i < value.size(); i++) {
            auto schemas = item(facts, i);
            if (!schemas) return std::move(schemas).error();
            auto one = holds(value[i], *schemas, depth + 1);
            if (!one || !*one) return one;
        }
        return true;
    }
    if (value.size() < facts.properties_min || value.size() > facts.properties_max) return false;
    for (const std::string& name : facts.required)
        if (!value.contains(name)) return false;
    auto names = name_schemas(facts);
    if (!names) return std::move(names).error();
    for (const auto& [name, inner] : value.items()) {
        auto named = holds(Json(name), *names, depth + 1);
        if (!named || !*named) return named;
        auto schemas = property(facts, name);
        if (!schemas) return std::move(schemas).error();
        auto one = holds(inner, *schemas, depth + 1);
        if (!one || !*one) return one;
    }
    return true;
}

/// False also where it could not be shown.
Result<bool> SchemaCompiler::disjoint(const Places& a, const Places& b, const Places& context, uint32_t depth) {
    if (depth > kDisjointDepth) return false;
    auto left = alternatives(a);
    if (!left) return std::move(left).error();
    auto right = alternatives(b);
    if (!right) return std::move(right).error();
    const auto with = [&](const Places& places) {
        Places all = context;
        all.insert(all.end(), places.begin(), places.end());
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return facts_of(document_, all);
    };
    for (const Places& x : *left) {
        auto facts = with(x);
        if (!facts) return std::move(facts).error();
        for (const Places& y : *right) {
            if (Status done = spend(1 + x.size() + y.size(), x.empty() ? 0 : x[0]); !done)
                return std::move(done).error();
            auto others = with(y);
            if (!others) return std::move(others).error();
            auto apart = disjoint_plainly(*facts, *others, depth);
            if (!apart || !*apart) return apart;
        }
    }
    return true;
}

Result<bool> SchemaCompiler::disjoint_plainly(const Facts& a, const Facts& b, uint32_t depth) {
    const uint8_t both = a.types & b.types;
    if (a.never || b.never || both == 0) return true;
    if (a.only_values || b.only_values) {
        const Facts& listed = a.only_values ? a : b;
        for (const Json* value : listed.values) {
            auto one = holds_plainly(*value, a, 0);
            if (!one) return one;
            auto other = holds_plainly(*value, b, 0);
            if (!other) return other;
            if (*one && *other) return false;
        }
        return true;
    }
    if (both & (kNull | kBoolean)) return false;
    if (both & (kInteger | kFraction)) {
        const auto below = [](const NumberRange& x, const NumberRange& y) {
            if (!x.high || !y.low) return false;
            const int order = compare(*x.high, *y.low);
            return order < 0 || (order == 0 && (x.high_open || y.low_open));
        };
        if (!below(a.number, b.number) && !below(b.number, a.number)) return false;
    }
    if (both & kString) {
        auto left = text(a);
        if (!left) return std::move(left).error();
        auto right = text(b);
        if (!right) return std::move(right).error();
        if (!*left || !*right) return false;
        auto common = TextAutomaton::intersection(**left, **right, limits_);
        if (!common || !common->empty()) return false;
    }
    if (both & kArray) {
        auto apart = disjoint_arrays(a, b, depth);
        if (!apart || !*apart) return apart;
    }
    if (both & kObject) return disjoint_objects(a, b, depth);
    return true;
}

Result<bool> SchemaCompiler::disjoint_objects(const Facts& a, const Facts& b, uint32_t depth) {
    if (a.properties_min > b.properties_max || b.properties_min > a.properties_max) return true;
    // A name that one requires: what the two say of its value cannot both be.
    std::vector<std::string> names = a.required;
    names.insert(names.end(), b.required.begin(), b.required.end());
    for (const std::string& name : names) {
        auto left = property(a, name);
        if (!left) return std::move(left).error();
        auto right = property(b, name);
        if (!right) return std::move(right).error();
        for (const Places& side : {*left, *right}) {
            auto nothing = never(side);
            if (!nothing || *nothing) return nothing;
        }
        auto apart = disjoint(*left, *right, {}, depth + 1);
        if (!apart || *apart) return apart;
    }
    return false;
}

Result<bool> SchemaCompiler::disjoint_arrays(const Facts& a, const Facts& b, uint32_t depth) {
    if (a.items_min > b.items_max || b.items_min > a.items_max) return true;
    const uint64_t sure = std::min<uint64_t>(std::max(a.items_min, b.items_min), 16);
    for (size_t i = 0; i < sure; i++) {
        auto left = item(a, i);
        if (!left) return std::move(left).error();
        auto right = item(b, i);
        if (!right) return std::move(right).error();
        auto apart = disjoint(*left, *right, {}, depth + 1);
        if (!apart || *apart) return apart;
    }
    return false;
}

}  // namespace cadans::grammar
