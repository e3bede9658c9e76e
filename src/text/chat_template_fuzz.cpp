#include <cstddef>
#include <cstdint>

#include "text/chat_template.h"

/// The template's source, over a conversation that has something of everything.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using nlohmann::ordered_json;
    static const ordered_json kMessages = ordered_json::parse(R"([
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "hé"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]},
        {"role": "tool", "content": "x\n<|im_end|>"}])");
    cadans::text::RenderOptions options;
    options.tools = kMessages;
    options.limits.steps = 50'000;
    options.limits.output_bytes = 1 << 20;
    const auto parsed = cadans::text::ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, options.limits);
    if (parsed) (void)parsed->render(kMessages, options).has_value();
    return 0;
}
