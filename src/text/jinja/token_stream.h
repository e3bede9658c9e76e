// The words of a template under a reading head, and the first mistake found there.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/lexer.h"

namespace cadans::text::jinja {

/// The first mistake stays; after it the head stands at the end, so that every reader comes to its own end.
class TokenStream {
  public:
    TokenStream(std::vector<Token> tokens, uint32_t depth_max) : tokens_(std::move(tokens)), depth_max_(depth_max) {}

    const Token& now() const noexcept { return error_ ? tokens_.back() : tokens_[at_]; }
    const Token& ahead() const noexcept {
        return error_ || at_ + 1 >= tokens_.size() ? tokens_.back() : tokens_[at_ + 1];
    }
    Token next() {
        Token token = now();
        if (!error_ && at_ + 1 < tokens_.size()) at_++;
        return token;
    }
    bool at_end() const noexcept { return now().kind == Token::Kind::end; }

    bool accept_symbol(std::string_view symbol) {
        const bool here = now().is_symbol(symbol);
        if (here) next();
        return here;
    }
    bool accept_name(std::string_view name) {
        const bool here = now().is_name(name);
        if (here) next();
        return here;
    }
    void expect_symbol(std::string_view symbol) {
        if (!accept_symbol(symbol)) fail(fmt::format("expected \"{}\"", symbol));
    }
    void expect(Token::Kind kind, std::string_view what) {
        if (now().kind == kind)
            next();
        else
            fail(fmt::format("expected {}", what));
    }
    std::string expect_name(std::string_view what) {
        if (now().kind == Token::Kind::name) return next().text;
        fail(fmt::format("expected {}", what));
        return {};
    }

    void fail(std::string message, ErrorCode code = ErrorCode::bad_input) {
        if (!error_) error_ = Error{code, std::move(message), fmt::format("line {}", tokens_[at_].line)};
    }
    bool failed() const noexcept { return error_.has_value(); }
    const Error& error() const { return *error_; }

    /// One level of nesting while it lives.
    class Level {
      public:
        explicit Level(TokenStream& stream) : stream_(stream) {
            if (++stream_.depth_ > stream_.depth_max_)
                stream_.fail(fmt::format("nested deeper than {} levels", stream_.depth_max_), ErrorCode::too_large);
        }
        ~Level() { stream_.depth_--; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        TokenStream& stream_;
    };

  private:
    std::vector<Token> tokens_;
    size_t at_ = 0;
    uint32_t depth_ = 0, depth_max_;
    std::optional<Error> error_;
};

}  // namespace cadans::text::jinja
