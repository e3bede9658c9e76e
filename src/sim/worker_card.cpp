#include "sim/worker_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/units.h"
#include "sim/cost_json.h"

namespace cadans::sim {
namespace {

using Json = nlohmann::json;

constexpr size_t kCardBytes = 1 << 20;
constexpr double kMostTimes = 1e6;  ///< as fast, or as slow, as the table's machine
constexpr std::array kKeys = {"name", "compute", "memory_speed", "memory", "running", "price"};

/// The number under `key`, within (0, most] or [0, most]; `otherwise` where there is none.
Result<double> number(const Json& card, const std::string& where, const char* key, double least, double most,
                      double otherwise) {
    const auto found = card.find(key);
    if (found == card.end()) return otherwise;
    if (!found->is_number() || !(found->get<double>() >= least) || !(found->get<double>() <= most))
        return bad_input(fmt::format("{}: {} must be a number of {} to {}", where, key, least, most), key);
    return found->get<double>();
}

/// Tokens whose keys and values fit the memory that the card names.
Result<uint32_t> tokens_in(const Json& memory, const std::string& where, const KvShape& kv) {
    uint64_t bytes = 0;
    if (memory.is_number_unsigned()) {
        bytes = memory.get<uint64_t>();
    } else {
        const auto size = memory.is_string() ? parse_size(memory.get<std::string>())
                                             : Result<uint64_t>(bad_input("it is neither text nor a whole number"));
        if (!size)
            return bad_input(
                fmt::format("{}: memory must be bytes or a size such as \"8G\": {}", where, size.error().message),
                "memory");
        bytes = *size;
    }
    const uint64_t tokens = bytes / kv.token_bytes;
    if (tokens < kPageTokens)
        return bad_input(fmt::format("{}: memory of {} holds {} tokens of {} bytes; a page has {}", where,
                                     format_size(bytes), tokens, kv.token_bytes, kPageTokens),
                         "memory");
    return static_cast<uint32_t>(std::min<uint64_t>(tokens, 1U << 26));
}

Status known_keys(const Json& card, const std::string& where) {
    for (const auto& [key, value] : card.items())
        if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
            return bad_input(fmt::format("{}: '{}' is not understood; a card has {}, or is a cost table", where, key,
                                         fmt::join(kKeys, ", ")),
                             key);
    return Ok{};
}

Result<Box> box_of(const Json& card, const std::string& where, Box box, const KvShape& kv) {
    if (const auto name = card.find("name"); name != card.end()) {
        if (!name->is_string() || name->get<std::string>().empty())
            return bad_input(fmt::format("{}: name must be a text", where), "name");
        box.name = name->get<std::string>();
    }
    const auto compute = number(card, where, "compute", 1 / kMostTimes, kMostTimes, 1);
    if (!compute) return compute.error();
    const auto memory_speed = number(card, where, "memory_speed", 1 / kMostTimes, kMostTimes, 1);
    if (!memory_speed) return memory_speed.error();
    box.fit.cost = scaled_cost(box.fit.cost, *compute, *memory_speed);
    const auto running = number(card, where, "running", 1, 1024, box.room.running);
    if (!running) return running.error();
    box.room.running = static_cast<uint32_t>(*running);
    const auto price = number(card, where, "price", 0, 1e12, -1);
    if (!price) return price.error();
    if (*price >= 0) box.price = *price;
    if (const auto memory = card.find("memory"); memory != card.end()) {
        const auto tokens = tokens_in(*memory, where, kv);
        if (!tokens) return tokens.error();
        box.room.kv_tokens = *tokens;
    }
    return box;
}

}  // namespace

StepCost scaled_cost(const StepCost& table, double compute, double memory_speed) {
    const auto over = [](uint64_t cost, double times, uint64_t most) {
        return static_cast<uint64_t>(
            std::min(std::round(static_cast<double>(cost) / times), static_cast<double>(most)));
    };
    StepCost out = table;
    out.weights_ps = over(table.weights_ps, memory_speed, StepCost::kMostPerRow);
    out.row_ps = over(table.row_ps, compute, StepCost::kMostPerRow);
    out.prompt_key_ps = over(table.prompt_key_ps, compute, StepCost::kMostPerKey);
    out.decode_key_ps = over(table.decode_key_ps, memory_speed, StepCost::kMostPerKey);
    out.logits_ps = over(table.logits_ps, std::min(compute, memory_speed), StepCost::kMostPerRow);
    return out;
}

Result<Box> read_card(const std::string& source, const Fit& table, const Room& room, const KvShape& kv,
                      const std::string& name) {
    const bool typed = source.starts_with('{');
    const std::string where = typed ? name : source;
    auto text = typed ? Result<std::string>(source) : read_text(source, kCardBytes);
    if (!text) return std::move(text).error();
    const auto card = parse_document(*text, where, "worker card");
    if (!card) return card.error();
    Box box{name, table, room};
    if (!typed) box.name = std::filesystem::path(source).stem().string();
    if (holds_cost(*card)) {
        auto fit = fit_of_json(*card, where);
        if (!fit) return std::move(fit).error();
        box.fit = *std::move(fit);
    } else if (!card->is_object()) {
        return bad_input(
            fmt::format("{}: a worker card is a JSON object of {}, or a cost table", where, fmt::join(kKeys, ", ")),
            where);
    } else if (Status known = known_keys(*card, where); !known) {
        return known.error();
    }
    return card->is_object() ? box_of(*card, where, std::move(box), kv) : box;
}

}  // namespace cadans::sim
