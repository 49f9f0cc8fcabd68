// The one exception type of the core. A message has the place, the error with values, the violated
// rule, and a remedy.
//
//   usage     the caller passed something no collective can take         (nothing was sent)
//   refusal   this algorithm, transport or build cannot serve it         (nothing was sent)
//   mismatch  ranks disagree about the call                              (communicator is broken)
//   timeout   a peer did not come in time                                (communicator is broken)
//   lost      a peer died or left                                        (communicator is broken)
//   resource  the machine has no room: memory, /dev/shm, descriptors
//   internal  a bug in Paceline; the message holds the line that reproduces it
#pragma once

#include <stdexcept>
#include <string>

#include "base/str.hpp"

namespace paceline {

enum class Fault { usage, refusal, mismatch, timeout, lost, resource, internal };

class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

template <class... Pieces>
[[noreturn]] void fail(Fault fault, const Pieces&... pieces) {
  throw Error(fault, str(pieces...));
}

// Checks an internal invariant; never use it for bad input.
template <class... Pieces>
void require(bool holds, const Pieces&... pieces) {
  if (!holds)
    fail(Fault::internal, "internal: ", pieces...,
         ". This is a bug in Paceline; please report it.");
}

}  // namespace paceline
