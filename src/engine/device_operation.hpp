// DeviceOperation: executes a schedule with buffers on a device, between processes that send
// messages: a software pipeline through pinned host memory.
//
//   send     copy out, then send        the copy is a device's task, the message the transport's
//   recv     receive, then copy in
//   reduce, copy, finish                combinations on the device
//
// The calling thread enqueues all work of the device before the start: copies out, copies in, and
// combinations on a stream each, in an order that the ranks share (engine/enqueued.hpp). Words in
// pinned memory couple it to the messages: a stream writes how many of its tasks are done, and
// waits until enough messages have come. The thread that drives the messages reads and writes words
// and makes no call of the driver: that might wait for a thread which frees memory, and so for a
// stream that waits for the messages.
#pragma once

#include <deque>
#include <vector>

#include "engine/device_end.hpp"
#include "engine/operation.hpp"

namespace paceline {

class DeviceOperation : public Operation {
 public:
  // Throws a resource error if the device has no room for the scratch.
  DeviceOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel,
                  std::shared_ptr<DeviceEnd> end, Op op);
  ~DeviceOperation() override;

  // Enqueues the work of the next start, after the work on the caller's stream. Throws a usage
  // error for a stream of another device, a resource error if there is no room for the messages.
  void enqueue(const void* input, void* output, device::Stream callers);
  // Ends the work enqueued for a start that does not come, and waits for it.
  void give_up();
  bool is_ahead() const { return is_ahead_; }

  bool advance(Transport& transport) override;
  std::size_t scratch_bytes() const override { return 0; }   // it has its own on the device
  std::vector<int> waits_for() const override;
  bool can_progress() override { return true; }
  bool is_polling() const override { return true; }

  // Makes the stream wait for the end of the last start, even if that fails.
  void join(device::Stream stream);
  const DeviceEnd& end_of() const { return *end_; }

 private:
  // A stream of the device end, and this operation's tasks on it.
  struct Line {
    StageOf stage;
    device::Stream stream;
    device::Word* word = nullptr;           // number of its done tasks, counted from `base`
    device::Event end = {};                 // of the last start's tasks
    std::uint32_t base = 0, given = 0, seen = 0;
    std::deque<std::uint32_t> steps = {};   // not yet seen as done
  };

  void begin() override;
  void cancel(Transport& transport) override;
  bool runs_out() const override;
  Line* line_of(std::uint32_t step);
  void enqueue_step(std::uint32_t step, device::Event begun);
  void combine_on_device(std::uint32_t step);
  void copy_stretches(std::uint32_t step, device::Stream stream, bool out);
  void wait_for_those_before(std::uint32_t step, device::Stream stream);
  void issue(std::uint32_t step, Transport& transport);
  void release_those_after(std::uint32_t step);
  void post(std::uint32_t step, Transport& transport, bool sends);
  bool look_at_lines(Transport& transport);
  bool look_at_transfers();
  void arrive(std::uint32_t step);
  void let_run_out();
  void end(std::uint32_t step);
  void finish();
  void free_slot(std::uint32_t step);
  void give_back();
  bool is_counted(const Line& line, std::uint32_t step) const;
  void forget_lines();
  bool moves(std::uint32_t step) const;   // true if it moves bytes between the device and the host
  device::Memory memory_at(const Place& place) const { return {end_->device(), at(place)}; }

  std::shared_ptr<DeviceEnd> end_;
  const Op op_;
  std::byte* scratch_ = nullptr;
  std::vector<std::uint32_t> before_begin_, before_;   // by step: those before it
  std::vector<std::uint32_t> missing_;                 // number of those not issued
  std::vector<std::uint32_t> ready_;                   // a queue
  std::size_t next_ready_ = 0;
  std::vector<device::Event> event_of_;                // by step: of its device task
  std::vector<std::byte*> slots_;                      // by step: pinned memory of its message
  std::vector<bool> issued_, arrived_;                 // by step
  std::vector<Transfer> transfers_;                    // by step that talks
  std::vector<std::int32_t> transfer_of_;
  std::vector<std::uint32_t> running_;                 // steps with a transfer under way
  Line out_, in_, work_;
  std::vector<std::uint32_t> receives_;                // steps, in the order of the stream `in`
  std::size_t next_receive_ = 0;                       // the first that has not arrived
  device::Word* messages_ = nullptr;                   // arrived messages, from messages_base_ on
  std::uint32_t messages_base_ = 0;
  std::vector<double> begun_s_;
  std::size_t open_ = 0;
  double cancelled_s_ = 0;
  bool is_ahead_ = false;   // enqueued, and not started
};

}  // namespace paceline
