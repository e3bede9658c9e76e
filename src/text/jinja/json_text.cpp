#include "text/jinja/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "text/jinja/machine.h"
#include "text/utf8.h"

namespace cadans::text::jinja {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 9> kRoles = {"system",   "developer", "user",    "assistant",  "tool",
                                                    "function", "model",     "ipython", "observation"};

constexpr uint32_t kJsonDepthMax = 100;

Value value_from_json(Machine& machine, const ordered_json& json, uint32_t depth);

Dict object_from_json(Machine& machine, const ordered_json& json, uint32_t depth) {
    Dict dict;
    for (const auto& [key, value] : json.items()) {
        if (!machine.charge_bytes(key.size())) break;
        dict.items.emplace_back(make_text(key, false), value_from_json(machine, value, depth + 1));
    }
    return dict;
}

Value value_from_json(Machine& machine, const ordered_json& json, uint32_t depth) {
    if (!machine.charge(1)) return {};
    if (depth > kJsonDepthMax)
        return machine.fail(fmt::format("JSON nested deeper than {} levels", kJsonDepthMax), ErrorCode::too_large);
    switch (json.type()) {
        case ordered_json::value_t::string: {
            const auto& text = json.get_ref<const std::string&>();
            return machine.charge_bytes(text.size()) ? make_text(text, false) : Value{};
        }
        case ordered_json::value_t::boolean:
            return json.get<bool>();
        case ordered_json::value_t::number_integer:
            return json.get<int64_t>();
        case ordered_json::value_t::number_unsigned: {
            const auto n = json.get<uint64_t>();
            return n > INT64_MAX ? Value(static_cast<double>(n)) : Value(static_cast<int64_t>(n));
        }
        case ordered_json::value_t::number_float:
            return json.get<double>();
        case ordered_json::value_t::array: {
            std::vector<Value> items;
            for (const auto& item : json) {
                if (machine.failed()) break;
                items.push_back(value_from_json(machine, item, depth + 1));
            }
            return machine.list(std::move(items));
        }
        case ordered_json::value_t::object:
            return machine.dict(object_from_json(machine, json, depth));
        default:
            return None{};
    }
}

class JsonWriter {
  public:
    JsonWriter(Machine& machine, const JsonStyle& style) : machine_(machine), style_(style) {}

    void write(const Value& v, int64_t level) {
        if (!machine_.charge(1)) return;
        if (const MarkedText* text = as_text(v))
            write_text(*text);
        else if (const List* list = as_list(v))
            write_list(*list, level);
        else if (const Dict* dict = as_dict(v))
            write_dict(*dict, level);
        else if (holds<None>(v))
            out_.append("null", true);
        else if (const bool* flag = std::get_if<bool>(&v))
            out_.append(*flag ? "true" : "false", true);
        else if (holds<int64_t>(v))
            out_.append(std::to_string(to_integer(v)), true);
        else if (holds<double>(v))
            write_real(to_real(v));
        else
            machine_.fail(fmt::format("a value of type {} has no JSON form", type_name(v)));
    }

    MarkedText take() { return std::move(out_); }

  private:
    void write_real(double x) {
        if (std::isnan(x))
            out_.append("NaN", true);
        else if (std::isinf(x))
            out_.append(x > 0 ? "Infinity" : "-Infinity", true);
        else
            out_.append(real_text(x), true);
    }

    void write_text(const MarkedText& text) {
        const std::string& s = text.bytes();
        if (!machine_.charge_growth(out_.size(), s.size())) return;
        out_.append("\"", true);
        for (size_t at = 0; at < s.size();) {
            const Utf8Char c = utf8_at(s, at);
            const std::string escape = escaped(c.code_point);
            if (escape.empty())
                out_.append(text, at, at + c.bytes);
            else
                out_.append(escape, text.trusted_at(at));
            at += c.bytes;
        }
        out_.append("\"", true);
    }

    std::string escaped(uint32_t c) const {
        switch (c) {
            case '"':
                return "\\\"";
            case '\\':
                return "\\\\";
            case '\n':
                return "\\n";
            case '\r':
                return "\\r";
            case '\t':
                return "\\t";
            case '\b':
                return "\\b";
            case '\f':
                return "\\f";
            default:
                break;
        }
        if (c >= 0x20 && (c < 0x7F || !style_.ascii || c >= kStrayByte)) return {};
        if (c < 0x10000) return fmt::format("\\u{:04x}", c);
        return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
    }

    void new_line(int64_t level) {
        if (style_.indent >= 0) out_.append("\n" + std::string(static_cast<size_t>(style_.indent * level), ' '), true);
    }

    void separate(bool first) {
        if (first) return;
        // With indentation the line break takes the place of the space.
        std::string_view separator = style_.item_separator;
        if (style_.indent >= 0 && separator == ", ") separator.remove_suffix(1);
        out_.append(separator, true);
    }

    void write_list(const List& list, int64_t level) {
        if (list.items.empty()) return out_.append("[]", true);
        out_.append("[", true);
        for (size_t i = 0; i < list.items.size() && !machine_.failed(); i++) {
            separate(i == 0);
            new_line(level + 1);
            write(list.items[i], level + 1);
        }
        new_line(level);
        out_.append("]", true);
    }

    void write_dict(const Dict& dict, int64_t level) {
        if (dict.items.empty()) return out_.append("{}", true);
        std::vector<const std::pair<Value, Value>*> entries;
        for (const auto& entry : dict.items) entries.push_back(&entry);
        if (style_.sorted) {
            std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
                return to_text(a->first).bytes() < to_text(b->first).bytes();
            });
        }
        out_.append("{", true);
        for (size_t i = 0; i < entries.size() && !machine_.failed(); i++) {
            separate(i == 0);
            new_line(level + 1);
            write_key(entries[i]->first);
            out_.append(style_.key_separator, true);
            write(entries[i]->second, level + 1);
        }
        new_line(level);
        out_.append("}", true);
    }

    void write_key(const Value& key) {
        if (const MarkedText* text = as_text(key)) return write_text(*text);
        out_.append("\"", true);
        write(key, 0);
        out_.append("\"", true);
    }

    Machine& machine_;
    const JsonStyle& style_;
    MarkedText out_;
};

}  // namespace

Value from_json(Machine& machine, const ordered_json& json) { return value_from_json(machine, json, 1); }

Value messages_from_json(Machine& machine, const ordered_json& messages) {
    if (!messages.is_array()) return machine.fail("messages must be a list");
    std::vector<Value> items;
    for (const auto& message : messages) {
        if (machine.failed()) break;
        if (!message.is_object()) {
            items.push_back(from_json(machine, message));
            continue;
        }
        Dict dict = object_from_json(machine, message, 2);
        dict.message = static_cast<int32_t>(items.size());
        for (auto& [key, value] : dict.items) {
            const MarkedText* role = as_text(value);
            if (as_text(key)->bytes() != "role" || role == nullptr) continue;
            const bool known = std::find(kRoles.begin(), kRoles.end(), role->bytes()) != kRoles.end();
            if (known) value = make_text(role->bytes(), true);
        }
        items.push_back(machine.dict(std::move(dict)));
    }
    return machine.list(std::move(items));
}

MarkedText to_json(Machine& machine, const Value& value, const JsonStyle& style) {
    JsonWriter writer(machine, style);
    writer.write(value, 0);
    return writer.take();
}

}  // namespace cadans::text::jinja
