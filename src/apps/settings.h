// What a user may set for each command, and what holds where nothing is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine.h"

namespace cadans::apps {

/// How models are computed; shared by every command that runs one.
struct ComputeSettings {
    std::vector<std::string> models;  ///< FILE, NAME, NAME=FILE, or a folder of them
    std::string models_dir;           ///< a folder of models that are loaded on first use; empty: none
    std::string model_memory;         ///< SIZE of all models in memory together; empty: what is free
    bool on_first_use = false;        ///< what does not fit now may be loaded later
    std::string draft_model;          ///< FILE_OR_NAME of the one that guesses for the others; empty: none
    uint32_t threads = 0;             ///< 0: the usable physical cores
    uint32_t context = 0;             ///< tokens one request may use; 0: the model's trained length, if it fits
    std::string kv_memory;            ///< SIZE of all pages together; empty: a quarter of the free memory
    std::string kv_type = "f16";      ///< f16, q8: what keys and values are kept as
    uint32_t max_running = 16;        ///< sequences computed side by side
    uint32_t prefill_chunk = 256;     ///< prompt tokens of one step
    std::string prefix_cache = "on";  ///< on, off
    std::string isa;                  ///< forces an instruction set; empty: the best there is
    /// FILE for all models, NAME=FILE for one: instead of what their own files have.
    std::vector<std::string> chat_templates;
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
    std::string speculate = "auto";       ///< auto, off, lookup, suffix, model
    std::string record;                   ///< where to write what the scheduler was given and decided; empty: nowhere
    std::string history = "on";           ///< on, off: finished requests on disk
    std::string history_size = "256M";    ///< SIZE of the file
    uint32_t history_days = 30;           ///< older records go
    std::string history_prompts = "off";  ///< on, off: the text of prompts too
    std::string otlp_endpoint;            ///< a collector's address; empty: no spans are sent
    std::string keep_alive;               ///< idle models go after it; empty: 5m, and never those loaded at the start
    bool insecure_bind = false;
};

/// How a command reaches a running server.
struct ServerAddress {
    std::string url = "http://127.0.0.1:11435";
    std::string api_key;  ///< empty: it asks for none
};

struct TopSettings {
    ServerAddress server;
    bool json = false;
};

struct ExplainSettings {
    std::string id = "latest";
    ServerAddress server;
    std::string language;  ///< en, nl, de; empty: the terminal's
    bool json = false;
};

struct RunSettings {
    ComputeSettings compute;
    std::string model, prompt, system;
    float temperature = 0.7F;
    uint32_t max_tokens = 0;
    bool json = false;
};

struct BenchSettings {
    ComputeSettings compute;
    std::vector<uint32_t> prompt = {512}, generate = {64}, depth = {0}, batch = {1}, beside = {0}, threads;
    uint32_t repeat = 5;
    bool fit = false;
    bool json = false;
};

struct BenchServeSettings {
    std::vector<std::string> urls;
    std::string load = "poisson:rate=0.5,requests=50,prompt=256,output=64";
    std::string trace, dialect, model, api_key, plot;
    double rate = 0;                            ///< requests a second; 0: the workload's own
    double duration = 0;                        ///< seconds in which requests begin; 0: all
    double gap_ms = 200;                        ///< a longer gap is a stall
    uint32_t most_prompt = 0, most_output = 0;  ///< longer ones are cut; 0: none is
    uint64_t seed = 1;
    bool realtime = false;
    bool json = false;
};

struct SimulateSettings {
    std::string trace, load, fit, replay, plot;
    std::vector<std::string> policies;
    double rate = 0;  ///< 0: the trace's own
    bool capacity = false;
    std::string rule = "sarathi";
    std::string slo = "strict";
    double slo_ttft_ms = 0;  ///< 0: a multiple of the request's own prefill
    double gap_ms = 0;       ///< 0: the SLO
    uint64_t seed = 1;
    sim::Room room;
    bool json = false;
};

struct PlanSettings {
    std::string trace, load, fit;
    std::vector<std::string> boxes;      ///< worker cards: files, or JSON; empty: the table's machine
    std::vector<uint32_t> counts = {2};  ///< boxes together, each looked at by itself
    std::string link = "1G";             ///< bits a second, into each decode worker
    double link_latency_ms = 0.5;
    uint64_t kv_bytes = 0;  ///< of a token's keys and values; 0: as the table says, else as the built-in one
    uint32_t layers = 0;    ///< the same
    std::string policy = "cadence";
    std::string slo = "strict";
    double slo_ttft_ms = 0;  ///< 0: a multiple of the request's own prefill
    double rate = 0;         ///< for the tightest promise; 0: half of what sharing serves
    uint32_t requests = 1000;
    uint64_t seed = 1;
    sim::Room room;
    bool json = false;
};

struct InspectSettings {
    std::string path;
    bool json = false;
};

}  // namespace cadans::apps
