// Health and numbers.
#include "serve/dialects/json_writer.h"
#include "serve/doors.h"

namespace cadans::serve {

Opened Doors::live(const HttpRequest&) {
    HttpReply reply;
    JsonWriter(reply.body).object().key("status").text("live").close();
    return reply;
}

Opened Doors::ready(const HttpRequest&) {
    HttpReply reply;
    JsonWriter json(reply.body);
    json.object();
    const std::string* failure = readiness_.failure;
    if (failure == nullptr && !readiness_.draining && readiness_.house != nullptr) {
        json.key("status").text("ready").key("engine_restarts").number(readiness_.engine_restarts.load()).close();
        return reply;
    }
    reply.status = 503;
    reply.fields.emplace_back("Retry-After", "2");
    if (readiness_.draining) {
        json.key("status").text("draining").key("reason").text("the server is stopping: running requests are finished");
    } else if (failure != nullptr) {
        json.key("status").text("failed").key("reason").text(*failure);
    } else {
        json.key("status").text("loading").key("reason").text("the model is being loaded");
        json.key("done").number(readiness_.share_done.load());
    }
    json.key("engine_restarts").number(readiness_.engine_restarts.load()).close();
    return reply;
}

Opened Doors::prometheus(const HttpRequest&) {
    metrics::Now now;
    now.engine_restarts = readiness_.engine_restarts;
    now.history_lost = archive_.lost();
    now.spans_sent = spans_.sent();
    now.spans_lost = spans_.lost();
    if (const House* house = readiness_.house) {
        now.occupancy = house->fanout.occupancy();
        for (const ServedModel& model : house->catalog.models()) {
            const size_t place = index(model.model);
            if (now.model_names.size() <= place) now.model_names.resize(place + 1);
            now.model_names[place] = model.name;
        }
    }
    return HttpReply{.content_type = metrics::Metrics::kContentType, .body = metrics_.exposition(now)};
}

}  // namespace cadans::serve
