// A stretch of prompt text that knows who wrote it: the template, or somebody outside.
#pragma once

#include <string>

namespace cadans::text {

/// Text and its author. Only `trusted` text may become control tokens; everything a client sent stays plain text.
struct Segment {
    std::string text;
    bool trusted = false;  ///< true: written by the model's own template
};

}  // namespace cadans::text
