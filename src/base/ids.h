// Names for things: an index of one kind cannot be used as an index of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cadans {

enum class TokenId : uint32_t {};    ///< a row of a model's vocabulary
enum class SeqId : uint64_t {};      ///< one stream of tokens; never reused in a process
enum class RequestId : uint64_t {};  ///< what a client sent; one or more sequences (its choices)
enum class StepId : uint64_t {};     ///< one forward pass
enum class PageId : uint32_t {};     ///< a page within its page group
enum class ModelId : uint16_t {};    ///< a resident model, in order of loading
enum class GroupId : uint16_t {};    ///< a page group within its model

/// The number behind an id, for indexing and printing.
template <class Id>
constexpr auto index(Id id) noexcept {
    return static_cast<std::underlying_type_t<Id>>(id);
}

inline constexpr uint32_t kPageTokens = 32;  ///< tokens in one page of keys and values

}  // namespace cadans
