#include "sim/tape_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nesting.h"
#include "runtime/house_json.h"
#include "runtime/tape.h"

namespace cadans::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTapeBytes = size_t{4} << 30;
constexpr size_t kMostScores = 1 << 20;  ///< of a step: no house has more rows

/// A line; discarded where it is no JSON, or none that a tape holds.
Json parse_line(std::string_view line) {
    if (nesting_of(line) > kMostNesting) return Json(Json::value_t::discarded);
    return Json::parse(line, nullptr, false);
}

/// A whole number of at most `most`, or none.
std::optional<uint64_t> number(const Json& value, uint64_t most = UINT64_MAX) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > most) return std::nullopt;
    return value.get<uint64_t>();
}

template <class T>
bool take(const Json& from, const char* key, uint64_t most, T& out) {
    if (!from.contains(key)) return false;
    const auto value = number(from[key], most);
    if (value) out = static_cast<T>(*value);
    return value.has_value();
}

constexpr uint64_t kLatest = uint64_t{1} << 62;  ///< nanoseconds

bool read_admission(const Json& from, SequenceRequest& out) {
    const auto flag = [&](const char* key, bool& value) {
        if (!from.contains(key) || !from[key].is_boolean()) return false;
        value = from[key].get<bool>();
        return true;
    };
    bool ends = false;
    if (!from.contains("prompt") || !from["prompt"].is_array() || !flag("ends", ends) ||
        !flag("score", out.score_prompt) || !flag("cache", out.cache_prompt))
        return false;
    if (!take(from, "guessed", static_cast<uint64_t>(Speculation::model), out.speculation)) return false;
    if (ends) out.end_tokens = {TokenId{0}};
    for (const Json& token : from["prompt"]) {
        const auto name = number(token, kVocabulary - 1);
        if (!name || *name == 0) return false;
        out.prompt.push_back(TokenId{static_cast<uint32_t>(*name)});
    }
    return take(from, "admit", kLatest, out.seq) && take(from, "request", UINT64_MAX, out.request) &&
           take(from, "model", UINT16_MAX, out.model) && take(from, "new", kMostTokens, out.max_new_tokens) &&
           take(from, "priority", 2, out.priority) && take(from, "scope", UINT64_MAX, out.scope) && index(out.seq) > 0;
}

bool read_item(const Json& from, StepResult& out) {
    if (!from.is_array() || from.size() < 4 || from.size() > 64 || !from[3].is_boolean()) return false;
    const auto seq = number(from[0]), computed = number(from[1], kMostTokens),
               scores = number(from[2], kMostScores - out.scores.size());
    if (!seq || !computed || !scores) return false;
    ItemResult item;
    item.seq = SeqId{*seq};
    item.computed = static_cast<uint32_t>(*computed);
    item.failed = from[3].get<bool>();
    item.scores_begin = static_cast<uint32_t>(out.scores.size());
    out.scores.resize(out.scores.size() + *scores);
    item.scores_end = static_cast<uint32_t>(out.scores.size());
    item.accepted_begin = static_cast<uint32_t>(out.accepted.size());
    for (size_t i = 4; i < from.size(); i++) {
        const auto name = number(from[i], kVocabulary - 1);
        if (!name) return false;
        out.accepted.push_back({TokenId{static_cast<uint32_t>(*name)}, 0.0F, 0, {}});
    }
    item.accepted_end = static_cast<uint32_t>(out.accepted.size());
    out.items.push_back(item);
    return true;
}

bool read_offer(const Json& from, TapeTurn::Offer& out) {
    if (!from.is_array() || from.size() < 3 || from.size() > 2 + size_t{kMostDrafts}) return false;
    const auto seq = number(from[0]), match = number(from[1], kMostTokens);
    if (!seq || !match || *match == 0) return false;
    out.seq = SeqId{*seq};
    out.match = static_cast<uint32_t>(*match);
    for (size_t i = 2; i < from.size(); i++) {
        const auto name = number(from[i], kVocabulary - 1);
        if (!name || *name == 0) return false;
        out.tokens.push_back(TokenId{static_cast<uint32_t>(*name)});
    }
    return true;
}

bool read_result(const Json& from, StepResult& out) {
    if (!from.is_object() || !take(from, "id", UINT64_MAX, out.id) || !take(from, "b", kLatest, out.begin) ||
        !take(from, "e", kLatest, out.end) || out.end < out.begin || !from.contains("i") || !from["i"].is_array())
        return false;
    if (from.contains("g") && (!take(from, "g", kLatest, out.drafting) || out.drafting > out.end - out.begin))
        return false;
    return std::all_of(from["i"].begin(), from["i"].end(), [&](const Json& item) { return read_item(item, out); });
}

bool read_command(const Json& from, runtime::Command& out) {
    if (!from.is_object()) return false;
    if (from.contains("admit")) {
        out.kind = runtime::Command::Kind::admit;
        if (!read_admission(from, out.request)) return false;
        out.seq = out.request.seq;
        return take(from, "since", kLatest, out.since);
    }
    if (from.contains("cancel")) {
        out.kind = runtime::Command::Kind::cancel;
        return take(from, "cancel", UINT64_MAX, out.seq);
    }
    if (from.contains("forget")) {
        out.kind = runtime::Command::Kind::forget;
        return take(from, "forget", UINT16_MAX, out.model);
    }
    if (from.contains("learn")) {
        out.kind = runtime::Command::Kind::learn;
        const auto cost = runtime::cost_from_json(from.value("cost", Json()));
        if (!cost) return false;
        out.cost = *cost;
        return take(from, "learn", UINT16_MAX, out.model);
    }
    out.kind = runtime::Command::Kind::cancel_all;
    return from.contains("cancel_all");
}

}  // namespace

Error TapeReader::wrong(std::string_view what) const {
    return bad_input(fmt::format("{}:{}: {}", lines_.name(), lines_.number(), what), lines_.name());
}

Result<TapeReader> TapeReader::open(const std::string& path) {
    auto read = read_text(path, kTapeBytes);
    if (!read) return std::move(read).error();
    auto text = std::make_unique<std::string>(*std::move(read));
    const std::string_view view = *text;
    TapeReader reader(std::move(text), Lines(path, view));
    reader.lines_.next();
    const Json head = parse_line(reader.lines_.line());
    if (!head.is_object() || head.value("cadans", Json()) != "tape")
        return bad_input(fmt::format("{}: this is no record of cadans serve --record", path), path);
    if (head.value("version", Json()) != runtime::Tape::kVersion)
        return bad_input(fmt::format("{}: a record of version {}; this program reads version {}: record it anew", path,
                                     head.value("version", Json()).dump(), runtime::Tape::kVersion),
                         path);
    if (!head.contains("policy") || !head["policy"].is_string() || !head.contains("house"))
        return reader.wrong("policy and house are missing");
    reader.policy_ = head["policy"].get<std::string>();
    auto house = runtime::house_from_json(head["house"], kVocabulary);
    if (!house) return reader.wrong(house.error().message);
    reader.house_ = *std::move(house);
    return reader;
}

Result<const TapeTurn*> TapeReader::next() {
    if (!lines_.next()) return nullptr;
    const Json line = parse_line(lines_.line());
    if (line.is_discarded() && !text_->ends_with('\n') && lines_.at_end()) return nullptr;
    if (!line.is_object()) return wrong("expected a turn");
    if (line.contains("end")) {
        if (!line["end"].is_string() || !lines_.at_end()) return wrong("the end is not at the end");
        end_ = line["end"].get<std::string>();
        return nullptr;
    }
    const Nanos before = turn_.at;
    turn_ = {};
    if (!take(line, "t", kLatest, turn_.at) || turn_.at < before)
        return wrong("t must be a time that does not go back");
    if (line.contains("r")) {
        turn_.has_result = true;
        if (!read_result(line["r"], turn_.result)) return wrong("r is no result of a step");
    }
    if (line.contains("c")) {
        if (!line["c"].is_array()) return wrong("c must be a list");
        for (const Json& one : line["c"]) {
            runtime::Command& command = turn_.commands.emplace_back();
            if (!read_command(one, command)) return wrong("c holds something that is no command");
            if (command.kind == runtime::Command::Kind::admit && !admitted_.insert(command.seq).second)
                return wrong(fmt::format("sequence {} comes in twice", index(command.seq)));
        }
    }
    if (line.contains("d")) {
        if (!line["d"].is_array()) return wrong("d must be a list");
        for (const Json& one : line["d"])
            if (!read_offer(one, turn_.offers.emplace_back())) return wrong("d holds something that is no guess");
    }
    if (line.contains("p")) {
        turn_.digest = number(line["p"]);
        if (!turn_.digest) return wrong("p must be a whole number");
    }
    return &turn_;
}

bool is_tape(const std::string& path) {
    std::ifstream file(path);
    std::string head(TapeReader::kMark.size(), 0);
    return file.read(head.data(), static_cast<std::streamsize>(head.size())) && head == TapeReader::kMark;
}

Result<Workload> workload_of_tape(const std::string& path) {
    auto reader = TapeReader::open(path);
    if (!reader) return std::move(reader).error();
    Workload out;
    out.house = reader->house();
    out.house->draft.reset();  // nobody guesses: what would come is not known
    std::map<SeqId, size_t> rows;
    while (true) {
        auto turn = reader->next();
        if (!turn) return std::move(turn).error();
        if (*turn == nullptr) break;
        for (const ItemResult& item : (*turn)->result.items) {
            const auto row = rows.find(item.seq);
            if (row != rows.end()) out.arrivals[row->second].output += item.accepted_end - item.accepted_begin;
        }
        for (const runtime::Command& command : (*turn)->commands) {
            if (command.kind != runtime::Command::Kind::admit) continue;
            rows.emplace(command.seq, out.arrivals.size());
            Arrival one;
            one.at = std::min(command.since, (*turn)->at);
            one.prompt = static_cast<uint32_t>(command.request.prompt.size());
            one.output = 0;
            one.priority = command.request.priority;
            one.scope = command.request.scope;
            one.tokens = command.request.prompt;
            out.arrivals.push_back(std::move(one));
        }
    }
    std::stable_sort(out.arrivals.begin(), out.arrivals.end(),
                     [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
    const Nanos first = out.arrivals.empty() ? 0 : out.arrivals.front().at;
    for (Arrival& one : out.arrivals) {
        one.at -= first;
        one.output = std::max(1U, one.output);
    }
    return out;
}

}  // namespace cadans::sim
