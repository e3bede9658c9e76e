#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "text/jinja/functions.h"
#include "text/jinja/machine.h"
#include "text/jinja/text_operations.h"
#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

using Args = const Arguments&;

bool flag(const Value* v, bool absent = false) { return v == nullptr ? absent : truth(*v); }

/// "a.b" of an item, as the attribute arguments of filters say it.
Value by_path(Machine& m, const Value& item, const Value& path) {
    const MarkedText* text = as_text(path);
    if (text == nullptr) return m.item(item, path);
    const MarkedText dot(".", true);
    Value value = item;
    for (const MarkedText& name : split(m, *text, &dot, -1)) {
        const bool number =
            !name.empty() && name.size() < 10 && name.bytes().find_first_not_of("0123456789") == std::string::npos;
        value = m.item(value, number ? Value(int64_t{std::stol(name.bytes())}) : make_text(name));
    }
    return value;
}

/// What sorting looks at: the item or an attribute of it, in lower case unless case counts.
Value sort_key(Machine& m, const Value& item, const Value* attribute, bool case_counts) {
    Value key = attribute == nullptr || holds<None>(*attribute) ? item : by_path(m, item, *attribute);
    const MarkedText* text = as_text(key);
    return text == nullptr || case_counts ? key : m.text(with_case(*text, Case::lower));
}

/// A stable merge sort: the machine's comparison may fail or be inconsistent, which std::sort must not see.
void sort_by_keys(Machine& m, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
    std::vector<std::pair<Value, Value>> merged(keyed.size());
    for (size_t width = 1; width < keyed.size() && !m.failed(); width *= 2) {
        for (size_t begin = 0; begin < keyed.size(); begin += 2 * width) {
            const size_t middle = std::min(begin + width, keyed.size()),
                         end = std::min(begin + 2 * width, keyed.size());
            size_t left = begin, right = middle;
            for (size_t out = begin; out < end; out++) {
                const bool take_right =
                    left == middle || (right < end && m.charge(1) &&
                                       m.compare(reverse ? ">" : "<", keyed[right].first, keyed[left].first));
                merged[out] = std::move(take_right ? keyed[right++] : keyed[left++]);
            }
        }
        std::swap(keyed, merged);
    }
}

Value sort(Machine& m, const Value& v, Args a) {
    std::vector<std::pair<Value, Value>> keyed;
    for (Value& item : m.iterate(v)) {
        Value key = sort_key(m, item, a.get(2, "attribute"), flag(a.get(1, "case_sensitive")));
        keyed.emplace_back(std::move(key), std::move(item));
    }
    sort_by_keys(m, keyed, flag(a.get(0, "reverse")));
    std::vector<Value> items;
    for (auto& entry : keyed) items.push_back(std::move(entry.second));
    return m.list(std::move(items));
}

Value dictsort(Machine& m, const Value& v, Args a) {
    const Dict* dict = as_dict(v);
    if (dict == nullptr) return m.fail("dictsort needs a dict");
    const Value* by = a.get(1, "by");
    const bool by_value = by != nullptr && to_text(*by).bytes() == "value";
    std::vector<std::pair<Value, Value>> keyed;
    for (const auto& [key, value] : dict->items)
        keyed.emplace_back(sort_key(m, by_value ? value : key, nullptr, flag(a.get(0, "case_sensitive"))),
                           m.list({key, value}, true));
    sort_by_keys(m, keyed, flag(a.get(2, "reverse")));
    std::vector<Value> items;
    for (auto& entry : keyed) items.push_back(std::move(entry.second));
    return m.list(std::move(items));
}

Value items_of(Machine& m, const Value& v, Args) {
    if (holds<Undefined>(v)) return m.list({});
    const Dict* dict = as_dict(v);
    if (dict == nullptr) return m.fail(fmt::format("items needs a dict, not a {}", type_name(v)));
    std::vector<Value> items;
    for (const auto& [key, value] : dict->items) items.push_back(m.list({key, value}, true));
    return m.list(std::move(items));
}

Value as_items(Machine& m, const Value& v, Args) { return m.list(m.iterate(v)); }

Value length(Machine& m, const Value& v, Args) {
    if (const MarkedText* text = as_text(v))
        return m.charge_bytes(text->size()) ? Value(static_cast<int64_t>(utf8_length(text->bytes()))) : Value{};
    if (const List* list = as_list(v)) return static_cast<int64_t>(list->items.size());
    if (const Dict* dict = as_dict(v)) return static_cast<int64_t>(dict->items.size());
    return holds<Undefined>(v) ? Value(int64_t{0}) : m.fail(fmt::format("a {} has no length", type_name(v)));
}

Value first(Machine& m, const Value& v, Args) {
    const std::vector<Value> items = m.iterate(v);
    return items.empty() ? Value(Undefined{"first of nothing"}) : items.front();
}

Value last(Machine& m, const Value& v, Args) {
    const std::vector<Value> items = m.iterate(v);
    return items.empty() ? Value(Undefined{"last of nothing"}) : items.back();
}

Value reverse(Machine& m, const Value& v, Args) {
    if (as_text(v) != nullptr) return m.slice(v, None{}, None{}, int64_t{-1});
    std::vector<Value> items = m.iterate(v);
    std::reverse(items.begin(), items.end());
    return m.list(std::move(items));
}

Value map(Machine& m, const Value& v, Args a) {
    if (!truth(v)) return m.list({});  // none and false as well, as Jinja has it
    std::vector<Value> items;
    const Value* attribute = a.positional.empty() ? a.get(SIZE_MAX, "attribute") : nullptr;
    const Value* absent = a.get(SIZE_MAX, "default");
    Arguments rest;
    if (attribute == nullptr) {
        if (a.positional.empty()) return m.fail("map needs an attribute or a filter");
        rest.positional.assign(a.positional.begin() + 1, a.positional.end());
        rest.named = a.named;
    }
    for (const Value& item : m.iterate(v)) {
        if (m.failed()) break;
        if (attribute == nullptr) {
            items.push_back(m.filter(to_text(a.positional[0]).bytes(), item, rest));
            continue;
        }
        Value found = by_path(m, item, *attribute);
        items.push_back(holds<Undefined>(found) && absent != nullptr ? *absent : std::move(found));
    }
    return m.list(std::move(items));
}

/// select, reject, selectattr, rejectattr: those items for which a test says `wanted`.
Value chosen(Machine& m, const Value& v, Args a, bool by_attribute, bool wanted) {
    if (!truth(v)) return m.list({});
    const size_t test_place = by_attribute ? 1 : 0;
    if (by_attribute && a.positional.empty()) return m.fail("an attribute is missing");
    Arguments rest;
    if (a.positional.size() > test_place)
        rest.positional.assign(a.positional.begin() + static_cast<ptrdiff_t>(test_place) + 1, a.positional.end());
    std::vector<Value> items;
    for (Value& item : m.iterate(v)) {
        if (m.failed()) break;
        const Value looked_at = by_attribute ? by_path(m, item, a.positional[0]) : item;
        const bool holds_true = a.positional.size() > test_place
                                    ? m.test(to_text(a.positional[test_place]).bytes(), looked_at, rest)
                                    : truth(looked_at);
        if (holds_true == wanted) items.push_back(std::move(item));
    }
    return m.list(std::move(items));
}

template <bool kByAttribute, bool kWanted>
Value choose(Machine& m, const Value& v, Args a) {
    return chosen(m, v, a, kByAttribute, kWanted);
}

Value unique(Machine& m, const Value& v, Args a) {
    std::vector<Value> keys, items;
    for (Value& item : m.iterate(v)) {
        Value key = sort_key(m, item, a.get(1, "attribute"), flag(a.get(0, "case_sensitive")));
        if (!m.charge(1 + keys.size())) break;
        if (std::any_of(keys.begin(), keys.end(), [&](const Value& known) { return m.compare("==", known, key); }))
            continue;
        keys.push_back(std::move(key));
        items.push_back(std::move(item));
    }
    return m.list(std::move(items));
}

template <bool kGreatest>
Value extreme(Machine& m, const Value& v, Args a) {
    std::optional<std::pair<Value, Value>> best;
    for (Value& item : m.iterate(v)) {
        Value key = sort_key(m, item, a.get(1, "attribute"), flag(a.get(0, "case_sensitive")));
        if (!best || m.compare(kGreatest ? ">" : "<", key, best->first)) best = {std::move(key), std::move(item)};
        if (m.failed()) return {};
    }
    return best ? best->second : Value(Undefined{"extreme of nothing"});
}

Value sum(Machine& m, const Value& v, Args a) {
    const Value *attribute = a.get(0, "attribute"), *start = a.get(1, "start");
    Value total = start == nullptr ? Value(int64_t{0}) : *start;
    for (const Value& item : m.iterate(v))
        total =
            m.binary("+", total, attribute == nullptr || holds<None>(*attribute) ? item : by_path(m, item, *attribute));
    return total;
}

Value batch(Machine& m, const Value& v, Args a) {
    const Value *size = a.get(0, "linecount"), *fill = a.get(1, "fill_with");
    const int64_t n = size != nullptr && is_integer(*size) ? to_integer(*size) : 0;
    if (n < 1 || n > 10'000) return m.fail("batch needs a size from 1 to 10,000");
    std::vector<Value> rows, row;
    for (Value& item : m.iterate(v)) {
        row.push_back(std::move(item));
        if (static_cast<int64_t>(row.size()) == n) rows.push_back(m.list(std::exchange(row, {})));
    }
    if (!row.empty()) {
        while (fill != nullptr && !holds<None>(*fill) && static_cast<int64_t>(row.size()) < n) row.push_back(*fill);
        rows.push_back(m.list(std::move(row)));
    }
    return m.list(std::move(rows));
}

Value groupby(Machine& m, const Value& v, Args a) {
    const Value* attribute = a.get(0, "attribute");
    if (attribute == nullptr) return m.fail("groupby needs an attribute");
    std::vector<std::pair<Value, Value>> keyed;
    for (Value& item : m.iterate(v)) {
        Value key = sort_key(m, item, attribute, flag(a.get(2, "case_sensitive")));
        keyed.emplace_back(std::move(key), std::move(item));
    }
    sort_by_keys(m, keyed, false);
    std::vector<Value> groups;
    for (size_t i = 0; i < keyed.size() && !m.failed();) {
        std::vector<Value> items;
        const Value shown = by_path(m, keyed[i].second, *attribute);
        const size_t begin = i;
        while (i < keyed.size() && m.compare("==", keyed[i].first, keyed[begin].first))
            items.push_back(keyed[i++].second);
        if (i == begin) break;
        groups.push_back(m.list({shown, m.list(std::move(items))}, true));
    }
    return m.list(std::move(groups));
}

constexpr std::array<NamedFilter, 20> kFilters = {{
    {"sort", sort},
    {"dictsort", dictsort},
    {"items", items_of},
    {"list", as_items},
    {"length", length},
    {"count", length},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"map", map},
    {"select", choose<false, true>},
    {"reject", choose<false, false>},
    {"selectattr", choose<true, true>},
    {"rejectattr", choose<true, false>},
    {"unique", unique},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"sum", sum},
    {"batch", batch},
    {"groupby", groupby},
}};

}  // namespace

std::span<const NamedFilter> list_filters() noexcept { return kFilters; }

}  // namespace cadans::text::jinja
