#include "started.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "alone.hpp"
#include "base/error.hpp"
#include "report.hpp"
#include "runtime/progress/backoff.hpp"

namespace paceline::preload {

constexpr int kNoTag = 0;

// One request of the program. Threads of the program may not use it at once.
class UnderWay {
 public:
  UnderWay(Exchange&& x, const char* name, bool is_persistent)
      : x_(std::move(x)), state_(x_.state->shared_from_this()),
        communicator_(state_->communicator), name_(name), is_persistent_(is_persistent) {
    x_.input.keep_description();
    x_.output.keep_description();
  }

  int tag() const { return tag_; }
  void set_tag(int tag) { tag_ = tag; }
  bool is_persistent() const { return is_persistent_; }
  bool is_under_way() const { return is_under_way_; }

  void start() {
    x_.begin();
    ++state_->calls;
    request_ = communicator_.start(x_.call);
    is_under_way_ = true;
  }

  // Completes the call if it has ended already. Throws its error.
  bool ends_at_once() {
    if (!request_.has_ended()) return false;
    request_.test();
    x_.end();
    is_under_way_ = false;
    return true;
  }

  // MPI starts the request whatever happens; an error ends it.
  void start_again() try {
    if (is_persistent_) start();
  } catch (...) {
    code_ = tell();
    request_ = {};
    is_under_way_ = true;
  }

  // Completes the call if it has ended, or when it has. Returns MPI's code of its error.
  int complete(bool waits) {
    if (!is_under_way_) return MPI_SUCCESS;
    if (request_.valid()) {
      code_ = MPI_SUCCESS;
      try {
        if (waits) request_.wait();
        else if (!request_.test()) return MPI_SUCCESS;
        x_.end();
      } catch (...) {
        code_ = tell();
      }
    }
    is_under_way_ = false;
    if (tag_ != kNoTag) PMPI_Send(&nothing_, 0, MPI_BYTE, 0, tag_, alone());
    return code_;
  }

 private:
  int tell() { return report(name_, state_->is_gone ? MPI_COMM_WORLD : x_.comm); }

  Exchange x_;
  std::shared_ptr<CommState> state_;
  Communicator communicator_;   // outlives MPI's
  const char* name_;
  int tag_ = kNoTag;   // of the receive; none yet
  const bool is_persistent_;
  bool is_under_way_ = false;
  int code_ = MPI_SUCCESS;   // of the last start
  char nothing_ = 0;
  Request request_;
};

namespace {

struct OurRequests {
  std::mutex mutex;
  std::unordered_map<MPI_Request, std::shared_ptr<UnderWay>> by_request;
  std::vector<std::shared_ptr<UnderWay>> freed;   // and still under way
  std::vector<int> tags;                         // that no request has
  int last_tag = kNoTag;
  std::atomic<int> size{0};                      // of both

  static OurRequests& get() {
    static OurRequests* const one = new OurRequests;
    return *one;
  }

  int take_tag() {
    const std::lock_guard lock(mutex);
    if (tags.empty()) return ++last_tag;
    const int tag = tags.back();
    tags.pop_back();
    return tag;
  }

  void put(MPI_Request handle, const std::shared_ptr<UnderWay>& started) {
    const std::lock_guard lock(mutex);
    by_request[handle] = started;
    ++size;
  }

  void give_back(const UnderWay& started) {   // with the mutex
    tags.push_back(started.tag());
    --size;
  }

  // Completes freed calls that have ended; all of them if `waits`.
  void complete_freed(bool waits) {
    std::vector<std::shared_ptr<UnderWay>> left;
    {
      const std::lock_guard lock(mutex);
      if (freed.empty()) return;
      left.swap(freed);
    }
    for (const auto& one : left) one->complete(waits);
    const std::lock_guard lock(mutex);
    for (const auto& one : left) {
      if (one->is_under_way()) freed.push_back(one);
      else give_back(*one);
    }
  }
};

char nothing = 0;

}  // namespace

MPI_Request start_call(Exchange&& x, const char* name) {
  OurRequests& table = OurRequests::get();
  const auto started = std::make_shared<UnderWay>(std::move(x), name, false);
  MPI_Request handle = MPI_REQUEST_NULL;
  started->start();
  if (started->ends_at_once()) {
    check(PMPI_Irecv(&nothing, 0, MPI_BYTE, MPI_PROC_NULL, 0, alone(), &handle), "Irecv");
    return handle;
  }
  try {
    const int tag = table.take_tag();
    check(PMPI_Irecv(&nothing, 0, MPI_BYTE, 0, tag, alone(), &handle), "Irecv");
    started->set_tag(tag);
    table.put(handle, started);
  } catch (...) {   // the call uses memory that ends here
    started->complete(true);
    throw;
  }
  return handle;
}

MPI_Request make_persistent(Exchange&& x, const char* name) {
  OurRequests& table = OurRequests::get();
  const auto started = std::make_shared<UnderWay>(std::move(x), name, true);
  const int tag = table.take_tag();
  MPI_Request handle = MPI_REQUEST_NULL;
  check(PMPI_Recv_init(&nothing, 0, MPI_BYTE, 0, tag, alone(), &handle), "Recv_init");
  // MPICH 5.0.2 finds an error in a persistent request that it has yet to complete once.
  check(PMPI_Start(&handle), "Start");
  check(PMPI_Send(&nothing, 0, MPI_BYTE, 0, tag, alone()), "Send");
  check(PMPI_Wait(&handle, MPI_STATUS_IGNORE), "Wait");
  started->set_tag(tag);
  table.put(handle, started);
  return handle;
}

bool is_any_started() { return OurRequests::get().size.load(std::memory_order_acquire) > 0; }

void Ours::add(int i, MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL) return;
  OurRequests& table = OurRequests::get();
  const std::lock_guard lock(table.mutex);
  const auto found = table.by_request.find(handle);
  if (found != table.by_request.end()) found_.push_back({i, handle, found->second});
}

void Ours::start() {
  for (const Found& one : found_) one.started->start_again();
}

void Ours::wait() {
  OurRequests::get().complete_freed(false);
  for (const Found& one : found_) error_ = std::max(error_, one.started->complete(true));
}

void Ours::look() {
  OurRequests::get().complete_freed(false);
  for (const Found& one : found_) error_ = std::max(error_, one.started->complete(false));
}

bool Ours::have_ended() const {
  return std::ranges::none_of(
      found_, [](const Found& one) { return one.started->is_under_way(); });
}

void Ours::free() {
  OurRequests& table = OurRequests::get();
  const std::lock_guard lock(table.mutex);
  for (const Found& one : found_) {
    table.by_request.erase(one.handle);
    if (one.started->is_under_way()) table.freed.push_back(one.started);
    else table.give_back(*one.started);
  }
}

void Ours::pause() {
  constexpr int kSpins = 200;
  if (++looks_ < kSpins) paceline::pause();
  else sched_yield();
}

void Ours::forget(const Found& one) {
  OurRequests& table = OurRequests::get();
  const std::lock_guard lock(table.mutex);
  if (table.by_request.erase(one.handle) > 0) table.give_back(*one.started);
}

void end_started() { OurRequests::get().complete_freed(true); }

}  // namespace paceline::preload
