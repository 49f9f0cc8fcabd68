#include "runtime/diagnostics/profile.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "base/str.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {
namespace {

// Returns the recorder of this folder and rank. Worlds of a process that agree in these share one.
std::shared_ptr<Recorder> recorder_of(const ProfileConfig& config) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Recorder>> open;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Recorder>& known = open[str(config.folder, "/", config.rank)];
  if (auto recorder = known.lock()) return recorder;
  auto recorder = std::make_shared<Recorder>(config);
  for (int c = 0; c < kCollectives; ++c)
    recorder->note(str("{\"collective\":", c, ",\"name\":\"", name_of(static_cast<Collective>(c)),
                       "\"}"));
  known = recorder;
  return recorder;
}

std::uint64_t message_bytes(const Call& call, std::size_t ranks) {
  std::size_t elements = call.count;
  switch (call.collective) {
    case Collective::barrier: return 0;
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast: break;
    default:
      elements = call.uneven ? std::accumulate(call.counts.begin(), call.counts.end(),
                                               std::size_t{0})
                             : elements * ranks;
  }
  return elements * size_of(call.type);
}

}  // namespace

void Profile::begin(const ProfileConfig& config) {
  recorder_ = nullptr;
  ++turn_;   // also if the file cannot be made, since it is equal on all ranks
  auto recorder = recorder_of(config);
  const std::lock_guard lock(mutex_);
  site_ = recorder->site(label_);
  kept_.push_back(std::move(recorder));
  recorder_ = kept_.back().get();
}

void Profile::end() {
  if (Recorder* const recorder = recorder_.exchange(nullptr)) recorder->finish();
}

void Profile::label(std::string text) {
  const std::lock_guard lock(mutex_);
  label_ = std::move(text);
  if (Recorder* const recorder = recorder_) site_ = recorder->site(label_);
}

std::uint32_t Profile::site_for(Recorder& recorder, const Call& call) {
  return call.label.empty() ? site_.load(std::memory_order_relaxed) : recorder.site(call.label);
}

std::uint32_t Profile::communicator_for(Recorder& recorder, Group& group) {
  const std::uint32_t turn = turn_;
  if (group.profile_turn.load(std::memory_order_acquire) == turn) return group.profile_id;
  const std::lock_guard lock(mutex_);
  if (group.profile_turn == turn) return group.profile_id;
  group.profile_id = recorder.communicator(group.ranks, group.context);
  group.profile_calls = 0;
  group.profile_turn.store(turn, std::memory_order_release);
  return group.profile_id;
}

CallRecord* Profile::enter(Group& group, const Call& call, bool nonblocking) {
  Recorder* const recorder = this->recorder();
  if (!recorder) return nullptr;
  const std::uint32_t communicator = communicator_for(*recorder, group);
  const std::uint32_t number = group.profile_calls.fetch_add(1, std::memory_order_relaxed);
  return recorder->enter({static_cast<int>(call.collective), communicator, number,
                          site_for(*recorder, call), message_bytes(call, group.ranks.size()),
                          nonblocking});
}

Profiled::Profiled(Profile& profile, Group& group, const Call& call, bool nonblocking) {
  if (!profile.recorder()) return;
  exceptions_ = std::uncaught_exceptions();
  record_ = profile.enter(group, call, nonblocking);
}

Profiled::~Profiled() {
  if (record_) Recorder::leave(*record_, std::uncaught_exceptions() == exceptions_);
}

void Profiled::follow(ActiveOp& active) const { active.profiled = record_; }

}  // namespace paceline
