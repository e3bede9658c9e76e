// Writes JSON text straight into a string, in the order in which it is told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cadans::serve {

/// Appends `text` as the inside of a JSON string. Bytes that are no valid UTF-8 become U+FFFD.
void append_escaped(std::string& out, std::string_view text);

/// Appends the shortest decimal that reads back as exactly this number; what is no number becomes null.
void append_number(std::string& out, float number);
void append_number(std::string& out, double number);
void append_number(std::string& out, int64_t number);
void append_number(std::string& out, uint64_t number);

/// True when all of `text` is valid UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text) noexcept;

/// Objects and arrays nest; commas come by themselves. Thread rule: one thread; borrows the string.
class JsonWriter {
  public:
    explicit JsonWriter(std::string& out) noexcept : out_(out) {}

    JsonWriter& object() { return open('{'); }
    JsonWriter& array() { return open('['); }
    JsonWriter& close();  ///< ends the innermost object or array

    JsonWriter& key(std::string_view name);
    JsonWriter& text(std::string_view value);
    JsonWriter& boolean(bool value);
    JsonWriter& null();
    JsonWriter& raw(std::string_view json);  ///< a whole JSON value, already written

    JsonWriter& number(float value) { return write_number(value); }
    JsonWriter& number(double value) { return write_number(value); }
    JsonWriter& number(int64_t value) { return write_number(value); }
    JsonWriter& number(uint64_t value) { return write_number(value); }
    JsonWriter& number(uint32_t value) { return write_number(uint64_t{value}); }
    JsonWriter& number(int32_t value) { return write_number(int64_t{value}); }

  private:
    JsonWriter& open(char bracket);
    void separate();
    template <class Number>
    JsonWriter& write_number(Number value) {
        separate();
        append_number(out_, value);
        return *this;
    }

    std::string& out_;
    std::string brackets_;  // what is still to be closed
    bool comma_ = false;    // something stands before us at this depth
    bool after_key_ = false;
};

}  // namespace cadans::serve
