// What the doors know of one model: its name, its text machinery, and the facts that clients ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "flow/model_work.h"
#include "flow/step_cost.h"
#include "serve/dialects/keep_alive.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cadans::serve {

/// One value of a model file's metadata, as `/api/show` prints it.
using FileFact = std::variant<bool, int64_t, uint64_t, double, std::string>;

/// Facts of the model's file. Everything may be left empty; empty ones are shown as such.
struct ModelFile {
    std::string architecture;     ///< "llama": `family` there
    std::string parameter_size;   ///< "135M"
    std::string quantization;     ///< "Q4_1"
    std::string digest;           ///< SHA-256 in hexadecimal, or another stable name of the bytes
    std::string license;          ///< text or name
    uint64_t bytes = 0;           ///< size on disk
    uint64_t resident_bytes = 0;  ///< memory that the loaded model takes, pages of keys and values included
    uint64_t parameters = 0;
    int64_t modified_unix_seconds = 0;
    uint32_t embedding_length = 0;
    std::vector<std::pair<std::string, FileFact>>
        metadata;  ///< `general.*` and the architecture's own keys, in file order
};

/// Immutable once handed to the server. Borrows tokenizer and template: the composition root keeps them alive until
/// Server::run() has returned.
struct ModelCard {
    std::string name;  ///< the file's stem, or NAME of NAME=FILE
    ModelId model{};
    const text::Tokenizer* tokenizer = nullptr;
    const text::ChatTemplate* chat_template = nullptr;  ///< null: chat is refused with the reason
    uint32_t context_tokens = 0;                        ///< tokens one request may use, prompt and answer (--context)
    uint32_t trained_context_tokens = 0;                ///< what the file says
    uint64_t kv_tokens = 0;                             ///< tokens that all pages together hold (--kv-memory)
    std::optional<StepCost> cost;                       ///< of its steps on this machine, where it was measured
    bool resident = true;                               ///< its weights are in memory
    uint64_t memory_bytes = 0;                          ///< that it takes in memory, pages not counted, and gives back
    Nanos keep_alive = kForEver;                        ///< how long it stays idle where a request does not say
    ModelWork work;                                     ///< of its steps, for shares of the machine's limits
    ModelFile file;
};

}  // namespace cadans::serve
