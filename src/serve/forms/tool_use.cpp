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
    if (holds(source, "<|channel|>") && holds(source, "<|call|>")) {
        out.style = CallStyle::channel;
    } else if (holds(source, "<start_function_call>")) {
        out.style = CallStyle::escaped;
    } else if (holds(source, "<|tool_call>")) {
        out.style = CallStyle::quoted;
    } else if (holds(source, "[TOOL_CALLS]")) {
        out.style = holds(source, "[ARGS]") ? CallStyle::named : CallStyle::listed;
    } else if (holds(source, "<|python_tag|>") || holds(source, "<|start_header_id|>")) {
        out.style = CallStyle::bare;
    } else {
        out.in_template = false;  // a form that is not known: told and written as for a template without any
    }
    return out;
}

const BareMarks* bare_marks(CallStyle style) noexcept {
    static constexpr BareMarks kEscaped = {"<start_function_call>", "<end_function_call>", "<escape>",
                                           "<start_function_response>"};
    static constexpr BareMarks kQuoted = {"<|tool_call>", "<tool_call|>", "<|\"|>", "<|tool_response>"};
    return style == CallStyle::escaped ? &kEscaped : style == CallStyle::quoted ? &kQuoted : nullptr;
}

std::string_view mark_of(CallStyle style) noexcept {
    if (const BareMarks* marks = bare_marks(style)) return marks->open;
    switch (style) {
        case CallStyle::channel:
            return "<|channel|>commentary to=functions.";
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
    if (const BareMarks* marks = bare_marks(style)) return {marks->open, marks->close, marks->quote, marks->result};
    switch (style) {
        case CallStyle::channel:
            return {"<|channel|>", "<|constrain|>", "<|message|>"};
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
