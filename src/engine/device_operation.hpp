// DeviceOperation: the reading of a schedule whose buffers are on a device, between processes that
// send messages: a software pipeline through pinned memory of the host.
//
//   send     copy out, then send        the copy is a device's task, the message the transport's
//   recv     receive, then copy in
//   reduce, copy, finish                combinations on the device
//
// A step is enqueued as soon as those before it are enqueued; events order them, so that the host
// waits only where a message does. What the transport must have from the device, it gets when the
// host sees that the copy is done.
#pragma once

#include <deque>
#include <vector>

#include "engine/device_end.hpp"
#include "engine/operation.hpp"

namespace paceline {

class DeviceOperation : public Operation {
 public:
  // Throws a resource error where the device has no room for the scratch.
  DeviceOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel,
                  std::shared_ptr<DeviceEnd> end, Op op);
  ~DeviceOperation() override;

  bool advance(Transport& transport) override;
  std::size_t scratch_bytes() const override { return 0; }   // that of the device is its own
  std::vector<int> waits_for() const override;
  bool can_progress() override { return true; }
  bool is_polling() const override { return true; }

  // For the next start: what it waits for on the caller's stream, which it keeps.
  void set_begin(device::Event begin) { begins_after_ = begin; }
  // Has the stream wait for the end of the last start, also of one that fails.
  void join(device::Stream stream);
  const DeviceEnd& end_of() const { return *end_; }

 private:
  // A step whose device task is enqueued and not known to be done.
  struct Queue {
    StageOf stage;
    std::deque<std::uint32_t> steps;
  };

  void begin() override;
  void cancel(Transport& transport) override;
  void issue(std::uint32_t step, Transport& transport);
  void issue_combination(std::uint32_t step);
  void issue_message(std::uint32_t step, Transport& transport);
  void copy_stretches(std::uint32_t step, device::Stream stream, bool out);
  void enqueued(std::uint32_t step, Queue& queue, device::Stream stream);
  void wait_for_those_before(std::uint32_t step, device::Stream stream);
  void release_those_after(std::uint32_t step);
  void post(std::uint32_t step, Transport& transport, bool sends);
  bool look_at_queues(Transport& transport);
  bool look_at_transfers();
  void device_done(std::uint32_t step, StageOf stage, Transport& transport);
  void end(std::uint32_t step);
  void finish();
  void free_slot(std::uint32_t step);
  void fail_with(const Error& error, Transport& transport);
  void forget_events();
  device::Memory memory_at(const Place& place) const { return {end_->device(), at(place)}; }

  std::shared_ptr<DeviceEnd> end_;
  const Op op_;
  std::byte* scratch_ = nullptr;
  std::vector<std::uint32_t> before_begin_, before_;   // by step: those before it
  std::vector<std::uint32_t> missing_;                 // of those, not enqueued
  std::vector<std::uint32_t> ready_;                   // a queue
  std::size_t next_ready_ = 0;
  std::vector<device::Event> event_of_;                // by step: once its device task is enqueued
  std::vector<std::byte*> slots_;                      // by step: pinned memory of its message
  std::vector<Transfer> transfers_;                    // by step that talks
  std::vector<std::int32_t> transfer_of_;
  std::vector<std::uint32_t> running_;                 // steps with a transfer under way
  Queue out_{StageOf::copy_out, {}}, in_{StageOf::copy_in, {}}, work_{StageOf::reduce, {}};
  std::vector<double> begun_s_;
  std::size_t open_ = 0;
  device::Event begins_after_ = {};
  device::Word* word_ = nullptr;
  std::uint32_t ended_ = 0;   // the word's value at the end of this start
};

}  // namespace paceline
