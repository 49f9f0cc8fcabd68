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
  // Works on what is under way; true once the collective is complete. Throws what went wrong.
  bool test();
  // Returns when the collective is complete, or throws: a timeout error after timeout_ms (0: the
  // communicator's own time-out), a mismatch, a lost peer.
  void wait(int timeout_ms = 0);
  // Waits at most so long; whether the collective is complete. Only the communicator's own time-out
  // breaks it.
  bool wait_for(int milliseconds);
  // The same beside a program that computes, whose processors it leaves alone: where the session
  // has a thread that does the work it sleeps, until this collective or another one is complete.
  bool sleep_for(int milliseconds);
  // Of a call on a device's memory: what is enqueued on the stream from now on comes after the
  // call, also after one that fails; the host does not wait. Throws a usage error for other calls.
  void join(device::Stream stream);
  // Calls `callback` once, with whether the collective has succeeded: now if it is complete, else
  // when it is, by the thread that makes progress. It may start other calls, but wait for nobody:
  // nothing else goes on meanwhile. One callback per start; a later one takes the place of an
  // earlier.
  void on_complete(std::function<void(bool)> callback);

 private:
  std::shared_ptr<ActiveOp> active_;
  std::uint32_t start_ = 0;   // number of the call: a plan's operation makes others after it
};

}  // namespace paceline
