#include "grammar/formats.h"

#include <array>
#include <utility>

namespace cadans::grammar {
namespace {

// Days are those that the month has in every year.
constexpr const char* kDate =
    "^[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-"
    "8]))$";
constexpr const char* kTime =
    "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";
constexpr const char* kDateTime =
    "^[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-"
    "8]))"
    "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";
constexpr const char* kDuration =
    "^P([0-9]{1,9}W|[0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?(T[0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?)?|"
    "[0-9]{1,9}M([0-9]{1,9}D)?(T[0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?)?|"
    "[0-9]{1,9}D(T[0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?)?|"
    "T([0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))$";
constexpr const char* kEmail =
    "^[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@([A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?\\.){1,3}[A-Za-z]{"
    "2,12}$";
constexpr const char* kHostname =
    "^[A-Za-z]([A-Za-z0-9]|-[A-Za-z0-9]){0,30}(\\.[A-Za-z]([A-Za-z0-9]|-[A-Za-z0-9]){0,30}){0,3}$";
constexpr const char* kIpv4 =
    "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$";
constexpr const char* kIpv6 =
    "^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|::([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,5})?|"
    "[0-9a-fA-F]{1,4}::([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,4})?|"
    "[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}::([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,3})?)$";
constexpr const char* kUri =
    "^(https?|ftp|wss?)://([A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?)"
    "(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?){0,4}(:[1-9][0-9]{0,3})?"
    "(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*(\\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
    "(#([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?$";
constexpr const char* kUuid = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

constexpr std::array<std::pair<std::string_view, const char*>, 11> kFormats = {{{"date", kDate},
                                                                                {"time", kTime},
                                                                                {"date-time", kDateTime},
                                                                                {"duration", kDuration},
                                                                                {"email", kEmail},
                                                                                {"hostname", kHostname},
                                                                                {"ipv4", kIpv4},
                                                                                {"ipv6", kIpv6},
                                                                                {"uri", kUri},
                                                                                {"uri-reference", kUri},
                                                                                {"uuid", kUuid}}};

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
    for (const auto& [name, pattern] : kFormats)
        if (name == format) return pattern;
    return std::nullopt;
}

bool is_mere_hint(std::string_view format) {
    for (const std::string_view hint : {"float", "double", "password"})
        if (hint == format) return true;
    return false;
}

}  // namespace cadans::grammar
