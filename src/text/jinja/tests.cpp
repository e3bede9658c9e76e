#include <fmt/format.h>

#include <array>

#include "text/jinja/machine.h"
#include "text/jinja/text_operations.h"

namespace cadans::text::jinja {
namespace {

using Test = bool (*)(Machine& machine, const Value& value, const Value& other);

struct NamedTest {
    std::string_view name;
    Test test;
};

template <int64_t kRemainder>
bool is_remainder_of_two(Machine& m, const Value& v, const Value&) {
    return equal(m.binary("%", v, int64_t{2}), kRemainder);
}

template <Case kCase>
bool has_case(Machine&, const Value& v, const Value&) {
    const MarkedText* text = as_text(v);
    if (text == nullptr) return false;
    const std::string up = with_case(*text, Case::upper).bytes(), down = with_case(*text, Case::lower).bytes();
    return up != down && text->bytes() == (kCase == Case::upper ? up : down);
}

bool is_iterable(Machine&, const Value& v, const Value&) {
    return as_text(v) != nullptr || as_list(v) != nullptr || as_dict(v) != nullptr || holds<Undefined>(v);
}
bool is_sequence(Machine&, const Value& v, const Value&) {
    return as_text(v) != nullptr || as_list(v) != nullptr || as_dict(v) != nullptr || holds<Undefined>(v);
}
bool is_callable(Machine&, const Value& v, const Value&) { return holds<std::shared_ptr<const Callable>>(v); }
bool is_divisible(Machine& m, const Value& v, const Value& by) { return equal(m.binary("%", v, by), int64_t{0}); }
bool is_same(Machine&, const Value& v, const Value& other) {
    return v.index() == other.index() && (as_list(v) == as_list(other)) && (as_dict(v) == as_dict(other)) &&
           equal(v, other);
}

constexpr std::array<NamedTest, 37> kTests = {{
    {"defined", [](Machine&, const Value& v, const Value&) { return !holds<Undefined>(v); }},
    {"undefined", [](Machine&, const Value& v, const Value&) { return holds<Undefined>(v); }},
    {"none", [](Machine&, const Value& v, const Value&) { return holds<None>(v); }},
    {"string", [](Machine&, const Value& v, const Value&) { return as_text(v) != nullptr; }},
    {"mapping", [](Machine&, const Value& v, const Value&) { return as_dict(v) != nullptr; }},
    {"number", [](Machine&, const Value& v, const Value&) { return is_number(v); }},
    {"integer", [](Machine&, const Value& v, const Value&) { return holds<int64_t>(v); }},
    {"float", [](Machine&, const Value& v, const Value&) { return holds<double>(v); }},
    {"boolean", [](Machine&, const Value& v, const Value&) { return holds<bool>(v); }},
    {"true", [](Machine&, const Value& v, const Value&) { return holds<bool>(v) && truth(v); }},
    {"false", [](Machine&, const Value& v, const Value&) { return holds<bool>(v) && !truth(v); }},
    {"iterable", is_iterable},
    {"sequence", is_sequence},
    {"callable", is_callable},
    {"odd", is_remainder_of_two<1>},
    {"even", is_remainder_of_two<0>},
    {"divisibleby", is_divisible},
    {"upper", has_case<Case::upper>},
    {"lower", has_case<Case::lower>},
    {"escaped", [](Machine&, const Value&, const Value&) { return false; }},
    {"sameas", is_same},
    {"in", [](Machine& m, const Value& v, const Value& in) { return m.compare("in", v, in); }},
    {"eq", [](Machine& m, const Value& v, const Value& w) { return m.compare("==", v, w); }},
    {"equalto", [](Machine& m, const Value& v, const Value& w) { return m.compare("==", v, w); }},
    {"==", [](Machine& m, const Value& v, const Value& w) { return m.compare("==", v, w); }},
    {"ne", [](Machine& m, const Value& v, const Value& w) { return m.compare("!=", v, w); }},
    {"!=", [](Machine& m, const Value& v, const Value& w) { return m.compare("!=", v, w); }},
    {"lt", [](Machine& m, const Value& v, const Value& w) { return m.compare("<", v, w); }},
    {"lessthan", [](Machine& m, const Value& v, const Value& w) { return m.compare("<", v, w); }},
    {"<", [](Machine& m, const Value& v, const Value& w) { return m.compare("<", v, w); }},
    {"le", [](Machine& m, const Value& v, const Value& w) { return m.compare("<=", v, w); }},
    {"<=", [](Machine& m, const Value& v, const Value& w) { return m.compare("<=", v, w); }},
    {"gt", [](Machine& m, const Value& v, const Value& w) { return m.compare(">", v, w); }},
    {"greaterthan", [](Machine& m, const Value& v, const Value& w) { return m.compare(">", v, w); }},
    {">", [](Machine& m, const Value& v, const Value& w) { return m.compare(">", v, w); }},
    {"ge", [](Machine& m, const Value& v, const Value& w) { return m.compare(">=", v, w); }},
    {">=", [](Machine& m, const Value& v, const Value& w) { return m.compare(">=", v, w); }},
}};

}  // namespace

bool Machine::test(std::string_view name, const Value& value, const Arguments& arguments) {
    const Level level(*this);
    if (failed()) return false;
    for (const NamedTest& known : kTests) {
        if (known.name == name)
            return known.test(*this, value, arguments.positional.empty() ? Value{} : arguments.positional[0]);
    }
    fail(fmt::format("the test \"{}\" is not supported (template line {})", name, line_), ErrorCode::unsupported);
    return false;
}

}  // namespace cadans::text::jinja
