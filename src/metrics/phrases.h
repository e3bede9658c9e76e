// The sentences about a finished request, in each language: templates with {named} gaps, and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "metrics/causes.h"

namespace cadans::metrics {

enum class Language : uint8_t { en, nl, de };
inline constexpr uint32_t kLanguages = 3;

constexpr const char* name(Language language) noexcept {
    constexpr const char* kNames[kLanguages] = {"en", "nl", "de"};
    return kNames[static_cast<uint8_t>(language)];
}

/// "nl", "nl-BE", "NL_be": the language of the first part. Nothing for one that is not spoken here.
std::optional<Language> language_of(std::string_view tag) noexcept;

/// The first language of an Accept-Language field (quality is by order, as browsers send it) that is spoken here.
std::optional<Language> accepted_language(std::string_view field) noexcept;

/// Gaps: {total} {time} {n} {tokens} {rate} {share} {parts} and those that a template names itself. The same template
/// has the same gaps in every language (a test compares them).
struct Phrases {
    std::string_view first_word;                 ///< {total} {parts}
    std::string_view whole_answer;               ///< {total} {parts}
    std::array<std::string_view, kCauses> part;  ///< {time}; what a cause did to the wait
    std::string_view part_reading;               ///< {time} {tokens} {rate}; instead of own_prefill's
    std::string_view part_reading_plain;         ///< {time} {tokens}; where there is no rate
    std::string_view part_writing;               ///< {time} {tokens}; instead of own_decode's
    std::string_view part_rest;                  ///< {time}

    std::string_view remembered;                                ///< {n} {tokens}
    std::string_view remembered_again;                          ///< {n} {tokens} {time}
    std::string_view cached;                                    ///< {n} {all} {tokens} {were}
    std::string_view cached_saved;                              ///< {n} {all} {tokens} {were} {time}
    std::string_view miss_differs, miss_extends, miss_evicted;  ///< {position}
    std::string_view miss_off;

    std::string_view rates;          ///< {read} {write}
    std::string_view rates_machine;  ///< {read} {write} {weights} {rows}
    std::string_view guessed;        ///< {n} {tokens} {right} {were} {time}
    std::string_view guessed_model;  ///< {n} {tokens} {right} {were} {time} {drafting}; a draft model guessed some
    std::string_view model_slow, unlikely;        ///< why most steps took no (more) guesses
    std::string_view gaps;                        ///< {p50} {max}
    std::string_view gaps_stalled;                ///< {p50} {max} {n} {felt}
    std::string_view longest;                     ///< {share} {cause}; more than half
    std::string_view longest_part;                ///< {share} {cause}; less
    std::array<std::string_view, kCauses> cause;  ///< what took most of the time

    std::string_view cancelled_before, cancelled_after;  ///< {total}; before the first word, after it
    std::string_view failed, refused;                    ///< {total}

    std::string_view token, tokens;          ///< one, several
    std::string_view new_token, new_tokens;  ///< one, several, just computed
    std::string_view was, were;              ///< one, several
    std::string_view felt_one, felt;         ///< one, several
    char thousands, decimal;
};

const Phrases& phrases(Language language) noexcept;

/// "5,812" as that language writes it.
std::string count_text(uint64_t n, Language language);

/// "845" or "14.2": three figures.
std::string rate_text(double rate, Language language);

/// One of tokens or new tokens with its number.
std::string tokens_text(uint64_t n, bool are_new, Language language);

/// "7.3 s", "61 ms", "0.4 ms".
std::string time_text(Nanos span, Language language);

}  // namespace cadans::metrics
