#include "text/jinja/functions.h"

#include <fmt/format.h>

#include <array>
#include <ctime>

#include "text/jinja/machine.h"

namespace cadans::text::jinja {
namespace {

constexpr int64_t kRangeMax = 100'000;

Value range(Machine& m, const Arguments& a) {
    for (const Value& v : a.positional) {
        if (!is_integer(v)) return m.fail("range needs integers");
    }
    if (a.positional.empty() || a.positional.size() > 3) return m.fail("range needs one to three integers");
    const bool one = a.positional.size() == 1;
    const int64_t begin = one ? 0 : to_integer(a.positional[0]), end = to_integer(a.positional[one ? 0 : 1]);
    const int64_t step = a.positional.size() == 3 ? to_integer(a.positional[2]) : 1;
    if (step == 0) return m.fail("range cannot step by zero");
    std::vector<Value> items;
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
        if (static_cast<int64_t>(items.size()) == kRangeMax)
            return m.fail(fmt::format("a range of more than {} items", kRangeMax), ErrorCode::too_large);
        items.push_back(i);
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    return m.list(std::move(items));
}

Value make_dict(Machine& m, const Arguments& a) {
    Dict made;
    if (!a.positional.empty()) {
        const Dict* other = as_dict(a.positional[0]);
        if (other == nullptr) return m.fail("dict needs a dict or names");
        made.items = other->items;
    }
    for (const auto& [name, value] : a.named) {
        if (!m.charge(1 + made.items.size() / 8)) return {};
        made.set(make_text(name), value);
    }
    return m.dict(std::move(made));
}

Value make_namespace(Machine& m, const Arguments& a) {
    auto made = std::make_shared<Namespace>();
    const auto add = [&](std::string name, const Value& value) {
        const bool nested = holds<std::shared_ptr<Namespace>>(value) || holds<std::shared_ptr<Loop>>(value);
        if (nested)
            m.fail(fmt::format("a {} cannot be put into a namespace", type_name(value)));
        else if (Value* known = made->find(name))
            *known = value;
        else
            made->items.emplace_back(std::move(name), value);
    };
    if (!a.positional.empty()) {
        const Dict* dict = as_dict(a.positional[0]);
        if (dict == nullptr) return m.fail("namespace needs names or a dict");
        for (const auto& [key, value] : dict->items) {
            if (!m.charge(1 + made->items.size() / 8)) return {};
            add(to_text(key).bytes(), value);
        }
    }
    for (const auto& [name, value] : a.named) add(name, value);
    return made;
}

Value strftime_now(Machine& m, const Arguments& a) {
    const MarkedText* format = a.positional.empty() ? nullptr : as_text(a.positional[0]);
    if (format == nullptr || format->size() > 200) return m.fail("strftime_now needs a format of at most 200 bytes");
    const std::time_t now = m.now_unix_seconds();
    std::tm date{};
    if (gmtime_r(&now, &date) == nullptr) return m.fail("the date is out of range");
    std::string out;
    for (size_t i = 0; i < format->size(); i++) {  // one letter at a time, so that only known ones reach the library
        const char c = format->bytes()[i];
        if (c != '%' || i + 1 == format->size()) {
            out.push_back(c);
            continue;
        }
        const char letter = format->bytes()[++i];
        if (std::string_view("aAbBcdDeFHIjmMnpRSTUuVwWxXyYZz%").find(letter) == std::string_view::npos)
            return m.fail(fmt::format("strftime_now does not know %{}", letter));
        const std::array<char, 3> one = {'%', letter, 0};
        std::array<char, 128> buffer{};
        out.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), one.data(), &date));
    }
    return m.text(MarkedText(std::move(out), true));
}

Value raise_exception(Machine& m, const Arguments& a) {
    return m.fail(a.positional.empty() ? "the template refuses these messages" : to_text(a.positional[0]).bytes());
}

constexpr std::array<std::string_view, 5> kNames = {"range", "dict", "namespace", "raise_exception", "strftime_now"};

}  // namespace

std::span<const std::string_view> function_names() noexcept { return kNames; }

Value call_function(Machine& machine, std::string_view name, const Arguments& arguments) {
    if (name == "range") return range(machine, arguments);
    if (name == "dict") return make_dict(machine, arguments);
    if (name == "namespace") return make_namespace(machine, arguments);
    if (name == "strftime_now") return strftime_now(machine, arguments);
    return raise_exception(machine, arguments);
}

}  // namespace cadans::text::jinja
