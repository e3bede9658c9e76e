// Answers in every dialect, from outside, over the fake engine.
#include <gtest/gtest.h>

#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;

ordered_json parsed(const std::string& text) { return ordered_json::parse(text, nullptr, false); }

TEST(openai, streams_the_same_text_that_it_gives_whole) {
    TestHouse house;
    house.say("hello w\xC3\xB6rld \xF0\x9F\x98\x80!");
    const std::string whole =
        house.post("/v1/completions", R"({"prompt": "x", "max_tokens": 50})").json()["choices"][0]["text"];
    EXPECT_EQ(whole, "hello w\xC3\xB6rld \xF0\x9F\x98\x80!");
    const TestReply stream = house.post("/v1/completions", R"({"prompt": "x", "max_tokens": 50, "stream": true})");
    std::string joined;
    const auto frames = stream.frames();
    for (size_t i = 0; i + 1 < frames.size(); ++i) joined += parsed(frames[i])["choices"][0]["text"].get<std::string>();
    EXPECT_EQ(joined, whole);
    EXPECT_EQ(frames.back(), "[DONE]");
    EXPECT_EQ(parsed(frames[frames.size() - 2])["choices"][0]["finish_reason"], "stop");
    EXPECT_TRUE(parsed(frames[frames.size() - 2]).contains("timings"));
    EXPECT_FALSE(parsed(frames[0]).contains("timings"));
}

TEST(openai, gives_chat_its_role_reasoning_and_usage) {
    TestHouse house;
    house.say("<think>let me see</think>\n\nyes");
    const TestReply whole =
        house.post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "hello"}]})");
    ASSERT_EQ(whole.status, 200) << whole.body;
    const ordered_json message = whole.json()["choices"][0]["message"];
    EXPECT_EQ(message["role"], "assistant");
    EXPECT_EQ(message["content"], "yes");
    EXPECT_EQ(message["reasoning_content"], "let me see");
    EXPECT_EQ(whole.fields.at("x-request-id"), whole.json()["id"]);
    const TestReply stream = house.post(
        "/v1/chat/completions",
        R"({"messages": [{"role": "user", "content": "hello"}], "stream": true, "stream_options": {"include_usage": true}})");
    const auto frames = stream.frames();
    std::string content, reasoning;
    for (size_t i = 0; i + 2 < frames.size(); ++i) {
        const ordered_json frame = parsed(frames[i]);
        EXPECT_TRUE(frame["usage"].is_null());
        const ordered_json& delta = frame["choices"][0]["delta"];
        EXPECT_EQ(delta.contains("role"), i == 0);
        content += delta.value("content", "");
        reasoning += delta.value("reasoning_content", "");
    }
    EXPECT_EQ(content, "yes");
    EXPECT_EQ(reasoning, "let me see");
    const ordered_json last = parsed(frames[frames.size() - 2]);
    EXPECT_TRUE(last["choices"].empty());
    EXPECT_EQ(last["usage"]["prompt_tokens"], whole.json()["usage"]["prompt_tokens"]);
    EXPECT_EQ(last["usage"]["completion_tokens"], whole.json()["usage"]["completion_tokens"]);
    EXPECT_EQ(last["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    EXPECT_TRUE(last.contains("cadans"));
}

TEST(openai, never_shows_a_stop_string_and_stops_the_engine) {
    TestHouse house;
    house.say("one two END three four five six seven eight nine ten");
    house.engine->step_time = kNanosPerMilli;
    const char* body = R"({"prompt": "x", "max_tokens": 500, "stop": ["END"], "return_token_ids": true})";
    const ordered_json whole = house.post("/v1/completions", body).json();
    EXPECT_EQ(whole["choices"][0]["text"], "one two ");
    EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(whole["usage"]["completion_tokens"], whole["choices"][0]["token_ids"].size());
    EXPECT_EQ(whole["usage"]["completion_tokens"], 11);
    EXPECT_TRUE(house.empties());
    EXPECT_EQ(house.engine->cancelled, 1u);
}

TEST(openai, scores_prompts_as_the_harness_reads_them) {
    TestHouse house;
    const ordered_json none =
        house.post("/v1/completions", R"({"prompt": [97, 98, 255], "max_tokens": 0, "echo": true, "logprobs": 2})")
            .json();
    const ordered_json& choice = none["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["logprobs"]["tokens"], ordered_json({"a", "b", "bytes:\\xff"}));
    EXPECT_EQ(choice["logprobs"]["token_logprobs"].dump(), "[null,-0.1,-0.2]");
    EXPECT_TRUE(choice["logprobs"]["top_logprobs"][0].is_null());
    EXPECT_EQ(choice["logprobs"]["top_logprobs"][1].size(), 2u);
    EXPECT_EQ(choice["logprobs"]["text_offset"].dump(), "[0,1,2]");
    EXPECT_EQ(none["usage"]["completion_tokens"], 0);
    const ordered_json two =
        house.post("/v1/completions", R"({"prompt": [[97, 98], [99]], "max_tokens": 1, "echo": true, "logprobs": 1})")
            .json();
    ASSERT_EQ(two["choices"].size(), 2u);
    EXPECT_EQ(two["choices"][0]["logprobs"]["token_logprobs"].size(), 3u);
    EXPECT_EQ(two["choices"][1]["logprobs"]["token_logprobs"].size(), 2u);
    EXPECT_EQ(two["choices"][1]["index"], 1);
    EXPECT_TRUE(two["choices"][0]["text"].get<std::string>().starts_with("ab"));
    EXPECT_EQ(two["usage"]["prompt_tokens"], 3);
}

TEST(openai, gives_chat_logprobs) {
    TestHouse house;
    const ordered_json answer =
        house
            .post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 2,
                                          "logprobs": true, "top_logprobs": 3})")
            .json();
    const ordered_json& content = answer["choices"][0]["logprobs"]["content"];
    ASSERT_EQ(content.size(), 2u);
    EXPECT_EQ(content[0]["logprob"].dump(), "-0.3");
    EXPECT_EQ(content[0]["top_logprobs"].size(), 3u);
    EXPECT_EQ(content[0]["bytes"].size(), 1u);
}

TEST(openai, gives_several_choices_and_the_same_text_for_a_seed) {
    TestHouse house;
    const char* body = R"({"prompt": "x", "max_tokens": 8, "n": 3, "seed": 7, "return_token_ids": true})";
    const ordered_json first = house.post("/v1/completions", body).json();
    const ordered_json again = house.post("/v1/completions", body).json();
    ASSERT_EQ(first["choices"].size(), 3u);
    EXPECT_NE(first["choices"][0]["text"], first["choices"][1]["text"]);
    EXPECT_EQ(first["choices"], again["choices"]);
    EXPECT_EQ(first["usage"]["prompt_tokens"], 1);
    EXPECT_EQ(first["usage"]["completion_tokens"], 24);
    EXPECT_EQ(first["cadans"]["seed"], 7);
}

TEST(openai, can_tell_of_a_finished_request) {
    TestHouse house;
    TestClient client(house.server->port());
    const TestReply answer = client.exchange("POST", "/v1/completions", R"({"prompt": "x", "max_tokens": 4})",
                                             "Content-Type: application/json\r\nX-Request-Id: mine\r\n");
    const ordered_json cadans = answer.json()["cadans"];
    EXPECT_EQ(house.get("/cadans/v1/requests/" + answer.json()["id"].get<std::string>()).json(), cadans);
    EXPECT_EQ(cadans["client_request_id"], "mine");
    EXPECT_TRUE(cadans["ttft_ns"].is_null());
    int64_t sum = 0;
    for (const auto& [cause, ns] : cadans["receipt_ns"].items()) sum += ns.get<int64_t>();
    EXPECT_EQ(sum, cadans["total_ns"]);
    EXPECT_EQ(house.get("/cadans/v1/requests/nobody").status, 404);
}

TEST(openai, shows_progress_when_asked) {
    TestHouse house;
    house.engine->prefill_chunk = 10;
    house.engine->step_time = 5 * kNanosPerMilli;
    const std::string prompt(100, 'a');
    const TestReply reply = house.post(
        "/v1/completions", R"({"prompt": ")" + prompt +
                               R"(", "max_tokens": 1, "stream": true, "stream_options": {"include_progress": true}})");
    uint32_t seen = 0;
    for (const std::string& frame : reply.frames()) {
        if (frame == "[DONE]" || !parsed(frame)["cadans"].contains("progress")) continue;
        const ordered_json progress = parsed(frame)["cadans"]["progress"];
        EXPECT_EQ(progress["total"], 100);
        EXPECT_GE(progress["computed"], seen);
        seen = progress["computed"];
    }
    EXPECT_GT(seen, 0u);
}

TEST(openai, ends_a_broken_stream_with_an_error_and_no_finish) {
    TestHouse house;
    house.engine->fails = true;
    const TestReply stream = house.post("/v1/completions", R"({"prompt": "x", "max_tokens": 50, "stream": true})");
    EXPECT_EQ(stream.status, 200);
    EXPECT_TRUE(parsed(stream.frames().back())["error"].is_object());
    EXPECT_EQ(stream.body.find("\"finish_reason\":\""), std::string::npos);
    EXPECT_EQ(house.post("/v1/completions", R"({"prompt": "x", "max_tokens": 50})").status, 500);
    const TestReply lines = house.post("/api/generate", R"({"prompt": "x", "raw": true})");
    EXPECT_TRUE(parsed(lines.lines().back())["error"].is_string());
    EXPECT_NE(house.get("/metrics").body.find("cadans_requests_total{outcome=\"error\"} 3"), std::string::npos);
}

TEST(openai, sends_signs_of_life_while_nothing_happens) {
    TestHouseOptions options;
    options.server.comment_every = 50 * kNanosPerMilli;
    TestHouse house(options);
    house.engine->held = true;
    TestClient client(house.server->port());
    client.send(TestClient::request("POST", "/v1/completions", R"({"prompt": "x", "max_tokens": 2, "stream": true})"));
    EXPECT_TRUE(client.until(": waiting\n\n"));
    TestClient ollama(house.server->port());
    ollama.send(
        TestClient::request("POST", "/api/generate", R"({"prompt": "x", "raw": true, "options": {"num_predict": 2}})"));
    EXPECT_TRUE(ollama.until("\"response\":\"\",\"done\":false"));
    house.engine->held = false;
    EXPECT_EQ(client.read().frames().back(), "[DONE]");
    EXPECT_EQ(parsed(ollama.read().lines().back())["done"], true);
}

TEST(openai, refuses_what_is_too_long_or_too_much_with_the_numbers) {
    TestHouseOptions options;
    options.context = 32;
    options.places = 2;
    TestHouse house(options);
    const TestReply longer = house.post("/v1/completions", R"({"prompt": ")" + std::string(40, 'b') + R"("})");
    EXPECT_EQ(longer.status, 400);
    EXPECT_EQ(longer.json()["error"]["code"], "context_length_exceeded");
    EXPECT_NE(longer.json()["error"]["message"].get<std::string>().find("40"), std::string::npos);
    EXPECT_NE(longer.json()["error"]["message"].get<std::string>().find("32"), std::string::npos);
    const TestReply both =
        house.post("/v1/completions", R"({"grammar": "root :", "prompt": ")" + std::string(40, 'b') + R"("})");
    EXPECT_EQ(both.json()["error"]["code"], "context_length_exceeded") << "no grammar is compiled for it";
    EXPECT_EQ(house.post("/v1/completions", R"({"grammar": "root :", "prompt": "b"})").json()["error"]["param"],
              "grammar");
    const TestReply endless = house.post("/v1/completions", R"({"prompt": ")" + std::string(4'000'000, 'b') + R"("})");
    EXPECT_EQ(endless.json()["error"]["code"], "context_length_exceeded");
    EXPECT_NE(endless.json()["error"]["message"].get<std::string>().find("at least"), std::string::npos)
        << "refused by its length, before it is tokenized";
    EXPECT_EQ(house.post("/v1/completions", R"({"prompt": "b", "n": 3})").status, 400);
    const ordered_json rest = house.post("/v1/completions", R"({"prompt": "bb", "max_tokens": 9000000000000})").json();
    EXPECT_EQ(rest["usage"]["total_tokens"], 32);
    EXPECT_EQ(rest["choices"][0]["finish_reason"], "length");
    house.engine->held = true;
    TestClient first(house.server->port()), second(house.server->port());
    first.send(TestClient::request("POST", "/v1/completions", R"({"prompt": "b"})"));
    second.send(TestClient::request("POST", "/v1/completions", R"({"prompt": "b"})"));
    while (house.inbox->in_flight() < 2) std::this_thread::yield();
    const TestReply busy = house.post("/v1/completions", R"({"prompt": "b"})");
    EXPECT_EQ(busy.status, 429);
    EXPECT_GE(std::stoi(busy.fields.at("retry-after")), 1);
    house.engine->held = false;
    EXPECT_EQ(first.read().status, 200);
    EXPECT_EQ(second.read().status, 200);
    EXPECT_TRUE(house.empties());
}

TEST(clients_that_leave, cost_nothing_more) {
    TestHouse house;
    house.engine->step_time = kNanosPerMilli;
    const char* bodies[] = {R"({"prompt": "x", "max_tokens": 4000, "stream": true})",
                            R"({"prompt": "x", "max_tokens": 4000})",
                            R"({"prompt": "x", "max_tokens": 4000, "n": 3, "stream": true})"};
    for (int round = 0; round < 9; ++round) {
        TestClient client(house.server->port());
        client.send(TestClient::request("POST", "/v1/completions", bodies[round % 3]));
        if (round < 6) {
            while (house.engine->running == 0) std::this_thread::yield();
            if (round % 3 != 1) client.until("data: ");
        }
        if (round % 2 == 0) {
            linger reset{1, 0};
            setsockopt(client.descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        client.close();
        EXPECT_TRUE(house.empties(1000)) << round;
    }
    EXPECT_EQ(house.post("/v1/completions", R"({"prompt": "x", "max_tokens": 2})").status, 200);
    const std::string page = house.get("/metrics").body;
    EXPECT_EQ(page.find("cadans_requests_total{outcome=\"cancelled\"} 0"), std::string::npos);
}

TEST(clients_that_leave, are_noticed_while_they_wait_in_the_queue) {
    TestHouse house;
    house.engine->held = true;
    {
        TestClient client(house.server->port());
        client.send(TestClient::request("POST", "/v1/completions", R"({"prompt": "x"})"));
        while (house.inbox->in_flight() == 0) std::this_thread::yield();
    }
    EXPECT_TRUE(house.empties(1000));
}

TEST(clients_that_leave, and_those_that_do_not_read_hold_up_nobody) {
    TestHouseOptions options;
    options.server.limits.write = 300 * kNanosPerMilli;
    options.context = 200'000;
    TestHouse house(options);
    TestClient sleeper(house.server->port());
    int small = 4096;
    setsockopt(sleeper.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sleeper.send(TestClient::request("POST", "/v1/completions",
                                     R"({"prompt": "x", "max_tokens": 150000, "stream": true, "logprobs": 20})"));
    EXPECT_EQ(house.post("/v1/completions", R"({"prompt": "x", "max_tokens": 5})").json()["usage"]["completion_tokens"],
              5);
    EXPECT_TRUE(house.empties(15'000));
    std::string id;
    const ordered_json kept = house.get("/cadans/v1/history").json();
    for (const ordered_json& each : kept["records"])
        if (each["stream"].get<bool>()) id = each["id"].get<std::string>();
    const ordered_json receipt = house.get("/cadans/v1/requests/" + id).json()["receipt_ns"];
    EXPECT_GE(receipt["client_slow"], 250 * kNanosPerMilli) << receipt;
}

TEST(ollama, streams_lines_with_exact_fields) {
    TestHouse house;
    house.say("<think>hm</think>hello there");
    const TestReply stream =
        house.post("/api/chat", R"({"model": "toy:latest", "messages": [{"role": "user", "content": "hi"}]})");
    ASSERT_EQ(stream.status, 200) << stream.body;
    EXPECT_EQ(stream.fields.at("content-type"), "application/x-ndjson");
    std::string content, thinking;
    const auto lines = stream.lines();
    for (const std::string& line : lines) {
        const ordered_json frame = parsed(line);
        EXPECT_EQ(frame["model"], "toy");
        EXPECT_TRUE(frame["created_at"].is_string());
        EXPECT_EQ(frame["message"]["role"], "assistant");
        content += frame["message"]["content"].get<std::string>();
        thinking += frame["message"].value("thinking", "");
        EXPECT_EQ(frame["done"], &line == &lines.back());
    }
    EXPECT_EQ(content, "hello there");
    EXPECT_EQ(thinking, "hm");
    const ordered_json last = parsed(lines.back());
    EXPECT_EQ(last["done_reason"], "stop");
    for (const char* name : {"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_cached_count",
                             "prompt_eval_duration", "eval_count", "eval_duration"})
        EXPECT_TRUE(last[name].is_number_integer()) << name;
}

TEST(ollama, answers_generate_whole_raw_and_empty) {
    TestHouse house;
    house.say("yes");
    const ordered_json raw = house.post("/api/generate", R"({"prompt": "hi", "raw": true, "stream": false})").json();
    EXPECT_EQ(raw["response"], "yes");
    EXPECT_EQ(raw["prompt_eval_count"], 2);
    const ordered_json shaped =
        house.post("/api/generate", R"({"prompt": "hi", "system": "s", "stream": false})").json();
    EXPECT_GT(shaped["prompt_eval_count"].get<int>(), 2);
    const ordered_json empty = house.post("/api/generate", R"({"model": "toy", "stream": false})").json();
    EXPECT_EQ(empty["done_reason"], "load");
    const ordered_json lowered =
        house.post("/api/generate", R"({"prompt": "aaaa", "raw": true, "options": {"num_ctx": 3}})").json();
    EXPECT_TRUE(lowered["error"].is_string());
    EXPECT_EQ(house.post("/api/chat", R"({"model": "other", "messages": [{"role": "user", "content": "a"}]})").status,
              404);
}

TEST(ollama, lists_models_as_its_clients_need_them) {
    TestHouse house;
    EXPECT_EQ(house.get("/api/tags").json()["models"][0]["name"], "toy:latest");
    EXPECT_EQ(house.get("/api/ps").json()["models"][0]["name"], "toy:latest");
    EXPECT_GE(std::stof(house.get("/api/version").json()["version"].get<std::string>().substr(2)), 6.4F);
    const ordered_json shown = house.post("/api/show", R"({"name": "toy"})").json();
    EXPECT_TRUE(shown["capabilities"].is_array());
    for (const char* key : {"general.architecture", "general.basename", "llama.context_length"})
        EXPECT_TRUE(shown["model_info"].contains(key)) << key;
}

TEST(text_routes, speak_two_forms) {
    TestHouse house;
    EXPECT_EQ(house.post("/tokenize", R"({"content": "ab"})").body, R"({"tokens":[97,98]})");
    EXPECT_EQ(house.post("/tokenize", R"({"prompt": "ab"})").body,
              R"({"tokens":[97,98],"count":2,"max_model_len":4096})");
    EXPECT_EQ(house.post("/tokenize", R"({"content": "a\u00e9", "with_pieces": true})").json()["tokens"][1]["piece"][0],
              0xC3);
    EXPECT_EQ(house.post("/detokenize", R"({"tokens": [97, 98]})").body, R"({"content":"ab","prompt":"ab"})");
    EXPECT_EQ(house.post("/detokenize", R"({"tokens": [270]})").status, 400);
    EXPECT_TRUE(house.get("/tokenizer_info").json().contains("eos_token"));
    EXPECT_EQ(house.post("/apply-template", R"({"messages": [{"role": "user", "content": "hi"}]})").json()["prompt"],
              "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(chat, says_why_a_model_without_a_template_cannot) {
    TestHouseOptions options;
    options.chat_template = false;
    TestHouse house(options);
    const TestReply reply = house.post("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "hi"}]})");
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.json()["error"]["message"].get<std::string>().find("--chat-template"), std::string::npos);
    EXPECT_EQ(house.post("/api/generate", R"({"prompt": "hi", "stream": false, "options": {"num_predict": 2}})").status,
              200);
}

TEST(chat, never_lets_content_become_control_tokens) {
    TestHouse house;
    const ordered_json answer =
        house
            .post(
                "/v1/chat/completions",
                R"({"messages": [{"role": "user", "content": "<|im_end|><think>"}], "max_tokens": 1, "return_token_ids": true})")
            .json();
    const uint32_t end = index(*house.tokenizer.vocabulary().find("<|im_end|>"));
    uint32_t ends = 0;
    for (const auto& id : answer["prompt_token_ids"]) ends += id == end;
    EXPECT_EQ(ends, 1u);
}

TEST(answers, vectors_come_in_each_dialects_form) {
    TestHouse house({.server = {}, .width = 3});
    const ordered_json openai = house.post("/v1/embeddings", R"({"input": ["hello", "h"]})").json();
    ASSERT_EQ(openai["data"].size(), 2u) << openai.dump();
    EXPECT_EQ(openai["data"][1]["index"], 1);
    EXPECT_EQ(openai["data"][0]["embedding"], ordered_json({0.6, 0.8, 0.0})) << "of length 1";
    EXPECT_EQ(openai["usage"]["prompt_tokens"], openai["usage"]["total_tokens"]);
    EXPECT_EQ(openai["cadans"]["route"], "embeddings");
    EXPECT_EQ(openai["cadans"]["outcome"], "stop");
    const ordered_json packed = house.post("/v1/embeddings", R"({"input": "h", "encoding_format": "base64"})").json();
    EXPECT_EQ(packed["data"][0]["embedding"], "mpkZP83MTD8AAAAA");
    const ordered_json ollama = house.post("/api/embed", R"({"input": ["hello", "h"]})").json();
    EXPECT_EQ(ollama["embeddings"].size(), 2u) << ollama.dump();
    EXPECT_GT(ollama["prompt_eval_count"], 1);
    const ordered_json older = house.post("/api/embeddings", R"({"prompt": "hello"})").json();
    EXPECT_EQ(older["embedding"], ordered_json({3.0, 4.0, 0.0})) << "as it comes";
    EXPECT_EQ(house.post("/v1/embeddings", R"({"input": [""]})").status, 400);
    EXPECT_EQ(house.post("/api/embed", R"({"input": "h", "dimensions": 2})").status, 400);
    EXPECT_TRUE(house.empties());
}

TEST(answers, compiling_a_form_is_part_of_the_mask_in_the_receipt) {
    TestHouse house;
    house.say("aaa");
    const auto receipt = [&](const std::string& more) {
        const ordered_json answer =
            house.post("/v1/completions", R"({"prompt": "x", "max_tokens": 5)" + more + "}").json();
        EXPECT_EQ(answer["choices"][0]["text"], "aaa");
        return answer["cadans"]["receipt_ns"];
    };
    EXPECT_EQ(receipt("")["mask"], 0);
    const ordered_json held = receipt(R"(, "regex": "(a|b){1,300}")");
    EXPECT_GT(held["mask"], held["tokenize"]) << "a pattern's automaton takes longer than a letter's id";
}

}  // namespace
}  // namespace cadans::serve
