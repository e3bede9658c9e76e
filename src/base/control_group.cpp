#include "base/control_group.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>

namespace cadans {
namespace {

/// The group in a hierarchy, from the lines of /proc/self/cgroup: "0::/a/b" or "7:cpu,cpuacct:/a/b".
std::optional<std::string> group_path(std::istream& groups, GroupVersion version, std::string_view controller) {
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
        const bool match = version == GroupVersion::two
                               ? line.starts_with("0::")
                               : controllers.find(fmt::format(",{},", controller)) != std::string::npos;
        if (match) return line.substr(second + 1);
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::string> control_group_folders(GroupVersion version, std::string_view controller,
                                               const std::string& root) {
    std::ifstream groups(root + "/proc/self/cgroup");
    std::optional<std::string> path = group_path(groups, version, controller);
    if (!path) return {};
    if (path->find("..") != std::string::npos) path->clear();
    const std::string mount =
        root + "/sys/fs/cgroup" + (version == GroupVersion::one ? fmt::format("/{}", controller) : "");
    std::vector<std::string> folders;
    while (true) {
        while (path->ends_with('/')) path->pop_back();
        folders.push_back(mount + *path + "/");
        if (path->empty()) return folders;
        path->resize(path->rfind('/') == std::string::npos ? 0 : path->rfind('/'));
    }
}

}  // namespace cadans
