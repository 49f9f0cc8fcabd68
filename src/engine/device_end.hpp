// DeviceEnd: a device as the end of messages between processes.
//
// Operations on its memory share streams, events, and a pool of pinned memory that is registered
// once and reused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "device/driver.hpp"

namespace paceline {

// The stages of the software pipeline. Registering is pinning memory: the pool's, when it grows.
enum class StageOf { registering, copy_out, send, receive, reduce, copy_in };
inline constexpr int kStageKinds = 6;

// Times during which at least one piece of each stage was under way. Stages overlap: their sum may
// exceed the time of the calls.
struct StageTimes {
  std::array<double, kStageKinds> busy_s = {};
  double calls_s = 0;            // with a call under way
  std::uint64_t calls = 0;
  std::size_t pinned_bytes = 0;   // of the pool, now
};

// A clock that runs while anything is under way.
class BusyClock {
 public:
  void begin(double now_s) {
    if (active_++ == 0) since_s_ = now_s;
  }
  void end(double now_s) {
    if (--active_ == 0) total_s_ += now_s - since_s_;
  }
  double total_s() const { return total_s_; }

 private:
  int active_ = 0;
  double since_s_ = 0, total_s_ = 0;
};

class DeviceEnd {
 public:
  using Clock = double (*)();

  // Throws a usage error if there is no such device. `now_s`: a monotonic clock in seconds.
  DeviceEnd(std::shared_ptr<device::Driver> driver, int device, Clock now_s);
  ~DeviceEnd();   // after the last operation
  DeviceEnd(const DeviceEnd&) = delete;
  DeviceEnd& operator=(const DeviceEnd&) = delete;

  device::Driver& driver() const { return *driver_; }
  int device() const { return device_; }
  double now_s() const { return now_s_(); }

  // Streams of copies to the host, of copies from it, and of work inside the device.
  device::Stream out() const { return out_; }
  device::Stream in() const { return in_; }
  device::Stream work() const { return work_; }
  // Streams of copies that belong to no call and wait for none.
  device::Stream aside_out() const { return aside_out_; }
  device::Stream aside_in() const { return aside_in_; }

  device::Event take_event();
  void give(device::Event event);

  // Returns at least `bytes` of pinned memory; its size is the next power of 2.
  std::byte* take_pinned(std::size_t bytes);
  void give_pinned(std::byte* memory, std::size_t bytes);

  // Returns exactly `bytes` of device memory. Freed memory is kept for the next operation of this
  // length: a driver that frees waits for every stream, also for one that waits for an operation.
  std::byte* take_scratch(std::size_t bytes);
  void give_scratch(std::byte* memory, std::size_t bytes);

  // Returns a word of pinned memory, with the value that its last user left.
  device::Word* take_word();
  void give(device::Word* word);

  // Records an event on the caller's stream. Give it back once all waits for it are enqueued.
  device::Event mark(device::Stream callers);

  // Held while one call is enqueued, so that its tasks are contiguous in the streams.
  std::mutex& enqueueing() { return enqueueing_; }

  void begin(StageOf stage);
  void end(StageOf stage);
  void begin_call();
  void end_call();
  StageTimes times() const;

 private:
  void release();
  template <class T>
  std::optional<T> taken_from(std::vector<T>& free);
  template <class Map>
  auto& of_length(Map& free, std::size_t bytes);

  std::shared_ptr<device::Driver> driver_;
  const int device_;
  const Clock now_s_;
  device::Stream out_ = {}, in_ = {}, work_ = {}, aside_out_ = {}, aside_in_ = {};
  std::mutex enqueueing_;
  mutable std::mutex mutex_;   // of the pools
  std::vector<device::Event> events_, free_events_;
  std::map<std::size_t, std::vector<std::byte*>> free_pinned_;   // by size
  std::vector<std::byte*> pinned_;
  std::size_t pinned_bytes_ = 0;
  std::map<std::size_t, std::vector<std::byte*>> free_scratch_;   // by length
  std::vector<device::Word*> free_words_;
  mutable std::mutex clocks_mutex_;
  std::array<BusyClock, kStageKinds> clocks_;
  BusyClock calls_clock_;
  std::uint64_t calls_ = 0;
};

}  // namespace paceline
