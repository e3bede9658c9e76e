// Arguments of a call whose names and texts are bare, as JSON, piece by piece.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cadans::serve {

/// {city:<escape>Ghent<escape>,days:[1,2]} becomes {"city":"Ghent","days":[1,2]}. Reads what a grammar has written (of
/// grammar::SchemaOptions::quote); of anything else it makes something, without going wrong. Where the pieces are cut
/// changes nothing. Thread rule: one thread.
class BareArguments {
  public:
    /// quote  what stands around texts
    explicit BareArguments(std::string_view quote) : quote_(quote) {}

    /// Takes as much of the front of `text` as says what it is, and gives its JSON.
    std::string push(std::string& text);

    bool over() const noexcept { return over_; }  ///< the object is closed: what is left is not its own

  private:
    enum class State : uint8_t { value, name, text };

    void punctuation(char c, std::string& out);

    std::string quote_;
    State state_ = State::value;
    std::vector<char> open_;  ///< brackets
    std::string name_;
    bool over_ = false;
};

}  // namespace cadans::serve
