// A model's own chat template, run in a sandbox that knows which text a client wrote.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/segment.h"

namespace cadans::text {

/// What a template may use up. A template is a program from a stranger's file.
struct TemplateLimits {
    size_t source_bytes = 1u << 20;
    uint32_t depth = 100;             ///< nesting of the source
    uint64_t steps = 4'000'000;       ///< work while rendering: nodes evaluated, and bytes handled / 64
    size_t output_bytes = 32u << 20;  ///< also the limit for any one value made on the way
};

struct RenderOptions {
    bool add_generation_prompt = true;
    nlohmann::ordered_json tools;      ///< null: the template does not see the name at all
    std::string bos_token, eos_token;  ///< their spelling; trusted text
    nlohmann::ordered_json variables;  ///< more names, such as enable_thinking; an object or null. Untrusted text
    int64_t now_unix_seconds = 0;      ///< what strftime_now() tells; taken as UTC
    TemplateLimits limits = {};
};

/// Immutable; render() is thread-safe.
class ChatTemplate {
  public:
    /// Errors: too_large, bad_input with the line of the mistake, unsupported for a statement that is not known.
    static Result<ChatTemplate> parse(std::string_view source, const TemplateLimits& limits = {});

    ChatTemplate(ChatTemplate&&) noexcept;
    ChatTemplate& operator=(ChatTemplate&&) noexcept;
    ~ChatTemplate();

    /// The prompt of a conversation, cut where authorship changes.
    ///
    /// messages  array of {"role", "content", …}; the well-known role names count as the template's own text
    /// Errors    bad_input: the template's own message (raise_exception) or a mistake while running, with
    ///           `messages[i]` in `where` when it happened at a message; too_large: over a limit, named
    Result<std::vector<Segment>> render(const nlohmann::ordered_json& messages, const RenderOptions& options) const;

    /// The same as one string.
    Result<std::string> render_text(const nlohmann::ordered_json& messages, const RenderOptions& options) const;

    /// True when the template reads `content` as a list of {"type", "text"} parts rather than as a string (found by
    /// trying both at parse()).
    bool wants_content_parts() const noexcept { return wants_content_parts_; }

    const std::string& source() const noexcept { return source_; }

  private:
    struct Program;
    ChatTemplate(std::string source, std::unique_ptr<Program> program);

    std::string source_;
    std::unique_ptr<Program> program_;
    bool wants_content_parts_ = false;
};

}  // namespace cadans::text
