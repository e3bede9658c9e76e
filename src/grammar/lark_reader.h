// Reads a Lark grammar into rules and terminals, none of them written yet.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/pattern.h"

namespace cadans::grammar {

/// Thread rule: one thread, one use; borrows source and rules.
class LarkReader {
  public:
    LarkReader(std::string_view source, Rules& rules)
        : whole_(source), rest_(source), limits_(rules.limits()), rules_(rules) {}

    /// Reads and writes all; the rule that is the answer. Errors as lark_grammar().
    Result<RuleId> read();

    /// The same with the line of the rule that it names.
    Error placed(Error error) const;

  private:
    struct Known {
        RuleId rule = 0;
        bool defined = false;
        std::string where;  ///< where it is defined, or else first used
    };
    struct Definition {
        RuleId rule;
        Pattern pattern;
        std::string where;
    };

    /// Stands for what is ignored in front of a terminal, until it is known whether anything is.
    static constexpr RuleId kIgnored = UINT32_MAX;

    std::string here() const;
    Error refuse(std::string why) const { return bad_input(std::move(why), here()); }
    Error cannot(std::string why) const { return unsupported(std::move(why), here()); }
    bool skip(std::string_view text);
    void space(bool lines);
    std::string name();
    Known& known(const std::string& name);
    bool ends_line();

    // Statements.
    Status statement();
    Status directive();
    Status import();
    Status import_one(const std::string& title, const std::string& alias);
    Status definition();
    Status attributes();
    Status define(const std::string& title, Pattern pattern, std::string where);

    // What stands right of a colon; `terminal`: parts are characters, else terminals.
    Result<Pattern> choice(bool terminal, uint32_t depth);
    Result<Pattern> sequence(bool terminal, uint32_t depth);
    Result<Pattern> element(bool terminal, uint32_t depth);
    Result<Pattern> repeated(Pattern part);
    Result<Pattern> reference(bool terminal);
    Result<Pattern> text(bool terminal);
    Result<std::u32string> quoted();
    Result<uint32_t> escape();
    Result<Pattern> pattern();
    Result<Pattern> schema();
    Result<std::string_view> braces();
    Status number(uint32_t& out);

    // Writing.
    Status write();
    Status keeps_apart() const;
    void settle(Pattern& pattern, bool ignores, RuleId ignored) const;
    Status write_body(RuleId rule, const Pattern& pattern, const std::string& where);

    std::string_view whole_, rest_;
    const Limits& limits_;
    Rules& rules_;
    struct Ignored {
        Pattern pattern;
        std::string where;
    };

    std::map<std::string, Known> names_;
    std::vector<Definition> definitions_;
    std::vector<Ignored> ignored_;
    size_t written_ = 0;
};

}  // namespace cadans::grammar
