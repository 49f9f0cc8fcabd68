// Operation: one collective under way on this rank, the base of the classes that execute a
// schedule: engine/message_operation.hpp sends messages, engine/shm/load_store.hpp shares memory,
// engine/mixed.hpp does both.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/compiled_schedule.hpp"
#include "engine/shm/shm_channels.hpp"
#include "trace/trace.hpp"
#include "transport/transport.hpp"

namespace paceline {

class EntryBook;   // arrival/entries.hpp
class Notes;       // arrival/notes.hpp

// Channel of an operation: its ranks in the transport, the context of its messages, and the shared
// memory of its ranks, if any.
struct Channel {
  std::uint64_t context = 0;
  const std::vector<int>* ranks = nullptr;  // position -> rank of the transport
  ShmChannels* shm = nullptr;
  double (*now_s)() = nullptr;   // if given, slow copies into the stage are noticed
  EntryBook* entry_books = nullptr;   // of calls that may go by arrival, by channel of `shm`
};

// One rank's buffers, as this process sees them.
struct PeerBuffers {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

// A peer whose memory the system did not let this rank read or write.
struct CopyDenied {
  int position = 0;
  bool writes = false;
  int error = 0;   // of the system
};

// A peer whose unit is not as long as this rank expects.
struct Misfit {
  int position = 0;
  std::size_t came = 0, expected = 0;   // bytes
};

struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  std::byte* scratch = nullptr;
  const PeerBuffers* peers = nullptr;   // by position, if the schedule touches them; kept
};

class Operation {
 public:
  Operation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel);
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Buffers that the schedule does not touch may be null; `scratch` has scratch_bytes() until the
  // operation is done. Everything else was prepared before.
  void start(const Buffers& buffers, std::uint32_t number, const Fingerprint& fingerprint);
  virtual std::size_t scratch_bytes() const { return compiled_->scratch_bytes; }
  // Bytes of the staging buffer of each of its ranks that share memory; 0: none.
  virtual std::size_t staging_bytes() const { return 0; }
  virtual bool is_load_store() const { return false; }
  virtual bool sends_as_well() const { return false; }   // true: a load/store call with messages
  virtual bool is_brief() const { return false; }   // true: short once all peers are there

  // Makes progress; returns true if it made any. done() tells when it is complete.
  virtual bool advance(Transport& transport) = 0;
  // True if advance() has stopped early to let more urgent calls go first.
  bool is_paused() const { return is_paused_; }
  // Sets the priority of its messages and sums from the next start on; higher is more urgent.
  void set_priority(int priority) { priority_ = priority; }
  int priority() const { return priority_; }
  // Fails it. It touches no buffer once it is done, which may take more calls of advance().
  void stop(Transport& transport, const Error& error);

  bool done() const { return done_.load(std::memory_order_acquire); }
  bool under_way() const { return started_ && !done(); }
  // has_ended(), has_failed(): true if the start with this number is over, or has failed. Another
  // thread may have started the operation again since.
  bool has_ended(std::uint32_t start) const { return done() || number() != start; }
  bool has_failed(std::uint32_t start) const { return number() == start && error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }
  std::uint32_t number() const { return number_.load(std::memory_order_relaxed); }
  const Channel& channel() const { return channel_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }

  // Returns the ranks (of the transport) whose messages it waits for.
  virtual std::vector<int> waits_for() const = 0;
  virtual bool can_progress() { return false; }   // true: could go on, though no wake-up was sent
  // True if it waits for something that wakes no thread, such as a device: call advance() often.
  virtual bool is_polling() const { return false; }
  // Reason why it cannot go on, such as a lost device: its group is to be broken.
  const std::optional<Error>& failure() const { return failure_; }
  // The header of a message of this call is here for the first time.
  virtual void sighted(int, const Key&) {}
  // Notes that its ranks exchange; null: none.
  virtual Notes* notes() { return nullptr; }
  // A peer that was found in another call.
  const std::optional<CallMismatch>& mismatch() const { return mismatch_; }
  const std::optional<CopyDenied>& barred() const { return barred_; }
  const std::optional<Misfit>& misfit() const { return misfit_; }
  std::string describe() const;

  void record(std::vector<Event>* events, double (*now_s)()) {
    events_ = events;
    now_s_ = now_s;
  }

 protected:
  virtual void begin() = 0;                        // start(), with everything set
  virtual void cancel(Transport& transport) = 0;   // stop(): nothing new begins
  // True if work that it has begun still touches buffers; advance() then completes it.
  virtual bool runs_out() const { return false; }
  void complete() { done_.store(true, std::memory_order_release); }

  const Schedule& schedule() const { return *compiled_->schedule; }
  int rank_of(int position) const { return (*channel_.ranks)[static_cast<std::size_t>(position)]; }
  std::byte* at(const Place& place) const {
    return place.owner == kOwn ? base_[static_cast<std::size_t>(place.space)] + place.offset
                               : at_peer(place);
  }
  // Returns the rank of the transport at a position; -1: not known yet.
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
  std::vector<Event>* events_ = nullptr;
  double (*now_s_)() = nullptr;
  bool is_paused_ = false;
  std::optional<CallMismatch> mismatch_;
  std::optional<CopyDenied> barred_;
  std::optional<Misfit> misfit_;
  std::optional<Error> failure_;
  mutable std::vector<const void*> sources_;   // of the current step

 private:
  std::byte* at_peer(const Place& place) const;
  // Returns the address of a peer's scratch in this process.
  virtual std::byte* scratch_of(int position) const;

  bool started_ = false;
  std::atomic<bool> done_{false};
  std::optional<Error> error_;
};

bool talks(Kind kind);   // true if a step of this kind has a matching step on a peer

}  // namespace paceline
