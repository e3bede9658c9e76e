#include "text/jinja/parser.h"

#include <algorithm>
#include <span>

#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"
#include "text/jinja/token_stream.h"

namespace cadans::text::jinja {
namespace {

using Kind = Statement::Kind;
using Names = std::span<const std::string_view>;

class Parser {
  public:
    Parser(std::vector<Token> tokens, uint32_t depth_max) : in_(std::move(tokens), depth_max), expressions_(in_) {}

    Result<Body> run() {
        Body all = body({});
        if (!in_.failed() && !in_.at_end()) in_.fail(fmt::format("\"{}\" has no beginning", in_.ahead().text));
        if (in_.failed()) return in_.error();
        return all;
    }

  private:
    using Made = std::unique_ptr<Statement>;

    Made make(Kind kind) {
        auto made = std::make_unique<Statement>();
        made->kind = kind;
        made->line = in_.now().line;
        return made;
    }

    bool ends_here(Names ends) const {
        return in_.now().kind == Token::Kind::block_begin && in_.ahead().kind == Token::Kind::name &&
               std::find(ends.begin(), ends.end(), in_.ahead().text) != ends.end();
    }

    /// Up to a statement named in `ends`, which is left unread, or to the end of the template.
    Body body(Names ends) {
        const TokenStream::Level level(in_);
        Body made;
        while (!in_.at_end() && !ends_here(ends)) {
            const Token& token = in_.now();
            if (token.kind == Token::Kind::data) {
                auto text = make(Kind::data);
                text->text = MarkedText(in_.next().text, true);
                made.push_back(std::move(text));
            } else if (token.kind == Token::Kind::print_begin) {
                in_.next();
                auto print = make(Kind::print);
                print->expression = expressions_.tuple();
                in_.expect(Token::Kind::print_end, "\"}}\"");
                made.push_back(std::move(print));
            } else {
                // "endfor" and its like without a beginning end here, too: run() reports them.
                if (in_.ahead().text.starts_with("end") || in_.ahead().is_name("else") || in_.ahead().is_name("elif"))
                    break;
                in_.expect(Token::Kind::block_begin, "a statement");
                made.push_back(statement());
            }
            if (in_.failed()) break;
        }
        return made;
    }

    void close_tag() { in_.expect(Token::Kind::block_end, "\"%}\""); }

    /// "{% name %}"
    void end_tag(std::string_view name) {
        if (in_.at_end()) return in_.fail(fmt::format("{{% {} %}} is missing", name));
        in_.expect(Token::Kind::block_begin, fmt::format("{{% {} %}}", name));
        if (!in_.accept_name(name)) in_.fail(fmt::format("expected {{% {} %}}", name));
        close_tag();
    }

    Body body_until(std::string_view name) {
        Body made = body(Names(&name, 1));
        end_tag(name);
        return made;
    }

    Made statement() {
        const TokenStream::Level level(in_);
        const std::string name = in_.expect_name("the name of a statement");
        if (name == "if") return branch();
        if (name == "for") return loop();
        if (name == "set") return set();
        if (name == "macro") return macro();
        if (name == "call") return call();
        if (name == "filter") return filter();
        if (name == "with") return with();
        if (name == "generation") return generation();
        if (name == "break" || name == "continue") {
            auto made = make(name == "break" ? Kind::loop_break : Kind::loop_continue);
            if (loops_ == 0) in_.fail(fmt::format("{} outside a loop", name));
            close_tag();
            return made;
        }
        in_.fail(fmt::format("the statement \"{}\" is not supported", name), ErrorCode::unsupported);
        return make(Kind::scope);
    }

    Made branch() {
        constexpr std::string_view kEnds[] = {"elif", "else", "endif"};
        auto made = make(Kind::branch);
        auto condition = expressions_.tuple();
        for (;;) {
            close_tag();
            Body then = body(kEnds);
            made->branches.emplace_back(std::move(condition), std::move(then));
            if (in_.failed() || !ends_here(kEnds)) break;
            if (in_.ahead().is_name("endif")) break;
            in_.next();
            const bool has_condition = in_.next().text == "elif";
            if (has_condition) {
                condition = expressions_.tuple();
                continue;
            }
            close_tag();
            made->branches.emplace_back(nullptr, body(Names(&kEnds[2], 1)));
            break;
        }
        end_tag("endif");
        return made;
    }

    Made loop() {
        constexpr std::string_view kEnds[] = {"else", "endfor"};
        auto made = make(Kind::loop);
        made->targets = expressions_.targets(false);
        if (!in_.accept_name("in")) in_.fail("expected \"in\"");
        made->expression = expressions_.tuple(false);
        if (in_.accept_name("if")) made->condition = expressions_.expression();
        if (in_.now().is_name("recursive")) in_.fail("recursive loops are not supported", ErrorCode::unsupported);
        close_tag();
        loops_++;
        made->body = body(kEnds);
        loops_--;
        if (ends_here(Names(&kEnds[0], 1))) {
            in_.next();
            in_.next();
            close_tag();
            made->otherwise = body(Names(&kEnds[1], 1));
        }
        end_tag("endfor");
        return made;
    }

    Made set() {
        auto made = make(Kind::set);
        made->targets = expressions_.targets(true);
        if (in_.accept_symbol("=")) {
            made->expression = expressions_.tuple();
            close_tag();
            return made;
        }
        made->kind = Kind::set_block;
        made->expression = expressions_.filters(expressions_.make(Expression::Kind::name));
        close_tag();
        made->body = body_until("endset");
        return made;
    }

    void parameters(Macro& macro) {
        in_.expect_symbol("(");
        while (!in_.now().is_symbol(")") && !in_.failed()) {
            macro.parameters.push_back(in_.expect_name("a parameter"));
            macro.defaults.push_back(in_.accept_symbol("=") ? expressions_.expression() : nullptr);
            if (!in_.accept_symbol(",")) break;
        }
        in_.expect_symbol(")");
    }

    /// The body of a macro: a loop around its definition is none of its own.
    Body macro_body(std::string_view end) {
        const uint32_t outer = std::exchange(loops_, 0);
        Body made = body_until(end);
        loops_ = outer;
        return made;
    }

    Made macro() {
        auto made = make(Kind::macro);
        made->macro = std::make_unique<Macro>();
        made->macro->name = in_.expect_name("the name of a macro");
        parameters(*made->macro);
        close_tag();
        made->macro->body = macro_body("endmacro");
        return made;
    }

    Made call() {
        auto made = make(Kind::call);
        made->macro = std::make_unique<Macro>();
        made->macro->name = "caller";
        if (in_.now().is_symbol("(")) parameters(*made->macro);
        made->expression = expressions_.expression();
        if (made->expression->kind != Expression::Kind::call) in_.fail("expected a call");
        close_tag();
        made->macro->body = macro_body("endcall");
        return made;
    }

    Made filter() {
        auto made = make(Kind::filter);
        // "upper|trim" reads as filters over what the body writes; the first has no "|" in front.
        auto value = expressions_.make(Expression::Kind::filter, in_.expect_name("the name of a filter"));
        value->parts.push_back(expressions_.make(Expression::Kind::name));
        value->height = 2;
        if (in_.now().is_symbol("(")) expressions_.arguments(*value);
        made->expression = expressions_.filters(std::move(value));
        close_tag();
        made->body = body_until("endfilter");
        return made;
    }

    Made with() {
        auto made = make(Kind::with);
        while (in_.now().kind == Token::Kind::name && !in_.failed()) {
            auto target = expressions_.make(Expression::Kind::name, in_.next().text);
            in_.expect_symbol("=");
            made->targets.push_back(std::move(target));
            made->values.push_back(expressions_.expression());
            if (!in_.accept_symbol(",")) break;
        }
        close_tag();
        made->body = body_until("endwith");
        return made;
    }

    Made generation() {
        auto made = make(Kind::scope);
        close_tag();
        made->body = body_until("endgeneration");
        return made;
    }

    TokenStream in_;
    ExpressionParser expressions_;
    uint32_t loops_ = 0;
};

}  // namespace

Result<Body> parse(std::string_view source, uint32_t depth_max) {
    auto tokens = lex(source);
    if (!tokens) return std::move(tokens).error();
    return Parser(*std::move(tokens), depth_max).run();
}

}  // namespace cadans::text::jinja
