// Operation: one collective under way on this rank. What the two readings of a schedule that carry
// it out have in common: engine/message_operation.hpp sends messages, engine/shm/load_store.hpp
// shares memory, engine/mixed.hpp does both.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/compiled_schedule.hpp"
#include "engine/notes.hpp"
#include "engine/shm/shm_channels.hpp"
#include "trace/trace.hpp"
#include "transport/transport.hpp"

namespace paceline {

// Where an operation runs: who its ranks are in the transport, what its messages are called, and
// how those of its ranks that share memory reach each other, if they do.
struct Channel {
  std::uint64_t context = 0;
  const std::vector<int>* ranks = nullptr;  // position -> rank of the transport
  ShmChannels* shm = nullptr;
  double (*now_s)() = nullptr;   // where given, slow copies into the stage are noticed
};

// One rank's buffers, as this process sees them.
struct PeerBuffers {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

// A peer whose memory the system did not let this rank read, or write into.
struct CopyDenied {
  int position = 0;
  bool writes = false;
  int error = 0;   // of the system
};

struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  std::byte* scratch = nullptr;
  const PeerBuffers* peers = nullptr;   // by position, where the schedule touches them; kept
};

class Operation {
 public:
  Operation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel);
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Buffers may be null where the schedule does not touch them; `scratch` has room for
  // scratch_bytes() until the operation is done. Everything else was prepared before.
  void start(const Buffers& buffers, std::uint32_t number, const Fingerprint& fingerprint);
  virtual std::size_t scratch_bytes() const { return compiled_->scratch_bytes; }
  // Of its staging buffer, where it has one, in each of its ranks that share memory.
  virtual std::size_t staging_bytes() const { return 0; }
  virtual bool is_load_store() const { return false; }
  virtual bool is_brief() const { return false; }   // once all peers are there

  // Does what can be done; whether anything was. Completion shows in done().
  virtual bool advance(Transport& transport) = 0;
  // advance() has stopped where it could have gone on: more urgent calls go first.
  bool is_paused() const { return is_paused_; }
  // Of its messages and its sums, from the next start on; higher is more urgent.
  void set_priority(int priority) { priority_ = priority; }
  int priority() const { return priority_; }
  // Fails it. Once it is done no buffer is touched, which may take some advance() more.
  void stop(Transport& transport, const Error& error);

  bool done() const { return done_.load(std::memory_order_acquire); }
  bool under_way() const { return started_ && !done(); }
  // Of the start with this number, after which another thread may have started it again: whether it
  // is over, and whether it failed.
  bool has_ended(std::uint32_t start) const { return done() || number() != start; }
  bool has_failed(std::uint32_t start) const { return number() == start && error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }
  std::uint32_t number() const { return number_.load(std::memory_order_relaxed); }
  const Channel& channel() const { return channel_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }

  // The ranks (of the transport) whose messages it waits for, and what one of them is waited for
  // with.
  virtual std::vector<int> waits_for() const = 0;
  virtual bool can_progress() { return false; }   // could go on, and nobody would have been told
  // Waits for something that wakes nobody, such as a device: it is to be looked at often.
  virtual bool is_polling() const { return false; }
  // What keeps it from going on, such as a device that has gone: its group is to be broken.
  const std::optional<Error>& failure() const { return failure_; }
  // The header of a message of this call is here for the first time.
  virtual void sighted(int, const Key&) {}
  // What its ranks have told each other, where they do; `word` is what this one says from the next
  // start on.
  virtual const Notes* notes() const { return nullptr; }
  void say(std::uint32_t word) { word_ = word; }
  // A peer that was found in another call.
  const std::optional<CallMismatch>& mismatch() const { return mismatch_; }
  const std::optional<CopyDenied>& barred() const { return barred_; }
  std::string describe() const;

  void record(std::vector<Event>* events, double (*now_s)()) {
    events_ = events;
    now_s_ = now_s;
  }

 protected:
  virtual void begin() = 0;                        // start(), with everything set
  virtual void cancel(Transport& transport) = 0;   // stop(): nothing new begins
  // Whether something that it has begun still touches buffers; advance() then completes it.
  virtual bool runs_out() const { return false; }
  void complete() { done_.store(true, std::memory_order_release); }

  const Schedule& schedule() const { return *compiled_->schedule; }
  int rank_of(int position) const { return (*channel_.ranks)[static_cast<std::size_t>(position)]; }
  std::byte* at(const Place& place) const {
    return place.owner == kOwn ? base_[static_cast<std::size_t>(place.space)] + place.offset
                               : at_peer(place);
  }
  // Of the transport; -1: who it will be is not known yet.
  virtual int peer_of(int position) const { return rank_of(position); }
  void combine(const CompiledStep& step);
  void log(std::uint32_t step, double begin_s, int steps = 1);

  std::shared_ptr<const CompiledSchedule> compiled_;
  Channel channel_;
  std::byte* base_[3] = {nullptr, nullptr, nullptr};  // input, output, scratch
  const PeerBuffers* peers_ = nullptr;
  std::atomic<std::uint32_t> number_{0};   // written before done_, read after it
  Fingerprint fingerprint_;
  int priority_ = 0;
  std::uint32_t word_ = 0;
  std::vector<Event>* events_ = nullptr;
  double (*now_s_)() = nullptr;
  bool is_paused_ = false;
  std::optional<CallMismatch> mismatch_;
  std::optional<CopyDenied> barred_;
  std::optional<Error> failure_;
  mutable std::vector<const void*> sources_;   // of the step that is done just now

 private:
  std::byte* at_peer(const Place& place) const;
  // Of a peer's scratch, where this process sees it.
  virtual std::byte* scratch_of(int position) const;

  bool started_ = false;
  std::atomic<bool> done_{false};
  std::optional<Error> error_;
};

bool talks(Kind kind);   // whether a step has to do with a peer that must do its part
std::unique_ptr<Operation> make_operation(std::shared_ptr<const CompiledSchedule> bound,
                                          const Channel& channel);

}  // namespace paceline
