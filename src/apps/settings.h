// What a user may set, from flags, then the environment, then cadans.toml.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cadans::apps {

/// How models are computed; shared by every command that runs one.
struct ComputeSettings {
    std::vector<std::string> models;  ///< FILE, NAME or NAME=FILE
    std::string chat_template_file;   ///< used for models whose file has none
    uint32_t threads = 0;             ///< 0: the usable physical cores
    uint32_t context = 0;             ///< tokens one request may use; 0: the model's trained length, if it fits
    std::string kv_memory;            ///< SIZE of all pages together; empty: a quarter of the free memory
    uint32_t max_running = 16;        ///< sequences computed side by side
    uint32_t prefill_chunk = 256;     ///< prompt tokens of one step
    std::string prefix_cache = "on";  ///< on, off
    std::string isa;                  ///< forces an instruction set; empty: the best there is
};

struct ServeSettings {
    ComputeSettings compute;
    std::string host = "127.0.0.1";
    uint16_t port = 11435;
    std::vector<std::string> host_names, allowed_origins;
    std::string api_key;
    uint32_t queue = 64;
    uint32_t gap_ms = 0;  ///< 0: 200, or what this machine needs
    std::string policy = "cadence";
    std::string record;  ///< where to write what the scheduler was given and decided; empty: nowhere
    bool insecure_bind = false;
};

/// Adds the settings to a command. Every option can be given as a flag, as CADANS_NAME, or in cadans.toml, and its
/// help says so.
void add_settings(CLI::App& command, ComputeSettings& settings);
void add_settings(CLI::App& command, ServeSettings& settings);

/// Fills what neither flag nor environment gave from the file named by --config, or ./cadans.toml where there is one.
/// Errors: bad_input, with file, key and what was expected.
Status apply_config_file(CLI::App& command);

}  // namespace cadans::apps
