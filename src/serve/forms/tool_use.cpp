#include "serve/forms/tool_use.h"

namespace cadans::serve {

namespace {

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

CallFormat call_format_of(std::string_view source) {
    CallFormat out;
    out.in_template = holds(source, "tools") && holds(source, "tool_calls");
    if (!out.in_template) return out;
    if (holds(source, "<tool_call>")) return out;
    if (holds(source, "[TOOL_CALLS]")) {
        out.style = holds(source, "[ARGS]") ? CallStyle::named : CallStyle::listed;
    } else if (holds(source, "<|python_tag|>") || holds(source, "<|start_header_id|>")) {
        out.style = CallStyle::bare;
    } else {
        out.in_template = false;  // a form that is not known: told and written as for a template without any
    }
    return out;
}

std::string_view mark_of(CallStyle style) noexcept {
    switch (style) {
        case CallStyle::bare:
            return "<|python_tag|>";
        case CallStyle::listed:
        case CallStyle::named:
            return "[TOOL_CALLS]";
        default:
            return "<tool_call>";
    }
}

std::string_view arguments_key(CallStyle style) noexcept {
    return style == CallStyle::bare ? "parameters" : "arguments";
}

std::vector<std::string> call_marks(CallStyle style) {
    switch (style) {
        case CallStyle::bare:
            return {"<|python_tag|>"};
        case CallStyle::listed:
            return {"[TOOL_CALLS]"};
        case CallStyle::named:
            return {"[TOOL_CALLS]", "[ARGS]"};
        default:
            return {"<tool_call>", "</tool_call>"};
    }
}

}  // namespace cadans::serve
