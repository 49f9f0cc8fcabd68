// What a session records of its communicators' calls, where a profile is asked for.
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

// Recording can begin and end while others are in calls: a recorder that one of them may still
// write to is kept.
class Profile {
 public:
  // From now on calls are recorded there. Throws a resource error where that cannot be.
  void begin(const ProfileConfig& config);
  void end();
  std::uint32_t turn() const { return turn_; }   // how often it has begun
  Recorder* recorder() const { return recorder_.load(std::memory_order_acquire); }
  // What calls are labelled by that have no tag.
  void label(std::string text);

  CallRecord* enter(Group& group, const Call& call, bool nonblocking);

 private:
  std::uint32_t site_for(Recorder& recorder, const Call& call);
  std::uint32_t communicator_for(Recorder& recorder, Group& group);

  std::atomic<Recorder*> recorder_{nullptr};
  std::atomic<std::uint32_t> turn_{0};   // of recorders, so far
  std::atomic<std::uint32_t> site_{0};
  std::mutex mutex_;   // of what follows
  std::string label_;
  std::vector<std::shared_ptr<Recorder>> kept_;
};

// Records a call for as long as it lives: from the entry to the exit, or to the error.
class Profiled {
 public:
  Profiled(Profile& profile, Group& group, const Call& call, bool nonblocking = false);
  ~Profiled();
  Profiled(const Profiled&) = delete;
  // A non-blocking call is complete when the operation is.
  void follow(ActiveOp& active) const;
  CallRecord* followed() const { return record_; }   // that follow() would have it complete

 private:
  CallRecord* record_ = nullptr;
  int exceptions_ = 0;
};

}  // namespace paceline
