// Parts an answer's text into words and calls of tools, piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/forms/bare_arguments.h"
#include "serve/forms/tool_use.h"

namespace cadans::serve {

/// A stretch of a call, in the order in which it came.
struct CallPiece {
    uint32_t index = 0;     ///< of the call in its answer
    std::string name = {};  ///< with its first piece only
    std::string arguments;  ///< joined, all pieces of a call are one JSON object
    bool first = false, last = false;
};

struct ReadText {
    std::string content;
    std::vector<CallPiece> calls;
};

/// Reads what the grammar of tool_grammar.h writes; it need not check it. Where the pieces are cut changes nothing.
/// White space between words and a call is neither's. Thread rule: one thread.
class CallReader {
  public:
    /// text_has_form  no words come before a call: whatever does not begin with a mark is text, marks inside it too
    explicit CallReader(CallStyle style, bool text_has_form = false) : style_(style), text_has_form_(text_has_form) {}

    ReadText push(std::string_view piece);
    /// What was held back: text that could have become a mark. A call that is cut has no last piece.
    ReadText finish();

    uint32_t calls() const noexcept { return calls_; }  ///< that have begun

  private:
    enum class State : uint8_t {
        begin,      ///< nothing but white space has come
        text,       ///< words, up to a mark
        form,       ///< text that is held to a form, to the end
        head,       ///< behind the mark: the call's name
        arguments,  ///< the JSON object
        behind,     ///< a call is over: whatever comes is form, until the next one begins
    };

    bool step(ReadText& out);
    bool step_begin();
    bool step_text(ReadText& out);
    bool step_head(ReadText& out);
    bool step_arguments(ReadText& out);
    void add_arguments(ReadText& out, std::string_view piece, bool last);
    bool step_behind();

    CallStyle style_;
    bool text_has_form_;
    State state_ = State::begin;
    std::string held_;
    uint32_t calls_ = 0;
    uint32_t depth_ = 0;  // of the arguments
    bool in_string_ = false, escaped_ = false;
    std::optional<BareArguments> bare_;  // of the call that is read, where its style has such
};

}  // namespace cadans::serve
