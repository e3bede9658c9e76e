#include "sim/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cadans::sim {
namespace {

/// Told apart also by those who see no red or green (Okabe and Ito 2008).
constexpr std::array<const char*, 5> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555"};
constexpr double kWide = 440, kHigh = 260, kLeft = 50, kTop = 60, kBetween = 60;

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '<') {
            out += "&lt;";
        } else if (c == '&') {
            out += "&amp;";
        } else if (static_cast<unsigned char>(c) >= 0x20) {
            out += c;
        }
    }
    return out;
}

double decade(Nanos span) { return std::log10(static_cast<double>(std::max<Nanos>(span, kNanosPerMicro))); }

/// One pair of axes.
class Panel {
  public:
    Panel(std::string& svg, double left, const std::vector<const std::vector<Nanos>*>& curves)
        : svg_(svg), left_(left) {
        low_ = 20;
        high_ = 0;
        for (const auto* curve : curves) {
            if (curve->empty()) continue;
            low_ = std::min(low_, std::floor(decade(curve->front())));
            high_ = std::max(high_, std::ceil(decade(curve->back())));
        }
        if (high_ <= low_) low_ = 6, high_ = 10;  // nothing was waited for: a millisecond to ten seconds
    }

    void axes(const char* title) {
        put("<text x='{:.0f}' y='{:.0f}' font-weight='bold'>{}</text>\n", left_, kTop - 10, title);
        for (int share = 0; share <= 100; share += 25) {
            const double y = kTop + kHigh * (1 - share / 100.0);
            put("<path d='M{:.1f} {:.1f}h{:.1f}' stroke='#ddd'/>", left_, y, kWide);
            put("<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{} %</text>\n", left_ - 6, y + 4, share);
        }
        for (double power = low_; power <= high_; power++) {
            put("<path d='M{:.1f} {:.1f}v{:.1f}' stroke='#ddd'/>", x(power), kTop, kHigh);
            put("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>\n", x(power), kTop + kHigh + 16,
                format_duration(std::llround(std::pow(10, power))));
        }
    }

    void curve(const std::vector<Nanos>& values, const char* colour) {
        if (values.size() < 2) return;
        svg_ += "<polyline fill='none' stroke-width='2' points='";
        for (size_t i = 0; i < values.size(); i++)
            put("{:.1f},{:.1f} ", x(decade(values[i])),
                kTop + kHigh * (1 - static_cast<double>(i) / static_cast<double>(values.size() - 1)));
        put("' stroke='{}'/>\n", colour);
    }

  private:
    double x(double power) const { return left_ + kWide * (power - low_) / (high_ - low_); }
    template <class... Parts>
    void put(fmt::format_string<Parts...> form, Parts&&... parts) {
        fmt::format_to(std::back_inserter(svg_), form, std::forward<Parts>(parts)...);
    }

    std::string& svg_;
    double left_, low_, high_;
};

}  // namespace

std::string plot_svg(const std::string& title, const std::vector<Curve>& curves) {
    const double width = kLeft + 2 * kWide + kBetween + 30, height = kTop + kHigh + 60;
    std::string svg = fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' height='{1:.0f}' "
        "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n"
        "<text x='{2:.0f}' y='22' font-size='15'>{3}</text>\n",
        width, height, kLeft, escaped(title));
    for (const bool gaps : {false, true}) {
        std::vector<const std::vector<Nanos>*> values;
        for (const Curve& one : curves) values.push_back(gaps ? &one.gap : &one.ttft);
        Panel panel(svg, gaps ? kLeft + kWide + kBetween : kLeft, values);
        panel.axes(gaps ? "time between tokens, all gaps" : "time to first token");
        for (size_t i = 0; i < values.size(); i++) panel.curve(*values[i], kColours[i % kColours.size()]);
    }
    double at = kLeft;
    for (size_t i = 0; i < curves.size(); i++) {
        svg += fmt::format(
            "<path d='M{:.0f} {:.0f}h20' stroke='{}' stroke-width='3'/><text x='{:.0f}' y='{:.0f}'>{}</text>\n", at,
            height - 16, kColours[i % kColours.size()], at + 26, height - 12, escaped(curves[i].name));
        at += 60 + 8.0 * static_cast<double>(curves[i].name.size());
    }
    return svg + "</svg>\n";
}

}  // namespace cadans::sim
