// Operation: one collective under way on this rank. The polled reading of a schedule.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/bound.hpp"
#include "trace/trace.hpp"
#include "transport/transport.hpp"

namespace paceline {

// Where an operation runs: who its ranks are in the transport, and what its messages are called.
struct Channel {
  std::uint64_t context = 0;
  const std::vector<int>* ranks = nullptr;  // position -> rank of the transport
};

// One rank's buffers, as this process sees them.
struct PeerBuffers {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  std::byte* scratch = nullptr;
  std::vector<PeerBuffers> peers = {};   // by position, where the schedule touches them
};

class Operation {
 public:
  Operation(std::shared_ptr<const Bound> bound, const Channel& channel);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Buffers may be null where the schedule does not touch them; `scratch` has room for
  // scratch_bytes() until the operation is done. Everything else was prepared before.
  void start(Buffers buffers, std::uint32_t number, const Fingerprint& fingerprint);
  std::size_t scratch_bytes() const { return bound_->scratch_bytes; }

  // Does what can be done; whether anything was. Completion shows in done().
  bool advance(Transport& transport);
  void stop(Transport& transport, const Error& error);  // fails it; afterwards no buffer is touched

  bool done() const { return done_.load(std::memory_order_acquire); }
  bool under_way() const { return started_ && !done(); }
  const std::optional<Error>& error() const { return error_; }
  std::uint32_t number() const { return number_; }
  const Channel& channel() const { return channel_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }

  // The ranks (of the transport) whose messages it waits for, and what one of them is waited for
  // with.
  std::vector<int> waits_for() const;
  std::string describe() const;

  void record(std::vector<Event>* events, double (*now_s)()) {
    events_ = events;
    now_s_ = now_s;
  }

 private:
  struct Reduction {  // a recv_reduce, while its message arrives
    const Operation* operation = nullptr;
    std::uint32_t step = 0;
  };

  void run(std::uint32_t step, Transport& transport);
  void post(std::uint32_t step, Transport& transport);
  void combine(const BoundStep& step);
  void complete(std::uint32_t step);
  static void consume(void* state, std::size_t offset, const std::byte* data, std::size_t bytes);
  void consume(const BoundStep& step, std::size_t offset, const std::byte* data,
               std::size_t bytes) const;
  std::byte* at(const Place& place) const;
  void log(std::uint32_t step, double begin_s);

  std::shared_ptr<const Bound> bound_;
  Channel channel_;
  std::byte* base_[3] = {nullptr, nullptr, nullptr};  // input, output, scratch
  std::vector<PeerBuffers> peers_;
  std::vector<std::uint32_t> missing_;                // predecessors not done, per step
  std::vector<std::uint32_t> ready_;                  // a queue
  std::size_t next_ready_ = 0;
  std::vector<Transfer> transfers_;        // one per step that talks
  std::vector<std::int32_t> transfer_of_;  // per step
  std::vector<Reduction> reductions_;
  std::vector<std::uint32_t> running_;  // steps with a transfer under way
  std::size_t open_ = 0;
  std::uint32_t number_ = 0;
  Fingerprint fingerprint_;
  bool started_ = false;
  std::atomic<bool> done_{false};
  std::optional<Error> error_;
  std::vector<Event>* events_ = nullptr;
  double (*now_s_)() = nullptr;
  std::vector<double> begun_s_;
};

}  // namespace paceline
