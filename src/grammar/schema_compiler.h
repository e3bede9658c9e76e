// Writes the rules of a schema: one for each set of places whose keywords must hold together.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "grammar/json_text.h"
#include "grammar/schema.h"
#include "grammar/schema_document.h"
#include "grammar/schema_facts.h"
#include "grammar/text_automaton.h"

namespace cadans::grammar {

/// A value's schema is a *conjunction*: places that all hold. None: any value. References and allOf add places to it,
/// each branch of anyOf and oneOf makes an *alternative* of it, and two alternatives are one value's two ways to be
/// written.
///
/// Thread rule: one thread, one use; borrows document and rules
class SchemaCompiler {
  public:
    using Place = SchemaDocument::Place;
    using Places = std::vector<Place>;  // ascending, each once

    SchemaCompiler(SchemaDocument& document, SchemaOptions options, Rules& rules)
        : document_(document),
          options_(std::move(options)),
          limits_(rules.limits()),
          rules_(rules),
          json_(rules, options_.quote) {}

    /// Writes all its rules; the schema's own is the one to call.
    Result<RuleId> write();

  private:
    /// Errors of each: what the schema says wrong or cannot be kept, with its place.

    // schema_compiler.cpp: conjunctions
    struct Choice {
        Place place;
        const char* keyword;      // anyOf or oneOf
        std::vector<Place> path;  // from the conjunction to it
    };
    struct Expanded {
        Places places;  // all that hold, references and allOf followed
        std::vector<Choice> choices;
    };
    RuleId value(Places places);  // its rule; the body is written when its turn comes
    Result<Nfa> value_body(const Places& places);
    Status add_alternative(Nfa& nfa, Nfa::State end, const Facts& facts);
    void add_literal(Nfa& nfa, Nfa::State from, const Json& value, Nfa::State to);
    Status expand(Place place, Expanded& out, std::vector<Place>& path);
    Result<std::vector<Place>> branches(const Choice& choice);
    Result<std::vector<Places>> alternatives(const Places& places);
    Status choose(const Expanded& expanded, std::vector<Places>& out);
    Status show_disjoint(const Choice& choice, const std::vector<Place>& branches, const Places& context);
    Status compare_branches(const Choice& choice, const std::vector<Place>& branches, const Places& context);
    Status spend(uint64_t work, Place place);
    Status fits(Place place) const;  // after each rule that is written

    // schema_scalars.cpp: strings and numbers
    Result<const TextAutomaton*> searched(const std::string& pattern, Place place, std::string_view keyword);
    Result<std::optional<TextAutomaton>> text(const Facts& facts);  // none: any string
    Result<TextAutomaton> spellable(const TextAutomaton& texts, Place place) const;
    Nfa::State add_spelled(Nfa& nfa, Nfa::State from, const TextAutomaton& texts) const;
    Status add_string(Nfa& nfa, Nfa::State end, const Facts& facts);
    Status add_numbers(Nfa& nfa, Nfa::State end, const Facts& facts);

    // schema_containers.cpp: objects and arrays
    struct Members {
        struct Declared {
            RuleId member;  // "name": value
            bool required;
        };
        std::vector<Declared> declared;
        std::vector<RuleId> undeclared;  // one for each class of names
        bool never = false;
    };
    std::vector<std::string> declared_names(const Facts& facts) const;
    bool writes_undeclared(const Facts& facts) const;
    Result<Places> property(const Facts& facts, const std::string& name);
    Result<Places> name_schemas(const Facts& facts);  // propertyNames
    Result<std::optional<TextAutomaton>> names(const Facts& facts);
    Result<bool> never(const Places& places);
    Result<Members> members(const Facts& facts);
    Status add_undeclared(const Facts& facts, const std::vector<std::string>& named, Members& members);
    Result<Places> undeclared(const Facts& facts, const std::vector<std::string>& matched);
    RuleId member(Nfa key, Nfa::State behind, const std::string& name, RuleId value);
    Status add_members(Nfa& nfa, Nfa::State end, const Facts& facts, const Members& members);
    Status add_object(Nfa& nfa, Nfa::State end, const Facts& facts);
    size_t listed_items(const Facts& facts) const;
    Result<Places> item(const Facts& facts, size_t index);
    Status add_array(Nfa& nfa, Nfa::State end, const Facts& facts);

    // schema_reasoning.cpp: whether a value is valid, whether two schemas exclude each other
    Result<bool> holds(const Json& value, const Places& places, uint32_t depth = 0);
    Result<bool> holds_at(const Json& value, Place place, uint32_t depth);
    Result<bool> holds_plainly(const Json& value, const Facts& facts, uint32_t depth);
    Result<bool> holds_members(const Json& value, const Facts& facts, uint32_t depth);
    Result<bool> disjoint(const Places& a, const Places& b, const Places& context, uint32_t depth = 0);
    Result<bool> disjoint_plainly(const Facts& a, const Facts& b, uint32_t depth);
    Result<bool> disjoint_objects(const Facts& a, const Facts& b, uint32_t depth);
    Result<bool> disjoint_arrays(const Facts& a, const Facts& b, uint32_t depth);

    SchemaDocument& document_;
    SchemaOptions options_;
    Limits limits_;
    Rules& rules_;
    JsonRules json_;
    std::map<Places, RuleId> values_;
    std::vector<std::pair<RuleId, Places>> unwritten_;
    std::map<std::string, TextAutomaton> patterns_;
    std::map<std::string, RuleId> strings_;                   // by what they search and how long they are
    std::set<std::tuple<Place, std::string, Places>> shown_;  // oneOf whose branches are compared, or being so
    uint32_t nesting_ = 0;
};

}  // namespace cadans::grammar
