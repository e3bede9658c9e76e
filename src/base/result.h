// The value or the reason why there is none: expected trouble at a boundary, never our own bug.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace cadans {

/// What kind of trouble it is; the doors translate it into an HTTP status or an exit code.
enum class ErrorCode {
    bad_input,    ///< malformed or out of range: the sender can mend it (400, exit 1)
    unsupported,  ///< well-formed, but not something this program does (400, exit 1)
    not_found,    ///< no such file, model, request (404)
    too_long,     ///< would not fit the context or the pages, whatever the load (400)
    too_large,    ///< bytes over a limit (413)
    busy,         ///< fits, but not now (429)
    unavailable,  ///< loading, draining or failed (503)
    denied,       ///< no permission, no key (401, 403)
    io,           ///< the operating system said no: disk full, unreadable, network
    no_memory,    ///< more memory than there is
    cancelled,    ///< the asker left
    internal,     ///< a failure that is ours, contained (500)
};

/// What went wrong, in words for a person: what was expected, what was got, where, what to do.
struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message;
    std::string where = {};  ///< field path, tensor name or file offset, where there is one
};

struct Ok {};  ///< the value of a Result that carries none

/// A T or an Error. Spelled like std::expected, to be replaced by it one day. Thread rule: a value.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & {
        check(has_value(), "value() of a Result that holds an error");
        return std::get<0>(state_);
    }
    const T& value() const& {
        check(has_value(), "value() of a Result that holds an error");
        return std::get<0>(state_);
    }
    T&& value() && {
        check(has_value(), "value() of a Result that holds an error");
        return std::get<0>(std::move(state_));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const& {
        check(!has_value(), "error() of a Result that holds a value");
        return std::get<1>(state_);
    }
    Error&& error() && {
        check(!has_value(), "error() of a Result that holds a value");
        return std::get<1>(std::move(state_));
    }

  private:
    std::variant<T, Error> state_;
};

using Status = Result<Ok>;

inline Error bad_input(std::string message, std::string where = {}) {
    return {ErrorCode::bad_input, std::move(message), std::move(where)};
}
inline Error unsupported(std::string message, std::string where = {}) {
    return {ErrorCode::unsupported, std::move(message), std::move(where)};
}

}  // namespace cadans
