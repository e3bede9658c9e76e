#include "serve/dialects/json_body.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/secret_hash.h"

namespace cadans::serve {

namespace {

using Json = nlohmann::ordered_json;

// Builds the value from the parser's calls. Written for ours because the library's own builder keeps the last of two
// equal keys, and searches all keys of an object for each new one.
class Builder {
  public:
    using number_integer_t = Json::number_integer_t;
    using number_unsigned_t = Json::number_unsigned_t;
    using number_float_t = Json::number_float_t;
    using string_t = Json::string_t;
    using binary_t = Json::binary_t;

    explicit Builder(const JsonLimits& limits) : limits_(limits) {}

    bool null() { return put(Json(nullptr)); }
    bool boolean(bool value) { return put(Json(value)); }
    bool number_integer(number_integer_t value) { return put(Json(value)); }
    bool number_unsigned(number_unsigned_t value) { return put(Json(value)); }
    bool number_float(number_float_t value, const string_t&) { return put(Json(value)); }
    bool string(string_t& value) { return put(Json(std::move(value))); }
    bool binary(binary_t&) { return fail("binary values are not JSON"); }

    bool start_object(size_t) { return open(Json::object()); }
    bool end_object() { return shut(); }
    bool start_array(size_t) { return open(Json::array()); }
    bool end_array() { return shut(); }

    bool key(string_t& name) {
        Level& level = levels_.back();
        if (!level.keys.insert(name).second) {
            level.key = std::move(name);
            return fail("this key appears twice in one object", path());
        }
        level.key = std::move(name);
        return true;
    }

    bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
        // The library's text quotes the input; ours says where and what kind.
        const bool overflow = error.id == 406;
        return fail(overflow ? "a number is too large to be represented"
                             : "the body is not valid JSON: byte " + std::to_string(position) + " cannot stand there");
    }

    Json take() { return std::move(root_); }
    Error take_error() { return std::move(error_); }

  private:
    struct Level {
        Json value;
        std::string key;
        std::unordered_set<std::string, SecretHash> keys;
    };

    bool fail(std::string message, std::string where = {}) {
        if (error_.message.empty()) error_ = bad_input(std::move(message), std::move(where));
        return false;
    }

    bool count() {
        if (++values_ <= limits_.values) return true;
        return fail("the body holds more than " + std::to_string(limits_.values) + " JSON values");
    }

    bool open(Json value) {
        if (levels_.size() >= limits_.depth)
            return fail("JSON is nested deeper than " + std::to_string(limits_.depth) + " levels");
        if (!count()) return false;
        levels_.push_back({std::move(value), {}, {}});
        return true;
    }

    bool shut() {
        Json value = std::move(levels_.back().value);
        levels_.pop_back();
        place(std::move(value));
        return true;
    }

    bool put(Json value) {
        if (!count()) return false;
        place(std::move(value));
        return true;
    }

    void place(Json value) {
        if (levels_.empty()) {
            root_ = std::move(value);
            return;
        }
        Level& level = levels_.back();
        if (level.value.is_array())
            level.value.push_back(std::move(value));
        else
            level.value.get_ref<Json::object_t&>().emplace_back(std::move(level.key), std::move(value));
    }

    std::string path() const {
        std::string out;
        for (const Level& level : levels_) {
            if (level.value.is_array()) {
                out += "[" + std::to_string(level.value.size()) + "]";
                continue;
            }
            if (!out.empty()) out += '.';
            out += level.key;
        }
        return out;
    }

    const JsonLimits& limits_;
    Json root_;
    std::vector<Level> levels_;
    size_t values_ = 0;
    Error error_;
};

}  // namespace

Result<Json> parse_body(std::string_view body, const JsonLimits& limits) {
    if (body.empty()) return bad_input("the body is empty: a JSON object was expected");
    if (body.substr(0, 3) == "\xEF\xBB\xBF")
        return bad_input("the body begins with a byte order mark, which is not JSON");
    Builder builder(limits);
    try {
        if (!Json::sax_parse(body.begin(), body.end(), &builder)) return builder.take_error();
    } catch (const std::exception&) {
        return bad_input("the body is not valid JSON");
    }
    Json root = builder.take();
    if (!root.is_object())
        return bad_input("the body is a JSON " + std::string(root.type_name()) + ": an object was expected");
    return root;
}

}  // namespace cadans::serve
