#include "metrics/exposition.h"

#include <algorithm>

#include "base/check.h"

namespace cadans::metrics {
namespace {

/// A backslash, a quote or a line end would break the line it stands in.
void append_escaped(std::string& text, std::string_view value) {
    for (const char c : value) {
        if (c == '\\') {
            text += "\\\\";
        } else if (c == '"') {
            text += "\\\"";
        } else if (c == '\n') {
            text += "\\n";
        } else {
            text += c;
        }
    }
}

constexpr std::string_view kTypeNames[] = {"counter", "gauge", "histogram"};

}  // namespace

std::string seconds_text(Nanos span) {
    std::string text = span < 0 ? "-" : "";
    const uint64_t size = span < 0 ? 0 - static_cast<uint64_t>(span) : static_cast<uint64_t>(span);
    text += std::to_string(size / kNanosPerSecond);
    uint64_t fraction = size % kNanosPerSecond;
    if (fraction == 0) return text;
    std::string digits = std::to_string(fraction + kNanosPerSecond).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    return text + "." + digits;
}

void Exposition::family(std::string_view name, Type type, std::string_view help) {
    check(std::find(families_.begin(), families_.end(), name) == families_.end(), "a family is opened once");
    families_.emplace_back(name);
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    text_.append("# TYPE ").append(name).append(" ").append(kTypeNames[static_cast<size_t>(type)]).append("\n");
}

void Exposition::sample(const Labels& labels, uint64_t value) { line("", labels, "", std::to_string(value)); }

void Exposition::sample_seconds(const Labels& labels, Nanos value) { line("", labels, "", seconds_text(value)); }

void Exposition::histogram(const Labels& labels, const Histogram& histogram) {
    const Histogram::Snapshot now = histogram.snapshot();
    for (size_t i = 0; i < now.cumulative.size(); i++) {
        const bool last = i == histogram.bounds().size();
        line("_bucket", labels, last ? "+Inf" : seconds_text(histogram.bounds()[i]), std::to_string(now.cumulative[i]));
    }
    line("_sum", labels, "", seconds_text(now.sum));
    line("_count", labels, "", std::to_string(now.cumulative.back()));
}

void Exposition::line(std::string_view suffix, const Labels& labels, std::string_view le, std::string_view value) {
    check(!families_.empty(), "a sample belongs to a family");
    text_.append(families_.back()).append(suffix);
    char before = '{';
    const auto label = [&](std::string_view name, std::string_view its_value) {
        text_ += before;
        text_.append(name).append("=\"");
        append_escaped(text_, its_value);
        text_ += '"';
        before = ',';
    };
    for (const auto& [name, its_value] : labels) label(name, its_value);
    if (!le.empty()) label("le", le);
    if (before == ',') text_ += '}';
    text_.append(" ").append(value).append("\n");
}

}  // namespace cadans::metrics
