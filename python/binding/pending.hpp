// Pending: a request with the buffers that it works on, as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "base/error.hpp"
#include "runtime/communicator.hpp"

namespace paceline::binding {

// Called now and then by a waiting caller, without the GIL. Ctrl-C throws, which ends the wait; the
// collective goes on.
void look_for_signals();

// Returns the place of the calling thread in the Python program. Called without the GIL.
std::string call_site();

// Keeps buffers alive that Python has dropped while the core still works on them.
void orphan(Request request, Kept kept);
void bury_orphans();  // frees the buffers of those that have ended

class Pending {
 public:
  Pending(Request request, Kept kept, nanobind::object result)
      : request_(std::move(request)), kept_(std::move(kept)), result_(std::move(result)) {}
  ~Pending() {
    if (request_.valid()) orphan(std::move(request_), std::move(kept_));
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  bool test();
  bool wait_for(int milliseconds);  // false: not complete yet, and no harm done
  bool sleep_for(int milliseconds);
  nanobind::object wait(int timeout_ms);
  void join(std::uintptr_t stream);
  bool is_on_device() const { return kept_.output.device() != kOnHost; }
  nanobind::object result() const { return result_; }

 private:
  template <class Attempt>
  bool attempt(Attempt&& attempt);

  Request request_;  // invalid once it is over
  Kept kept_;
  nanobind::object result_;
  std::optional<Error> error_;  // for callers that ask again
};

// A plan with its buffers, and its present start.
class PendingPlan {
 public:
  PendingPlan(Plan plan, Kept kept, nanobind::object result)
      : plan_(std::move(plan)), kept_(std::move(kept)), result_(std::move(result)) {}
  ~PendingPlan() {
    if (request_.valid()) orphan(std::move(request_), std::move(kept_));
  }
  PendingPlan(const PendingPlan&) = delete;
  PendingPlan& operator=(const PendingPlan&) = delete;

  void start();
  bool test();
  nanobind::object wait(int timeout_ms);

 private:
  void must_be_started(const char* what) const;
  void end(std::uint64_t start);

  Plan plan_;
  Request request_;  // invalid between a wait and the next start
  std::uint64_t starts_ = 0;   // so far; a waiting thread ends only its own start
  Kept kept_;
  nanobind::object result_;
};

}  // namespace paceline::binding
