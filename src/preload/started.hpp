// UnderWay calls: the non-blocking and persistent collectives that Paceline makes.
//
// The program gets a request of its own MPI: a receive of nothing from this rank itself. When the
// call has ended, the rank sends that nothing. So a request can be mixed with any others, freed,
// copied and converted, and MPI fills its status. The request of a call that ends as it is started
// is a receive from MPI_PROC_NULL, which is complete from the beginning.
#pragma once

#include <memory>
#include <vector>

#include "exchange.hpp"

namespace paceline::preload {

class UnderWay;

// Starts the exchange, and returns the request for it.
MPI_Request start_call(Exchange&& x, const char* name);
// Returns a persistent request for the exchange; each MPI_Start starts it.
MPI_Request make_persistent(Exchange&& x, const char* name);

bool is_any_started();   // false: no request is Paceline's

// Requests of an array that are Paceline's.
class Ours {
 public:
  // `at(i)` is the i-th request.
  template <class At>
  Ours(int n, At&& at) {
    for (int i = 0; i < n; ++i) add(i, at(i));
  }
  bool empty() const { return found_.empty(); }

  void start();   // those that are persistent
  void wait();    // until all have ended
  void look();    // completes those that have ended
  void free();    // those that have yet to end go on
  bool have_ended() const;
  void pause();   // after a look in vain

  // Forgets those that MPI has set to null. Returns the first error of ours, else `status`.
  template <class At>
  int after(int status, At&& at) {
    for (const Found& one : found_)
      if (at(one.at) == MPI_REQUEST_NULL) forget(one);
    return error_ != MPI_SUCCESS ? error_ : status;
  }

 private:
  struct Found {
    int at;
    MPI_Request handle;
    std::shared_ptr<UnderWay> started;
  };

  void add(int i, MPI_Request handle);
  void forget(const Found& one);

  std::vector<Found> found_;
  int error_ = MPI_SUCCESS, looks_ = 0;
};

// Makes a call of MPI for `n` requests by `host`, after `act` has been done to those of ours.
template <class At, class Host>
int with_ours(int n, At&& at, Host&& host, void (Ours::*act)()) {
  if (!is_any_started()) return host();
  Ours ours(n, at);
  (ours.*act)();
  return ours.after(host(), at);
}

// The same for one that waits for some of them. `tested(status)` makes the call that does not wait;
// true: it would not have waited either.
template <class At, class Host, class Tested>
int wait_for_some(int n, At&& at, Host&& host, Tested&& tested) {
  if (!is_any_started()) return host();
  Ours ours(n, at);
  for (ours.look(); !ours.have_ended(); ours.look()) {
    int status = MPI_SUCCESS;
    if (tested(status)) return ours.after(status, at);
    ours.pause();
  }
  return ours.after(host(), at);
}

void end_started();   // before MPI ends: completes what has been freed

}  // namespace paceline::preload
