// What finished requests tell, one by one and together.
#include <algorithm>

#include "base/clock.h"
#include "serve/dialects/json_writer.h"
#include "serve/doors.h"
#include "serve/http/query.h"
#include "serve/record/history_json.h"
#include "serve/record/record_reader.h"

namespace cadans::serve {

namespace {

constexpr uint64_t kMostRows = 200'000;  ///< of one question
constexpr std::string_view kRequests = "/cadans/v1/requests/";
constexpr std::string_view kExplanation = "/explanation";

using MakeReply = std::function<HttpReply(const std::string& record)>;

HttpReply as_it_is(const std::string& record) { return HttpReply{.body = record}; }

/// The record in sentences; `cost` of its model, where that is known.
HttpReply explained(const std::string& record, metrics::Language language,
                    const std::function<std::optional<StepCost>(const std::string& model)>& cost_of) {
    Result<ReadRecord> read = read_record(record);
    if (!read) return error_reply(read.error(), Dialect::openai);
    metrics::Explained& request = read->explained;
    request.cost = cost_of(read->model);
    const std::vector<metrics::Sentence> sentences = metrics::explain(request, language);
    const metrics::Receipt& receipt = request.figures.receipt;
    const metrics::Cause longest = receipt.longest();
    const Nanos total = receipt.total();

    HttpReply reply;
    JsonWriter json(reply.body);
    json.object();
    json.key("id").text(read->id);
    json.key("language").text(metrics::name(language));
    json.key("longest_wait").object();
    json.key("cause").text(metrics::name(longest));
    json.key("ns").number(receipt[longest]);
    json.key("share");
    total > 0 ? json.number(static_cast<double>(receipt[longest]) / static_cast<double>(total)) : json.null();
    json.close();
    json.key("sentences").array();
    for (const metrics::Sentence& sentence : sentences)
        json.object().key("about").text(sentence.about).key("text").text(sentence.text).close();
    json.close();
    json.key("text").text(metrics::joined(sentences));
    json.close();
    return reply;
}

}  // namespace

Opened Doors::finished_request(const HttpRequest& request) {
    std::string id = request.path.substr(kRequests.size());
    MakeReply make = as_it_is;
    if (id.ends_with(kExplanation)) {
        id.resize(id.size() - kExplanation.size());
        const std::optional<std::string> asked = query_value(request.query, "language");
        std::optional<metrics::Language> language =
            asked ? metrics::language_of(*asked) : metrics::accepted_language(request.field("accept-language"));
        if (asked && !language)
            return error_reply(
                bad_input("language is \"" + asked->substr(0, 40) + "\"; en, nl and de are spoken", "language"),
                Dialect::openai);
        make = [this, language = language.value_or(metrics::Language::en)](const std::string& record) {
            return explained(record, language, [this](const std::string& model) { return cost_of(model); });
        };
    }
    const bool newest = id == "latest";
    const RequestLog& log = archive_.log();
    const history::FinishedRequest* found = newest ? (log.all().empty() ? nullptr : &log.all().back()) : log.find(id);
    if (found != nullptr) return make(found->record);
    return Later([this, id, newest, make] {
        history::Store* store = archive_.store();
        Result<std::string> record = Error{ErrorCode::not_found, "no finished request of this id is remembered", "id"};
        if (store != nullptr) record = newest ? store->newest() : store->find(id);
        if (!record) return error_reply(record.error(), Dialect::openai);
        return make(*record);
    });
}

// From the disk where there is one; else from what memory still holds.
Opened Doors::history(const HttpRequest& request) {
    constexpr int64_t kDayMs = 86'400'000;
    constexpr int64_t kLastMs = 4'102'444'800'000;  // of the century
    const int64_t now = unix_millis();
    const auto from = query_number(request.query, "from", 0, kLastMs, now - kDayMs);
    const auto to = query_number(request.query, "to", 0, kLastMs, now + 1);
    const auto limit = query_number(request.query, "limit", 0, 1000, 50);
    const auto buckets = query_number(request.query, "buckets", 1, 500, 48);
    for (const auto* number : {&from, &to, &limit, &buckets})
        if (!*number) return error_reply(number->error(), Dialect::openai);
    const std::string order_text = query_value(request.query, "order").value_or("newest");
    if (order_text != "newest" && order_text != "slowest")
        return error_reply(bad_input("order is newest or slowest", "order"), Dialect::openai);
    if (*from >= *to) return error_reply(bad_input("from must be before to", "from"), Dialect::openai);
    const auto order = order_text == "newest" ? history::Order::newest : history::Order::slowest;
    const history::Span span{*from, *to, query_value(request.query, "model").value_or("")};
    const auto most = static_cast<size_t>(*limit);
    HistoryQuestion question{.from_ms = *from, .to_ms = *to, .buckets = static_cast<uint32_t>(*buckets)};

    std::vector<history::FinishedRequest> remembered;
    if (!archive_.on_disk()) {
        const auto& all = archive_.log().all();
        if (!all.empty()) question.kept_since_ms = all.front().unix_ms;
        for (const history::FinishedRequest& row : all)
            if (row.unix_ms >= span.from_ms && row.unix_ms < span.to_ms &&
                (span.model.empty() || row.model == span.model))
                remembered.push_back(row);
    }
    return Later([this, question, span, order, most, remembered = std::move(remembered)]() mutable {
        std::span<const history::FinishedRequest> rows = remembered;
        if (history::Store* store = archive_.store()) {
            const auto found = store->rows(span, kMostRows);
            const auto since = store->kept_since();
            if (!found) return error_reply(found.error(), Dialect::openai);
            rows = *found;
            question.on_disk = true;
            if (since) question.kept_since_ms = *since;
        }
        return HttpReply{.body = history_json(question, rows, history::first_rows(rows, order, most))};
    });
}

Opened Doors::finished_requests(const HttpRequest& request) {
    const auto limit = query_number(request.query, "limit", 1, 1000, 50);
    if (!limit) return error_reply(limit.error(), Dialect::openai);
    const auto most = static_cast<size_t>(*limit);
    const auto list = [](const std::vector<history::FinishedRequest>& rows) {
        HttpReply reply;
        JsonWriter json(reply.body);
        json.object().key("records").array();
        for (const history::FinishedRequest& row : rows) write_summary(json, row);
        json.close().close();
        return reply;
    };
    const auto& all = archive_.log().all();
    if (all.size() >= most || !archive_.on_disk()) {
        const auto count = static_cast<std::ptrdiff_t>(std::min(most, all.size()));
        return list({all.rbegin(), all.rbegin() + count});
    }
    return Later([this, most, list] {
        history::Store* store = archive_.store();
        if (store == nullptr) return list({});
        const auto rows = store->newest_rows(most);
        if (!rows) return error_reply(rows.error(), Dialect::openai);
        return list(*rows);
    });
}

std::optional<StepCost> Doors::cost_of(const std::string& model) const {
    const House* house = readiness_.house;
    if (house == nullptr) return std::nullopt;
    for (const ServedModel& each : house->catalog.models())
        if (each.name == model) return each.step_cost();
    return std::nullopt;
}

}  // namespace cadans::serve
