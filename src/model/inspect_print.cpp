// The report of an inspection as JSON and as text.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "model/inspect.h"

namespace cadans::model {
namespace {

using Json = nlohmann::ordered_json;

Json spec_json(const ModelSpec& spec) {
    return {{"architecture", spec.architecture},
            {"name", spec.name},
            {"layers", spec.n_layers},
            {"width", spec.width},
            {"heads", spec.heads},
            {"kv_heads", spec.kv_heads},
            {"head_dim", spec.head_dim},
            {"ffn_width", spec.ffn_width},
            {"vocabulary", spec.vocab},
            {"context_length", spec.context_length},
            {"window", spec.window},
            {"windowed_layers", std::ranges::count(spec.windowed, 1)},
            {"rope_base", spec.rope.base},
            {"tied_head", spec.tied_head}};
}

Json memory_json(const MemoryEstimate& memory, uint64_t context) {
    Json groups = Json::array();
    for (const PageGroupEstimate& group : memory.groups)
        groups.push_back({{"name", group.name},
                          {"layers", group.layers},
                          {"bytes_per_token", group.bytes_per_token},
                          {"q8_bytes_per_token", group.q8_bytes_per_token},
                          {"window", group.window}});
    return {{"weights_bytes", memory.weight_bytes},
            {"vocabulary_bytes", memory.vocabulary_bytes},
            {"scratch_bytes", memory.scratch_bytes},
            {"total_bytes", memory.fixed_bytes()},
            {"kv_bytes_full_context", memory.kv_bytes(context)},
            {"q8_kv_bytes_full_context", memory.kv_bytes(context, kernels::KvType::q8)},
            {"page_groups", std::move(groups)}};
}

std::string spec_text(const ModelSpec& spec) {
    std::string text = fmt::format(
        "Model       {} ({}), {} layers of width {}, {} heads of {} over {} key-value heads, feed-forward {}\n"
        "            vocabulary {}, trained context {}\n",
        spec.name.empty() ? "unnamed" : spec.name, spec.architecture, spec.n_layers, spec.width, spec.heads,
        spec.head_dim, spec.kv_heads, spec.ffn_width, spec.vocab, spec.context_length);
    if (spec.window > 0)
        text += fmt::format("            window of {} tokens on {} of {} layers\n", spec.window,
                            std::ranges::count(spec.windowed, 1), spec.n_layers);
    return text;
}

std::string memory_text(const InspectReport& report) {
    const MemoryEstimate& memory = *report.memory;
    std::string text = fmt::format("Memory      {} once loaded: weights {}, vocabulary {}, scratch {}\n",
                                   format_size(memory.fixed_bytes()), format_size(memory.weight_bytes),
                                   format_size(memory.vocabulary_bytes), format_size(memory.scratch_bytes));
    for (const PageGroupEstimate& group : memory.groups)
        text += fmt::format("            {} a token on {} layers ({}); {} with --kv-type q8\n",
                            format_size(group.bytes_per_token), group.layers, group.name,
                            format_size(group.q8_bytes_per_token));
    if (report.spec) {
        const uint64_t context = report.spec->context_length;
        text += fmt::format("            {} more for one request of the whole context; {} with --kv-type q8\n",
                            format_size(memory.kv_bytes(context)),
                            format_size(memory.kv_bytes(context, kernels::KvType::q8)));
    }
    return text + fmt::format("            {} of {} are free{}\n", format_size(report.available.bytes),
                              format_size(report.available.limit),
                              report.available.from_cgroup ? " (control group)" : "");
}

}  // namespace

nlohmann::ordered_json to_json(const InspectReport& report) {
    Json metadata = Json::object();
    for (const MetadataLine& line : report.metadata) metadata[line.key] = {{"type", line.type}, {"value", line.value}};
    Json types = Json::array();
    for (const TensorTypeLine& line : report.tensor_types)
        types.push_back(
            {{"type", line.type}, {"tensors", line.tensors}, {"bytes", line.bytes}, {"supported", line.runnable}});
    Json json = {{"file", report.path},
                 {"size_bytes", report.size_bytes},
                 {"gguf_version", report.version},
                 {"would_run", !report.obstacle.has_value()},
                 {"reason", nullptr},
                 {"where", nullptr},
                 {"notes", report.notes},
                 {"model", nullptr},
                 {"memory", nullptr},
                 {"available_bytes", report.available.bytes},
                 {"tensors", std::move(types)},
                 {"metadata", std::move(metadata)}};
    if (report.obstacle) {
        json["reason"] = report.obstacle->message;
        if (!report.obstacle->where.empty()) json["where"] = report.obstacle->where;
    }
    if (report.spec) json["model"] = spec_json(*report.spec);
    if (report.spec && report.memory) json["memory"] = memory_json(*report.memory, report.spec->context_length);
    return json;
}

std::string to_text(const InspectReport& report) {
    std::string text = fmt::format("File        {}", report.path);
    if (report.version > 0)
        text += fmt::format(" ({}, GGUF version {})", format_size(report.size_bytes), report.version);
    text += '\n';
    if (report.spec) text += spec_text(*report.spec);
    if (report.memory) text += memory_text(report);
    if (!report.tensor_types.empty()) text += "Tensors     type       number        bytes\n";
    for (const TensorTypeLine& line : report.tensor_types)
        text += fmt::format("            {:<8} {:>8} {:>12}{}\n", line.type, line.tensors, format_size(line.bytes),
                            line.runnable ? "" : "  not supported");
    if (!report.metadata.empty()) text += "Metadata\n";
    for (const MetadataLine& line : report.metadata) text += fmt::format("  {} = {}\n", line.key, line.value);
    for (const std::string& note : report.notes) text += fmt::format("Note        {}\n", note);
    if (!report.obstacle) return text + "Would run   yes\n";
    text += fmt::format("Would run   no: {}\n", report.obstacle->message);
    if (!report.obstacle->where.empty()) text += fmt::format("            at {}\n", report.obstacle->where);
    return text;
}

}  // namespace cadans::model
