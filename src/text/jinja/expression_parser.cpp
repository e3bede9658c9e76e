#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <array>

namespace cadans::text::jinja {
namespace {

using Kind = Expression::Kind;

// A chain such as a + b + c leans to the left and is as deep as it is long.
constexpr uint32_t kHeightMax = 300;

}  // namespace

ExpressionPtr ExpressionParser::make(Kind kind, std::string name) {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->line = in_.now().line;
    made->name = std::move(name);
    return made;
}

void ExpressionParser::adopt(Expression& parent, ExpressionPtr part) {
    if (part != nullptr) {
        parent.height = std::max(parent.height, part->height + 1);
        if (parent.height > kHeightMax)
            in_.fail(fmt::format("an expression of more than {} levels", kHeightMax), ErrorCode::too_large);
    }
    parent.parts.push_back(std::move(part));
}

ExpressionPtr ExpressionParser::join(Kind kind, std::string name, ExpressionPtr left, ExpressionPtr right) {
    auto made = make(kind, std::move(name));
    made->line = left->line;
    adopt(*made, std::move(left));
    adopt(*made, std::move(right));
    return made;
}

ExpressionPtr ExpressionParser::expression(bool with_condition) {
    const TokenStream::Level level(in_);
    auto value = logical_or();
    while (with_condition && in_.accept_name("if")) {
        auto made = make(Kind::condition);
        adopt(*made, logical_or());
        adopt(*made, std::move(value));
        adopt(*made, in_.accept_name("else") ? expression() : nullptr);
        value = std::move(made);
    }
    return value;
}

ExpressionPtr ExpressionParser::tuple(bool with_condition) {
    auto first = expression(with_condition);
    if (!in_.now().is_symbol(",")) return first;
    auto made = make(Kind::tuple);
    adopt(*made, std::move(first));
    while (in_.accept_symbol(",")) {
        const auto kind = in_.now().kind;
        if (kind == Token::Kind::block_end || kind == Token::Kind::print_end || in_.now().is_symbol(")")) break;
        adopt(*made, expression(with_condition));
    }
    return made;
}

std::vector<ExpressionPtr> ExpressionParser::targets(bool attributes) {
    std::vector<ExpressionPtr> made;
    do {
        const bool bracket = in_.accept_symbol("(");
        if (bracket && made.empty()) {
            made = targets(attributes);
            in_.expect_symbol(")");
            return made;
        }
        auto name = make(Kind::name, in_.expect_name("a name"));
        if (attributes && in_.accept_symbol(".")) {
            auto attribute = make(Kind::attribute, in_.expect_name("an attribute"));
            adopt(*attribute, std::move(name));
            name = std::move(attribute);
        }
        made.push_back(std::move(name));
    } while (in_.accept_symbol(","));
    return made;
}

ExpressionPtr ExpressionParser::logical_or() {
    auto left = logical_and();
    while (in_.accept_name("or")) left = join(Kind::logical_or, {}, std::move(left), logical_and());
    return left;
}

ExpressionPtr ExpressionParser::logical_and() {
    auto left = logical_not();
    while (in_.accept_name("and")) left = join(Kind::logical_and, {}, std::move(left), logical_not());
    return left;
}

ExpressionPtr ExpressionParser::logical_not() {
    if (!in_.now().is_name("not")) return compare();
    const TokenStream::Level level(in_);
    auto made = make(Kind::logical_not);
    in_.next();
    adopt(*made, logical_not());
    return made;
}

ExpressionPtr ExpressionParser::compare() {
    constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<", ">", "<=", ">="};
    auto first = sum();
    ExpressionPtr made;
    for (;;) {
        std::string op;
        const Token& token = in_.now();
        if (token.kind == Token::Kind::symbol &&
            std::find(kOperators.begin(), kOperators.end(), token.text) != kOperators.end()) {
            op = in_.next().text;
        } else if (in_.accept_name("in")) {
            op = "in";
        } else if (token.is_name("not") && in_.ahead().is_name("in")) {
            in_.next();
            in_.next();
            op = "not in";
        } else {
            break;
        }
        if (made == nullptr) {
            made = make(Kind::compare);
            adopt(*made, std::move(first));
        }
        made->operators.push_back(std::move(op));
        adopt(*made, sum());
    }
    return made == nullptr ? std::move(first) : std::move(made);
}

ExpressionPtr ExpressionParser::sum() {
    auto left = concat();
    while (in_.now().is_symbol("+") || in_.now().is_symbol("-")) {
        std::string op = in_.next().text;
        left = join(Kind::binary, std::move(op), std::move(left), concat());
    }
    return left;
}

ExpressionPtr ExpressionParser::concat() {
    auto first = product();
    if (!in_.now().is_symbol("~")) return first;
    auto made = make(Kind::concat);
    adopt(*made, std::move(first));
    while (in_.accept_symbol("~")) adopt(*made, product());
    return made;
}

ExpressionPtr ExpressionParser::product() {
    auto left = power();
    while (in_.now().is_symbol("*") || in_.now().is_symbol("/") || in_.now().is_symbol("//") ||
           in_.now().is_symbol("%")) {
        std::string op = in_.next().text;
        left = join(Kind::binary, std::move(op), std::move(left), power());
    }
    return left;
}

ExpressionPtr ExpressionParser::power() {
    auto left = unary();
    while (in_.accept_symbol("**")) left = join(Kind::binary, "**", std::move(left), unary());
    return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
    const TokenStream::Level level(in_);
    ExpressionPtr value;
    if (in_.now().is_symbol("-") || in_.now().is_symbol("+")) {
        const bool minus = in_.next().text == "-";
        value = make(minus ? Kind::negate : Kind::positive);
        adopt(*value, unary(false));
    } else {
        value = primary();
    }
    value = postfix(std::move(value));
    if (with_filters) value = filters(std::move(value));
    return value;
}

ExpressionPtr ExpressionParser::primary() {
    const Token& token = in_.now();
    auto made = make(Kind::constant);
    switch (token.kind) {
        case Token::Kind::string:
            return text_literal();
        case Token::Kind::integer:
            made->constant = in_.next().integer;
            return made;
        case Token::Kind::real:
            made->constant = in_.next().real;
            return made;
        case Token::Kind::name: {
            const std::string name = in_.next().text;
            if (name == "true" || name == "True")
                made->constant = true;
            else if (name == "false" || name == "False")
                made->constant = false;
            else if (name == "none" || name == "None")
                made->constant = None{};
            else
                made = make(Kind::name, name);
            return made;
        }
        default:
            break;
    }
    if (token.is_symbol("[")) return list_display();
    if (token.is_symbol("{")) return dict_display();
    if (in_.accept_symbol("(")) {
        if (in_.accept_symbol(")")) return make(Kind::tuple);
        auto inner = tuple();
        in_.expect_symbol(")");
        return inner;
    }
    in_.fail(token.kind == Token::Kind::end ? "the template ends inside a statement"
                                            : fmt::format("unexpected \"{}\"", token.text));
    return made;
}

ExpressionPtr ExpressionParser::text_literal() {
    auto made = make(Kind::constant);
    std::string text;
    while (in_.now().kind == Token::Kind::string) text += in_.next().text;
    made->constant = make_text(std::move(text));
    return made;
}

ExpressionPtr ExpressionParser::list_display() {
    auto made = make(Kind::list);
    in_.expect_symbol("[");
    while (!in_.now().is_symbol("]") && !in_.failed()) {
        adopt(*made, expression());
        if (!in_.accept_symbol(",")) break;
    }
    in_.expect_symbol("]");
    return made;
}

ExpressionPtr ExpressionParser::dict_display() {
    auto made = make(Kind::dict);
    in_.expect_symbol("{");
    while (!in_.now().is_symbol("}") && !in_.failed()) {
        adopt(*made, expression());
        in_.expect_symbol(":");
        adopt(*made, expression());
        if (!in_.accept_symbol(",")) break;
    }
    in_.expect_symbol("}");
    return made;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
    for (;;) {
        if (in_.accept_symbol(".")) {
            auto made = make(Kind::attribute);
            if (in_.now().kind == Token::Kind::integer) {  // a.0 is a[0]
                made->kind = Kind::item;
                auto place = make(Kind::constant);
                place->constant = in_.next().integer;
                adopt(*made, std::move(value));
                adopt(*made, std::move(place));
            } else {
                made->name = in_.expect_name("an attribute");
                adopt(*made, std::move(value));
            }
            value = std::move(made);
        } else if (in_.now().is_symbol("[")) {
            value = subscript(std::move(value));
        } else if (in_.now().is_symbol("(")) {
            auto made = make(Kind::call);
            adopt(*made, std::move(value));
            arguments(*made);
            value = std::move(made);
        } else {
            return value;
        }
    }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
    in_.expect_symbol("[");
    std::array<ExpressionPtr, 3> bounds;
    size_t colons = 0;
    while (!in_.now().is_symbol("]") && !in_.failed()) {
        if (in_.accept_symbol(":")) {
            if (++colons > 2) in_.fail("a slice has at most two colons");
        } else if (bounds[colons] == nullptr) {
            bounds[colons] = colons == 0 ? tuple() : expression();
        } else {
            in_.fail("expected \"]\"");
        }
    }
    in_.expect_symbol("]");
    auto made = make(colons > 0 ? Kind::slice : Kind::item);
    adopt(*made, std::move(value));
    if (colons == 0 && bounds[0] == nullptr) in_.fail("an empty subscript");
    adopt(*made, std::move(bounds[0]));
    for (size_t i = 1; colons > 0 && i < 3; i++) adopt(*made, std::move(bounds[i]));
    return made;
}

void ExpressionParser::arguments(Expression& call) {
    in_.expect_symbol("(");
    while (!in_.now().is_symbol(")") && !in_.failed()) {
        const bool named = in_.now().kind == Token::Kind::name && in_.ahead().is_symbol("=");
        if (in_.accept_symbol("*")) {
            call.spread = expression();
        } else if (in_.accept_symbol("**")) {
            call.spread_named = expression();
        } else if (named) {
            std::string name = in_.next().text;
            in_.next();
            call.named.emplace_back(std::move(name), expression());
        } else {
            call.positional.push_back(expression());
        }
        if (!in_.accept_symbol(",")) break;
    }
    in_.expect_symbol(")");
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value) {
    for (;;) {
        if (in_.now().is_symbol("|")) {
            in_.next();
            value = one_filter(std::move(value));
        } else if (in_.now().is_name("is")) {
            value = test(std::move(value));
        } else if (in_.now().is_symbol("(") || in_.now().is_symbol(".") || in_.now().is_symbol("[")) {
            value = postfix(std::move(value));
        } else {
            return value;
        }
    }
}

ExpressionPtr ExpressionParser::one_filter(ExpressionPtr value) {
    auto made = make(Kind::filter, in_.expect_name("the name of a filter"));
    while (in_.accept_symbol(".")) made->name += "." + in_.expect_name("the name of a filter");
    adopt(*made, std::move(value));
    if (in_.now().is_symbol("(")) arguments(*made);
    return made;
}

bool ExpressionParser::begins_test_argument() const {
    const Token& token = in_.now();
    switch (token.kind) {
        case Token::Kind::string:
        case Token::Kind::integer:
        case Token::Kind::real:
            return true;
        case Token::Kind::symbol:
            return token.text == "[" || token.text == "{";
        case Token::Kind::name: {
            constexpr std::array<std::string_view, 6> kWords = {"else", "or", "and", "if", "is", "not"};
            return std::find(kWords.begin(), kWords.end(), token.text) == kWords.end();
        }
        default:
            return false;
    }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
    in_.next();  // is
    const bool negated = in_.accept_name("not");
    auto made = make(Kind::test, in_.expect_name("the name of a test"));
    adopt(*made, std::move(value));
    if (in_.now().is_symbol("("))
        arguments(*made);
    else if (begins_test_argument())
        made->positional.push_back(postfix(primary()));
    if (!negated) return made;
    auto inverse = make(Kind::logical_not);
    adopt(*inverse, std::move(made));
    return inverse;
}

}  // namespace cadans::text::jinja
