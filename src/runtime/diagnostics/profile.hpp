// Profile: records the calls of a session's communicators, if a profile is asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "profile/recorder.hpp"
#include "runtime/call.hpp"

namespace paceline {

struct Group;
struct ActiveOp;

// Recording can begin and end while other threads are in calls, which may still write to an old
// recorder. So all recorders are kept.
class Profile {
 public:
  // Begins to record calls. Throws a resource error if the file cannot be made.
  void begin(const ProfileConfig& config);
  void end();
  std::uint32_t turn() const { return turn_; }   // number of times that it has begun
  Recorder* recorder() const { return recorder_.load(std::memory_order_acquire); }
  // Sets the label of calls without their own.
  void label(std::string text);

  CallRecord* enter(Group& group, const Call& call, bool nonblocking);

 private:
  std::uint32_t site_for(Recorder& recorder, const Call& call);
  std::uint32_t communicator_for(Recorder& recorder, Group& group);

  std::atomic<Recorder*> recorder_{nullptr};
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::uint32_t> site_{0};
  std::mutex mutex_;   // guards the members below
  std::string label_;
  std::vector<std::shared_ptr<Recorder>> kept_;
};

// Records a call from its construction to its destruction: the entry, and the exit or error.
class Profiled {
 public:
  Profiled(Profile& profile, Group& group, const Call& call, bool nonblocking = false);
  ~Profiled();
  Profiled(const Profiled&) = delete;
  // Gives a non-blocking call's record to its operation, which completes it.
  void follow(ActiveOp& active) const;
  CallRecord* followed() const { return record_; }   // the record that follow() gives

 private:
  CallRecord* record_ = nullptr;
  int exceptions_ = 0;
};

}  // namespace paceline
