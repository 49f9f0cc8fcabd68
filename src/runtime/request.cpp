#include "runtime/request.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "engine/device_operation.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {

bool Request::has_ended() const { return active_->operation->has_ended(start_); }
bool Request::test() { return active_->session->test(*active_, start_); }
bool Request::wait_for(int milliseconds) {
  return active_->session->wait(*active_, start_, 0, std::max(1, milliseconds));
}
bool Request::sleep_for(int milliseconds) {
  return active_->session->sleep(*active_, start_, std::max(1, milliseconds));
}
void Request::on_complete(std::function<void(bool)> callback) {
  active_->session->on_complete(*active_, start_, std::move(callback));
}
void Request::wait(int timeout_ms) {
  active_->session->wait(*active_, start_, timeout_ms, 0);
}

// A start that has ended leaves the stream nothing to wait for.
void Request::join(device::Stream stream) {
  auto* const operation =
      active_ ? dynamic_cast<DeviceOperation*>(active_->operation.get()) : nullptr;
  if (!operation)
    fail(Fault::usage, "request: a stream cannot wait for a call on memory of the host; call "
         "wait() instead.");
  if (!has_ended()) operation->join(stream);
}

}  // namespace paceline
