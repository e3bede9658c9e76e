// Runs a parsed template under limits.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace cadans::text::jinja {

/// Names and what they stand for, in one block of the template; unknown names are looked up in the block around it.
struct Scope {
    std::vector<std::pair<std::string_view, Value>> names;
    Scope* around = nullptr;
};

/// One run of one template. The first failure stays, and from then on every verb does nothing and returns an undefined
/// value: callers need to look only where they loop. Thread rule: one thread.
class Machine {
  public:
    Machine(const TemplateLimits& limits, int64_t now_unix_seconds);

    void define(std::string_view name, Value value);  ///< `name` must outlive the run
    Result<MarkedText> run(const Body& body);

    // What filters, tests, methods and functions are built from.

    bool failed() const noexcept { return error_.has_value(); }
    Value fail(std::string message, ErrorCode code = ErrorCode::bad_input);  ///< returns an undefined value

    /// Takes work off the budget; false when there is none left or something failed before.
    bool charge(uint64_t steps);
    bool charge_bytes(size_t bytes);  ///< and checks that one value may be so large
    /// The same for a text of `bytes` that `more` are added to: only those are work.
    bool charge_growth(size_t bytes, size_t more);

    Value text(MarkedText text);  ///< charged by size
    Value list(std::vector<Value> items, bool tuple = false);
    Value dict(Dict dict);

    Value call(const Value& callee, const Arguments& arguments);
    Value filter(std::string_view name, const Value& value, const Arguments& arguments);
    bool test(std::string_view name, const Value& value, const Arguments& arguments);
    Value attribute(const Value& of, std::string_view name);
    Value item(const Value& of, const Value& key);
    Value binary(std::string_view op, const Value& a, const Value& b);
    bool compare(std::string_view op, const Value& a, const Value& b);
    bool contains(const Value& in, const Value& what);
    Value slice(const Value& of, const Value& begin, const Value& end, const Value& step);

    /// What a for statement would see: items, keys or characters; fails for what cannot be walked.
    std::vector<Value> iterate(const Value& value);

    int64_t now_unix_seconds() const noexcept { return now_; }
    size_t value_bytes_max() const noexcept { return limits_.output_bytes; }

  private:
    enum class Flow { on, loop_break, loop_continue };

    class Level {
      public:
        explicit Level(Machine& machine) : machine_(machine) { machine_.enter(); }
        ~Level() { machine_.depth_--; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Machine& machine_;
    };
    void enter();

    Flow execute(const Body& body);
    Flow execute(const Statement& statement);
    Flow execute_branch(const Statement& statement);
    Flow execute_loop(const Statement& statement);
    Flow execute_inside(const Body& body);  // in a scope of its own
    void execute_set(const Statement& statement);
    void execute_filter(const Statement& statement);
    void execute_call(const Statement& statement);
    void assign(const std::vector<ExpressionPtr>& targets, Value value);
    void assign(const Expression& target, Value value);
    void print(MarkedText text);
    MarkedText captured(const Body& body);
    std::vector<Value> passing(const Statement& statement, std::vector<Value> items);

    Value evaluate(const Expression& expression);
    Value evaluate_name(const Expression& expression);
    Value evaluate_dict(const Expression& expression);
    Value evaluate_binary(const Expression& expression);
    Value evaluate_concat(const Expression& expression);
    Value evaluate_compare(const Expression& expression);
    Value evaluate_call(const Expression& expression);
    Value evaluate_slice(const Expression& expression);
    Value evaluate_negative(const Expression& expression);
    Arguments evaluate_arguments(const Expression& expression);
    std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& expressions);
    Value call_macro(const Callable& callee, const Arguments& arguments);
    Value loop_attribute(const Loop& loop, std::string_view name);

    void bind(Scope& scope, std::string_view name, Value value);
    Scope& open_scope(Scope* around);
    std::string where() const;
    void see(const Value& value);

    const TemplateLimits limits_;
    const int64_t now_;
    uint64_t steps_left_;
    uint32_t depth_ = 0;
    uint32_t line_ = 0;
    std::optional<Error> error_;
    std::deque<Scope> scopes_;  // all of the run: macros may look into any of them
    Scope* scope_ = nullptr;
    MarkedText* out_ = nullptr;
    std::vector<int32_t> loop_messages_;  // which message each running loop stands at, -1 where it is none
    int32_t seen_message_ = -1;           // the message that was looked into last
};

}  // namespace cadans::text::jinja
