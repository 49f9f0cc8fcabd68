// Request: a collective under way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "device/driver.hpp"

namespace paceline {

class Session;
struct ActiveOp;  // the operation and what it keeps alive

class Request {
 public:
  Request() = default;
  Request(std::shared_ptr<ActiveOp> active, std::uint32_t start)
      : active_(std::move(active)), start_(start) {}

  bool valid() const { return active_ != nullptr; }
  bool has_ended() const;   // true if it is complete, or has failed; drives no call
  // Drives all calls under way. Returns true if the collective is complete. Throws its error if it
  // has failed.
  bool test();
  // Returns when the collective is complete, or throws: a timeout error after timeout_ms (0: the
  // call's own time-out), a mismatch, a lost peer.
  void wait(int timeout_ms = 0);
  // Waits at most so long. Returns true if the collective is complete. Only the call's own time-out
  // breaks the communicator.
  bool wait_for(int milliseconds);
  // Like wait_for(), but leaves the processors to a program that computes: with a progress thread
  // the caller sleeps, until this or another collective is complete.
  bool sleep_for(int milliseconds);
  // For a call on device memory: work enqueued on the stream later comes after the call, even if
  // the call fails; the host does not wait. Throws a usage error for other calls.
  void join(device::Stream stream);
  // Calls `callback` once with true if the collective has succeeded: at once if it is complete,
  // else later, in the thread that makes progress. The callback may start calls but must not wait,
  // since nothing else makes progress meanwhile. A start has one callback: a later one replaces it.
  void on_complete(std::function<void(bool)> callback);

 private:
  std::shared_ptr<ActiveOp> active_;
  std::uint32_t start_ = 0;   // number of the call, since a plan starts its operation again
};

}  // namespace paceline
