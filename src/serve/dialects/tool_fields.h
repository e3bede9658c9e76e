// Tools as clients offer, choose and answer for them, brought into the one form that templates read.
#pragma once

#include "serve/dialects/field_reader.h"
#include "serve/forms/tool_use.h"

namespace cadans::serve {

/// `tools`, `tool_choice` and `parallel_tool_calls`. Tools are {"type": "function", "function": {"name", "description",
/// "parameters"}}; the choice is "none", "auto", "required" or {"type": "function", "function": {"name"}}.
void read_tools(FieldReader& reader, ToolUse& out);

/// How a dialect spells tools whose parts lie side by side: {"type", "name", "description", and the parameters'
/// schema}.
struct FlatTools {
    const char* type;        ///< of what can be called
    const char* usual_type;  ///< of a tool that does not say
    const char* others;      ///< who can be called, for those who offer another type
    const char* schema;      ///< the field's name
};

/// `tools` of such a dialect; whoever is offered may be called. False: there are none, which is an error where `choice`
/// asks for one, or the reader has failed.
bool read_flat_tools(FieldReader& reader, const FlatTools& spelling, const Json* choice, ToolUse& out);

/// One more that may be called. `parameters`: null where it takes none; the fields say where each stands in the body.
void add_tool(FieldReader& reader, std::string name, const Json* parameters, const std::string& name_field,
              std::string parameters_field, ToolUse& out);

/// An error where `choice` asks for a call although there are no tools. Null: it says nothing.
void refuse_choice_of_nothing(FieldReader& reader, const Json* choice);

/// Tools of which `name` alone may be called; an error where there is none.
void choose_tool(FieldReader& reader, const std::string& name, ToolUse& out);

/// The `tool_calls` of an assistant's message: [{"id", "type", "function": {"name", "arguments"}}], the arguments as an
/// object. Errors name the place.
Result<Json> read_tool_calls(const Json& calls, const std::string& where);

/// What only shows over a whole conversation: results get the name of the function that they answer, and ids the form
/// that this style's templates insist on.
void finish_tool_messages(Json& messages, CallStyle style);

/// For a template that knows of no tools: those offered are told in a system message, calls become text as the model
/// is asked to write them, results a user's words. `parts`: contents are lists of text parts.
void write_tools_as_text(Json& messages, const ToolUse& use, bool parts);

}  // namespace cadans::serve
