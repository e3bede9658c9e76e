#include "serve/dialects/field_reader.h"

#include <cmath>

#include "serve/dialects/json_writer.h"

namespace cadans::serve {

namespace {

std::string number_text(double number) {
    std::string out;
    if (number == std::floor(number) && std::fabs(number) < 1e17)
        append_number(out, static_cast<int64_t>(number));
    else
        append_number(out, number);
    return out;
}

std::string range_text(const NumberRule& rule) {
    const std::string kind = rule.whole ? "an integer" : "a number";
    return kind + " from " + number_text(rule.low) + " to " + number_text(rule.high) + " was expected";
}

}  // namespace

std::string describe(const Json& value) {
    if (value.is_null()) return "null";
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number()) return value.dump();
    if (value.is_string()) return "a string";
    return value.is_array() ? "a list" : "an object";
}

const Json* FieldReader::find(std::string_view name) const {
    for (const auto& [key, value] : object_.get_ref<const Json::object_t&>())
        if (key == name) return value.is_null() ? nullptr : &value;
    return nullptr;
}

std::string FieldReader::at(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void FieldReader::wrong_type(std::string_view name, std::string_view expected, const Json& got) {
    fail(bad_input(at(name) + ": " + std::string(expected) + ", got " + describe(got), at(name)));
}

std::optional<double> FieldReader::maybe_number(const NumberRule& rule) {
    const Json* value = find(rule.name);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) {
        const double number = value->get<double>();
        const bool fits = std::isfinite(number) && number >= rule.low && number <= rule.high;
        if (fits && (!rule.whole || number == std::floor(number))) return number;
    }
    wrong_type(rule.name, range_text(rule), *value);
    return std::nullopt;
}

double FieldReader::number(const NumberRule& rule) { return maybe_number(rule).value_or(rule.fallback); }

std::optional<bool> FieldReader::maybe_boolean(std::string_view name) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_boolean()) return value->get<bool>();
    wrong_type(name, "true or false was expected", *value);
    return std::nullopt;
}

bool FieldReader::boolean(std::string_view name, bool fallback) { return maybe_boolean(name).value_or(fallback); }

std::string FieldReader::string(std::string_view name, std::string fallback) {
    const Json* value = find(name);
    if (value == nullptr) return fallback;
    if (value->is_string()) return value->get<std::string>();
    wrong_type(name, "a string was expected", *value);
    return fallback;
}

std::vector<std::string> FieldReader::strings(std::string_view name, size_t most) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    if (value->is_string()) {
        std::string one = value->get<std::string>();
        if (one.empty()) fail(bad_input(at(name) + ": an empty string cannot be used here", at(name)));
        return {std::move(one)};
    }
    if (!value->is_array()) {
        wrong_type(name, "a string or a list of strings was expected", *value);
        return {};
    }
    if (value->size() > most) {
        fail(bad_input(
            at(name) + ": at most " + std::to_string(most) + " strings are taken, got " + std::to_string(value->size()),
            at(name)));
        return {};
    }
    std::vector<std::string> out;
    for (size_t i = 0; i < value->size(); ++i) {
        const Json& each = (*value)[i];
        const std::string place = std::string(name) + "[" + std::to_string(i) + "]";
        if (!each.is_string()) {
            wrong_type(place, "a string was expected", each);
            return {};
        }
        out.push_back(each.get<std::string>());
        if (out.back().empty()) fail(bad_input(at(place) + ": an empty string cannot be used here", at(place)));
    }
    return out;
}

std::optional<uint64_t> FieldReader::seed(std::string_view name) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_number_unsigned()) return value->get<uint64_t>();
    if (value->is_number_integer()) return static_cast<uint64_t>(value->get<int64_t>());
    if (value->is_number_float()) {
        const double number = value->get<double>();
        if (number == std::floor(number) && std::fabs(number) <= kWholeMax)
            return static_cast<uint64_t>(static_cast<int64_t>(number));
    }
    wrong_type(name, "a 64-bit integer was expected", *value);
    return std::nullopt;
}

}  // namespace cadans::serve
