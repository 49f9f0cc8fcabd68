#include "pending.hpp"

#include <nanobind/stl/string.h>

#include <exception>
#include <vector>

#include "base/error.hpp"
#include "on_device.hpp"

namespace nb = nanobind;

namespace paceline::binding {
namespace {

struct Orphan {
  Request request;
  Kept kept;
};

// Never destroyed: at exit the interpreter goes before the static objects do. Guarded by the GIL.
std::vector<Orphan>& orphans() {
  static auto* all = new std::vector<Orphan>;
  return *all;
}

bool has_ended(Orphan& orphan) {
  try {
    return orphan.request.test();
  } catch (const Error&) {
    return true;  // the communicator's next call gets the same error
  }
}

}  // namespace

void look_for_signals() {
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

// An error is being made already: a failure here must not hide it.
std::string call_site() {
  const nb::gil_scoped_acquire locked;
  try {
    return nb::cast<std::string>(nb::module_::import_("paceline.call_site").attr("here")());
  } catch (const std::exception&) {
    return {};
  }
}

void orphan(Request request, Kept kept) {
  Orphan one{std::move(request), std::move(kept)};
  if (!has_ended(one)) orphans().push_back(std::move(one));
}

void bury_orphans() {
  if (!orphans().empty()) std::erase_if(orphans(), has_ended);
}

// Tries to complete the call; on completion releases the buffers, and remembers an error.
template <class Attempt>
bool Pending::attempt(Attempt&& attempt) {
  if (error_) throw Error(*error_);
  if (!request_.valid()) return true;
  try {
    Request request = request_;  // another thread may wait for it as well
    const nb::gil_scoped_release unlocked;
    if (!attempt(request)) return false;
  } catch (const Error& error) {
    error_ = error;
  }
  request_ = Request();
  kept_ = Kept();
  if (error_) throw Error(*error_);
  return true;
}

bool Pending::test() {
  return attempt([](Request& request) { return request.test(); });
}

bool Pending::wait_for(int milliseconds) {
  return attempt([=](Request& request) { return request.wait_for(milliseconds); });
}

bool Pending::sleep_for(int milliseconds) {
  return attempt([=](Request& request) { return request.sleep_for(milliseconds); });
}

// Does nothing once the call is over.
void Pending::join(std::uintptr_t stream) {
  if (error_) throw *error_;
  if (!request_.valid()) return;
  if (!is_on_device())
    fail(Fault::usage, "request: a stream cannot wait for a call on memory of the host; call "
         "wait() instead.");
  request_.join(cuda_stream(kept_.output.device(), stream));
}

nb::object Pending::wait(int timeout_ms) {
  attempt([=](Request& request) {
    request.wait(timeout_ms);
    return true;
  });
  return result_;
}

void PendingPlan::must_be_started(const char* what) const {
  if (!request_.valid())
    fail(Fault::usage, "plan: ", what, " without a start; call start() first.");
}

void PendingPlan::start() {
  if (request_.valid())
    fail(Fault::usage, "plan: start() while the last start is still under way; call wait() first.");
  request_ = [this] {
    const nb::gil_scoped_release unlocked;
    return plan_.start();
  }();
  ++starts_;
}

// Another thread may have waited for it as well, and may have started the next one since.
void PendingPlan::end(std::uint64_t start) {
  if (starts_ == start) request_ = Request();
}

bool PendingPlan::test() {
  must_be_started("test()");
  Request request = request_;  // another thread may wait for it as well
  const nb::gil_scoped_release unlocked;
  return request.test();
}

nb::object PendingPlan::wait(int timeout_ms) {
  must_be_started("wait()");
  Request request = request_;
  const std::uint64_t start = starts_;
  try {
    const nb::gil_scoped_release unlocked;
    request.wait(timeout_ms);
  } catch (const Error&) {
    end(start);  // an error ends the collective; Ctrl-C does not
    throw;
  }
  end(start);
  return result_;
}

}  // namespace paceline::binding
