// A schema's places: who refers to whom, what each keyword is, and what is refused at sight.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/limits.h"

namespace cadans::grammar {

using Json = nlohmann::ordered_json;

enum class Draft : uint8_t { draft7, draft2020 };

/// The schemas inside a document, numbered as they are met. Borrows the document, which must outlive it.
///
/// Thread rule: one thread
class SchemaDocument {
  public:
    using Place = uint32_t;  ///< a schema within the document

    static Result<SchemaDocument> open(const Json& root, const Limits& limits);

    Draft draft() const noexcept { return draft_; }
    Place root() const noexcept { return 0; }
    const Json& at(Place place) const { return *schemas_[place].json; }
    const std::string& name(Place place) const { return schemas_[place].name; }  ///< "#/properties/a"

    /// The schema below a place, named by the path to it; checked when it is met first.
    /// Errors  bad_input for what is no schema or has a malformed keyword, unsupported for a keyword that is not kept
    Result<Place> below(Place parent, const std::string& path, const Json& schema);
    /// The schema that a $ref names.
    Result<Place> target(Place from, const std::string& reference);

    Error refused(Place place, std::string_view keyword, std::string why) const;  // bad_input
    Error unsupported(Place place, std::string_view keyword, std::string why) const;

  private:
    explicit SchemaDocument(const Json& root, const Limits& limits) : root_(root), limits_(limits) {}
    Result<Place> place(const Json& schema, std::string name);
    Status check(Place place) const;

    struct Schema {
        const Json* json;
        std::string name;
    };
    const Json& root_;
    Limits limits_;
    Draft draft_ = Draft::draft2020;
    std::string id_;
    std::vector<Schema> schemas_;
    std::map<const Json*, Place> known_;
};

}  // namespace cadans::grammar
