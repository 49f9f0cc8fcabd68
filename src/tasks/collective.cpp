#include "tasks/collective.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/thrown.hpp"

namespace paceline::tasks {
namespace {

// A refused call is not made either, and the peers must not take the next one for it.
Request start(Communicator& communicator, const Call& call, const std::string& what) try {
  return communicator.start(call);
} catch (...) {
  communicator.abort(str("does not make its call ", what, ", which was refused: ",
                         text_of(std::current_exception())));
  throw;
}

}  // namespace

// The calls that have been made and are not complete.
class Calls::UnderWay {
 public:
  std::uint64_t add(const Request& request) {
    const std::lock_guard lock(mutex_);
    requests_.emplace_back(next_, request);
    return next_++;
  }
  void remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(requests_, [&](const auto& one) { return one.first == number; });
  }
  bool has(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(requests_, [&](const auto& one) { return one.first == number; });
  }
  std::optional<std::pair<std::uint64_t, Request>> oldest() const {
    const std::lock_guard lock(mutex_);
    if (requests_.empty()) return {};
    return requests_.front();
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::vector<std::pair<std::uint64_t, Request>> requests_;
};

bool Calls::help(int milliseconds) {
  auto oldest = under_way_->oldest();
  if (!oldest) return false;
  auto& [number, request] = *oldest;
  try {
    // Complete, but still here: another thread is about to complete its task and wake the waiters.
    return !request.wait_for(milliseconds) || !under_way_->has(number);
  } catch (const Error&) {
    return false;
  }
}

Calls::Calls(graph::Engine& engine, Communicator communicator)
    : engine_(engine),
      communicator_(std::move(communicator)),
      order_(engine.sequence()),
      under_way_(std::make_shared<UnderWay>()) {
  if (!communicator_.has_progress_thread())
    fail(Fault::refusal, "engine: calls of this communicator go on only while a thread waits for ",
         "them, and tasks do not wait. Set PACELINE_PROGRESS=thread; ranks that talk over MPI ",
         "need one that was initialised with MPI_THREAD_MULTIPLE.");
}

graph::Task Calls::push(const Call& call, graph::TaskSpec spec) {
  const std::string what =
      spec.name.empty() ? std::string(name_of(call.collective))
                        : str(name_of(call.collective), " '", spec.name, "'");
  spec.sequence = order_;
  spec.pool = graph::Pool::communication;
  spec.at_once = true;   // the thread that completes a call makes the next one
  spec.skipped = [communicator = communicator_, what](const std::exception_ptr& error) mutable {
    communicator.abort(str("does not make its call ", what, ", since an operand failed: ",
                           text_of(error)));
  };
  const auto begin = [communicator = communicator_, call, what,
                      under_way = under_way_](graph::Completion completion) mutable {
    Request request = start(communicator, call, what);
    // A thread of the engine composes the text of an error, because that takes time. The request
    // goes first: once the task is complete its world may end, and the thread that makes progress
    // must not hold its last reference.
    const std::uint64_t number = under_way->add(request);
    request.on_complete([completion = std::move(completion), request, under_way,
                         number](bool ok) mutable {
      under_way->remove(number);
      Request own = std::exchange(request, Request());
      if (!ok) return completion.ends_with([own = std::move(own)]() mutable { own.wait(); });
      own = Request();
      completion.done();
    });
  };
  return engine_.push_asynchronous(begin, std::move(spec));
}

}  // namespace paceline::tasks
