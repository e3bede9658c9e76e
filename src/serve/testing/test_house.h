// A whole server over the fake engine, on a port of its own.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serve/http/server.h"
#include "serve/testing/fake_engine.h"
#include "serve/testing/test_client.h"
#include "text/test_vocabulary.h"

namespace cadans::serve {

inline constexpr const char* kTestTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    "{# <think> </think> #}";

/// One that wants users to speak one at a time.
inline constexpr const char* kAlternating =
    "{% set seen = namespace(role='') %}{% for m in messages %}"
    "{% if m.role == seen.role %}{{ raise_exception('one after the other') }}{% endif %}"
    "{% set seen.role = m.role %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

inline text::Tokenizer test_tokenizer() {
    auto vocabulary = text::Vocabulary::make(text::small_bpe());
    check(vocabulary.has_value(), "the test vocabulary is good");
    auto tokenizer = text::Tokenizer::make(*std::move(vocabulary));
    check(tokenizer.has_value(), "the test tokenizer is good");
    return *std::move(tokenizer);
}

struct TestHouseOptions {
    ServerOptions server = {};
    uint32_t context = 4096;
    uint32_t width = 2;
    uint32_t places = 64;
    bool load = true;
    bool chat_template = true;
    const char* template_source = kTestTemplate;
};

class TestHouse {
  public:
    using Options = TestHouseOptions;

    explicit TestHouse(Options options = {})
        : tokenizer(test_tokenizer()), metrics(200 * kNanosPerMilli), options_(options) {
        auto parsed = text::ChatTemplate::parse(options.template_source);
        check(parsed.has_value(), "the test template is good");
        chat_template = std::make_unique<text::ChatTemplate>(*std::move(parsed));
        options.server.port = 0;
        options.server.handle_signals = false;
        auto opened = Server::open(options.server, metrics);
        check(opened.has_value(), "the test server can listen");
        server = *std::move(opened);
        http = std::jthread([this] { (void)server->run(); });
        house.models.push_back({ModelId{0}, tokenizer.vocabulary().size(), options.context, {{0, 1}}});
        house.page_bytes = 1 << 20;
        fanout = std::make_unique<runtime::Fanout>(server->notifier());
        inbox = std::make_unique<runtime::Inbox>(house, options.places);
        engine = std::make_unique<FakeEngine>(*inbox, *fanout);
        engine->end = *tokenizer.vocabulary().find("<|endoftext|>");
        if (options.load) load();
    }

    ~TestHouse() {
        server->stop();
        http.join();
        engine.reset();
        server.reset();
    }

    void load() {
        ModelCard card;
        card.name = "toy";
        card.tokenizer = &tokenizer;
        card.chat_template = options_.chat_template ? chat_template.get() : nullptr;
        card.context_tokens = options_.context;
        card.trained_context_tokens = options_.context;
        card.file.architecture = "llama";
        card.file.embedding_length = options_.width;
        server->ready({card}, *inbox, *fanout);
        while (get("/health/ready").status != 200) std::this_thread::yield();
    }

    /// What every sequence says.
    void say(std::string_view text) {
        engine->script = tokenizer.encode(text, {.add_special = false, .parse_special = true});
    }

    TestReply get(std::string_view path) { return TestClient(server->port()).exchange("GET", path); }
    TestReply post(std::string_view path, std::string_view body) {
        return TestClient(server->port()).exchange("POST", path, body);
    }

    /// Waits until the engine has nothing to do and all places are back.
    bool empties(int milliseconds = 5000) {
        for (int i = 0; i < milliseconds; ++i) {
            if (engine->running == 0 && inbox->in_flight() == 0) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }

    text::Tokenizer tokenizer;
    std::unique_ptr<text::ChatTemplate> chat_template;
    metrics::Metrics metrics;
    std::unique_ptr<Server> server;
    sched::House house;
    std::unique_ptr<runtime::Fanout> fanout;
    std::unique_ptr<runtime::Inbox> inbox;
    std::unique_ptr<FakeEngine> engine;
    std::jthread http;

  private:
    Options options_;
};

}  // namespace cadans::serve
