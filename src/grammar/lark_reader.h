// Reads the text of a Lark grammar.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/lark_writer.h"
#include "grammar/pattern.h"

namespace cadans::grammar {

/// Thread rule: one thread, one use; borrows source and rules.
class LarkReader {
  public:
    LarkReader(std::string_view source, Rules& rules)
        : whole_(source), rest_(source), limits_(rules.limits()), rules_(rules) {}

    /// Reads all and has it written; the rule that is the answer. Errors as lark_grammar().
    Result<RuleId> read();

    /// The same with the line of the rule that it names.
    Error placed(Error error) const;

  private:
    struct Known {
        RuleId rule = 0;
        bool defined = false;
        std::string where;  ///< where it is defined, or else first used
    };

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

    std::string_view whole_, rest_;
    const Limits& limits_;
    Rules& rules_;

    std::map<std::string, Known> names_;
    std::vector<LarkDefinition> definitions_;
    std::vector<LarkIgnored> ignored_;
};

}  // namespace cadans::grammar
