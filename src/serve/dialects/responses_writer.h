// Answers as OpenAI's responses route gives them.
#pragma once

#include <string>
#include <vector>

#include "serve/dialects/answer_writer.h"
#include "serve/dialects/json_writer.h"

namespace cadans::serve {

/// A response is items, one behind the other: thinking, a message, and one for each call of a tool. In a stream each
/// item is added, grows and is done, and the last event holds them all.
class ResponsesWriter final : public AnswerWriter {
  public:
    explicit ResponsesWriter(AnswerHead head) : AnswerWriter(std::move(head)) {}

    const char* stream_type() const noexcept override { return "text/event-stream; charset=utf-8"; }
    Dialect dialect() const noexcept override { return Dialect::openai; }
    void text(std::string& out, const ChoiceText& piece) override;
    void finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) override;
    void end(std::string&, const Closing&) override {}  // the finishing event is the last
    void progress(std::string&, const Progress&) override {}
    void idle(std::string& out) override { out += ": waiting\n\n"; }
    void error(std::string& out, const Error& error) override;
    std::string whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                      const Closing& closing) override;

  private:
    enum class Kind : uint8_t { thinking, message, call };
    struct Item {
        Kind kind = Kind::message;
        std::string id, text;  ///< of a call: its arguments
        std::string call_id, name;
        bool done = false;
    };

    template <class Write>
    void event(std::string& out, const char* type, Write&& write);
    void begin(std::string& out);
    Item& grow(std::string& out, Kind kind, const CallText* call);
    Item& add(Kind kind, const CallText* call);
    void delta(std::string& out, const char* type, const Item& item, std::string_view text);
    void close(std::string& out, bool whole);
    void write_item(JsonWriter& json, const Item& item, bool whole) const;
    void write_place(JsonWriter& json, const Item& item, bool part) const;
    void write_response(JsonWriter& json, const char* status, const Closing* closing) const;

    bool begun_ = false;
    uint64_t events_ = 0;
    std::vector<Item> items_;
};

}  // namespace cadans::serve
