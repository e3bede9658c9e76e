#include "apps/config_file.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <sstream>

namespace cadans::apps {
namespace {

std::string as_text(const toml::node& node) {
    if (const auto text = node.value<std::string>()) return *text;
    std::ostringstream out;
    out << toml::node_view<const toml::node>(node);
    return out.str();
}

}  // namespace

Result<std::vector<ConfigEntry>> read_config(const std::string& path) {
    toml::table table;
    try {
        table = toml::parse_file(path);
    } catch (const toml::parse_error& e) {
        return bad_input(fmt::format("{}:{}: {}", path, e.source().begin.line, e.description()), path);
    }
    std::vector<ConfigEntry> entries;
    for (const auto& [key, node] : table) {
        ConfigEntry entry{std::string(key.str()), {}, fmt::format("{}:{}", path, node.source().begin.line)};
        if (const toml::array* list = node.as_array()) {
            for (const toml::node& item : *list) entry.values.push_back(as_text(item));
        } else {
            entry.values.push_back(as_text(node));
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace cadans::apps
