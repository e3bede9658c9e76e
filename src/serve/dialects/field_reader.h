// Takes typed fields out of a JSON object and remembers the first thing that is wrong.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/dialects/field_rules.h"

namespace cadans::serve {

using Json = nlohmann::ordered_json;

/// Absent and null are the same everywhere: the default. After the first error every read gives its default, so a
/// parser reads all it wants and asks once. Thread rule: one thread. Borrows the object.
class FieldReader {
  public:
    /// path  where this object stands in the body: "" or "options"
    explicit FieldReader(const Json& object, std::string path = {}) : object_(object), path_(std::move(path)) {}

    /// The value; null when absent or null.
    const Json* find(std::string_view name) const;
    bool given(std::string_view name) const { return find(name) != nullptr; }

    double number(const NumberRule& rule);
    std::optional<double> maybe_number(const NumberRule& rule);  ///< nothing when absent
    bool boolean(std::string_view name, bool fallback);
    std::optional<bool> maybe_boolean(std::string_view name);
    std::string string(std::string_view name, std::string fallback = {});

    /// A string or a list of strings: none empty, at most `most`.
    std::vector<std::string> strings(std::string_view name, size_t most);

    /// Any 64-bit integer, signed or not.
    std::optional<uint64_t> seed(std::string_view name);

    void fail(Error error) {
        if (!error_) error_ = std::move(error);
    }
    std::string at(std::string_view name) const;  ///< the full path of a field

    bool failed() const noexcept { return error_.has_value(); }
    Error take_error() { return std::move(*error_); }

  private:
    void wrong_type(std::string_view name, std::string_view expected, const Json& got);

    const Json& object_;
    std::string path_;
    std::optional<Error> error_;
};

/// "a string", "a number", …: what a JSON value is, for messages.
std::string describe(const Json& value);

}  // namespace cadans::serve
