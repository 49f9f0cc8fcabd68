// Repeats: recent blocking calls of a communicator by their arguments. A call that comes again,
// such as the dot product of a loop, is served without another look at its arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "base/random.hpp"
#include "runtime/call.hpp"

namespace paceline::preload {

// A row of mpi_calls.def and the arguments of one call.
struct CallKey {
  static constexpr std::size_t kMost = 8;
  std::uint64_t row = ~std::uint64_t{0};
  std::array<std::uint64_t, kMost> arguments{};

  bool operator==(const CallKey&) const = default;
};

template <class Argument>
constexpr bool is_array =
    std::is_pointer_v<Argument> && std::is_integral_v<std::remove_pointer_t<Argument>>;

template <class Argument>
std::uint64_t word_of(Argument argument) {
  if constexpr (std::is_pointer_v<Argument>) return reinterpret_cast<std::uintptr_t>(argument);
  else return static_cast<std::uint64_t>(argument);
}

// Nothing for a call with arrays of counts, whose content may change while their address does not.
template <class Row, class... Arguments>
std::optional<CallKey> key_of(Row row, Arguments... arguments) {
  if constexpr ((is_array<Arguments> || ...))
    return {};
  else
    return CallKey{static_cast<std::uint64_t>(row), {word_of(arguments)...}};
}

// Call of Paceline whose buffers are the program's, with what the summary says of it.
struct Repeat {
  Call call;
  std::size_t bytes = 0;
  const std::string* algorithm = nullptr;   // null: without a summary
};

class Repeats {
 public:
  // Returns the call of a key that has been added twice; null if there is none.
  const Repeat* find(const CallKey& key) const {
    if (!all_) return nullptr;
    const Seen& seen = (*all_)[place_of(key)];
    return seen.is_repeat && seen.key == key ? &seen.repeat : nullptr;
  }
  void add(const CallKey& key, const Call& call, std::size_t bytes, const std::string* algorithm) {
    if (!all_) all_ = std::make_unique<std::array<Seen, kPlaces>>();
    Seen& seen = (*all_)[place_of(key)];
    seen.is_repeat = seen.key == key;
    if (seen.is_repeat) seen.repeat = {call, bytes, algorithm};   // now: most never come again
    else seen.key = key;
  }

 private:
  static constexpr std::size_t kPlaces = 16;
  struct Seen {
    CallKey key;
    bool is_repeat = false;
    Repeat repeat;
  };
  static std::size_t place_of(const CallKey& key) {   // buffers and count are the first arguments
    const auto& of = key.arguments;
    return Random::mix(of[0] + 3 * of[1] + 5 * of[2] + key.row) % kPlaces;
  }

  std::unique_ptr<std::array<Seen, kPlaces>> all_;   // null until the first call
};

}  // namespace paceline::preload
