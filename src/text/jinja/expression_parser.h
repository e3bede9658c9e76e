// Reads the expressions of a template.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace cadans::text::jinja {

/// Each verb reads from the stream's head and never returns null; after a mistake what it returns means nothing.
class ExpressionParser {
  public:
    explicit ExpressionParser(TokenStream& stream) : in_(stream) {}

    /// One expression. Without `with_condition` an `if` behind it is left alone, as a for statement needs.
    ExpressionPtr expression(bool with_condition = true);

    /// One, or several with commas, which make a tuple.
    ExpressionPtr tuple(bool with_condition = true);

    /// What may stand left of `=` or `in`: names with commas, or ns.name where `attributes`.
    std::vector<ExpressionPtr> targets(bool attributes);

    /// "(a, b=c, *d, **e)" into the argument fields of `call`.
    void arguments(Expression& call);

    /// name(arguments)|name … applied to `value`.
    ExpressionPtr filters(ExpressionPtr value);

    ExpressionPtr make(Expression::Kind kind, std::string name = {});

  private:
    ExpressionPtr logical_or();
    ExpressionPtr logical_and();
    ExpressionPtr logical_not();
    ExpressionPtr compare();
    ExpressionPtr sum();
    ExpressionPtr concat();
    ExpressionPtr product();
    ExpressionPtr power();
    ExpressionPtr unary(bool with_filters = true);
    ExpressionPtr primary();
    ExpressionPtr postfix(ExpressionPtr value);
    ExpressionPtr subscript(ExpressionPtr value);
    ExpressionPtr one_filter(ExpressionPtr value);
    ExpressionPtr test(ExpressionPtr value);
    ExpressionPtr list_display();
    ExpressionPtr dict_display();
    ExpressionPtr text_literal();
    bool begins_test_argument() const;

    ExpressionPtr join(Expression::Kind kind, std::string name, ExpressionPtr left, ExpressionPtr right);
    void adopt(Expression& parent, ExpressionPtr part);

    TokenStream& in_;
};

}  // namespace cadans::text::jinja
