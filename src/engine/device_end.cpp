#include "engine/device_end.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"

namespace paceline {
namespace {

constexpr std::size_t kLeastPinned = 4096;
constexpr std::size_t kWordBytes = 64;      // distance of words, so that each has a cache line
constexpr std::size_t kWordsAtOnce = 64;

std::size_t size_class(std::size_t bytes) { return std::bit_ceil(std::max(bytes, kLeastPinned)); }

}  // namespace

DeviceEnd::DeviceEnd(std::shared_ptr<device::Driver> driver, int device, Clock now_s)
    : driver_(std::move(driver)), device_(device), now_s_(now_s) {
  if (device < 0 || device >= driver_->devices())
    fail(Fault::usage, "device: there is no device ", device, "; there are 0 to ",
         driver_->devices() - 1, ".");
  try {
    for (device::Stream* stream : {&out_, &in_, &work_, &aside_out_, &aside_in_})
      *stream = driver_->make_stream(device);
  } catch (...) {
    release();
    throw;
  }
}

DeviceEnd::~DeviceEnd() { release(); }

void DeviceEnd::release() {
  for (device::Stream stream : {out_, in_, work_, aside_out_, aside_in_})
    if (stream != device::Stream{}) driver_->release(stream);
  for (device::Event event : events_) driver_->release(event);
  for (std::byte* memory : pinned_) driver_->release(device::kHost, memory);
  for (const auto& [bytes, free] : free_scratch_)
    for (std::byte* memory : free) driver_->release(device_, memory);
}

// Pools are locked only briefly, never during a call of the driver: that call may wait for the
// thread that is about to give something back.
template <class T>
std::optional<T> DeviceEnd::taken_from(std::vector<T>& free) {
  const std::lock_guard lock(mutex_);
  if (free.empty()) return {};
  const T one = free.back();
  free.pop_back();
  return one;
}

device::Event DeviceEnd::take_event() {
  if (const auto event = taken_from(free_events_)) return *event;
  const device::Event event = driver_->make_event(device_);
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
  return event;
}

void DeviceEnd::give(device::Event event) {
  const std::lock_guard lock(mutex_);
  free_events_.push_back(event);
}

template <class Map>
auto& DeviceEnd::of_length(Map& free, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return free[bytes];   // its address is stable
}

std::byte* DeviceEnd::take_pinned(std::size_t bytes) {
  const std::size_t length = size_class(bytes);
  if (const auto memory = taken_from(of_length(free_pinned_, length))) return *memory;
  begin(StageOf::registering);
  std::byte* memory = nullptr;
  try {
    memory = driver_->allocate(device::kHost, length);
  } catch (...) {
    end(StageOf::registering);
    throw;
  }
  end(StageOf::registering);
  const std::lock_guard lock(mutex_);
  pinned_.push_back(memory);
  pinned_bytes_ += length;
  return memory;
}

void DeviceEnd::give_pinned(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  free_pinned_[size_class(bytes)].push_back(memory);
}

std::byte* DeviceEnd::take_scratch(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const auto memory = taken_from(of_length(free_scratch_, bytes));
  return memory ? *memory : driver_->allocate(device_, bytes);
}

void DeviceEnd::give_scratch(std::byte* memory, std::size_t bytes) {
  if (!memory) return;
  const std::lock_guard lock(mutex_);
  free_scratch_[bytes].push_back(memory);
}

device::Word* DeviceEnd::take_word() {
  if (const auto word = taken_from(free_words_)) return *word;
  std::byte* const memory = driver_->allocate(device::kHost, kWordBytes * kWordsAtOnce);
  const std::lock_guard lock(mutex_);
  pinned_.push_back(memory);
  for (std::size_t i = 1; i < kWordsAtOnce; ++i)
    free_words_.push_back(new (memory + i * kWordBytes) device::Word(0));
  return new (memory) device::Word(0);
}

void DeviceEnd::give(device::Word* word) {
  const std::lock_guard lock(mutex_);
  free_words_.push_back(word);
}

device::Event DeviceEnd::mark(device::Stream callers) {
  if (driver_->device_of(callers) != device_)
    fail(Fault::usage, "device: a stream of device ", driver_->device_of(callers),
         " for memory of device ", device_, "; pass a stream of the device that the memory is on.");
  const device::Event event = take_event();
  try {
    driver_->record(event, callers);
  } catch (...) {
    give(event);
    throw;
  }
  return event;
}

void DeviceEnd::begin(StageOf stage) {
  const std::lock_guard lock(clocks_mutex_);
  clocks_[static_cast<std::size_t>(stage)].begin(now_s_());
}

void DeviceEnd::end(StageOf stage) {
  const std::lock_guard lock(clocks_mutex_);
  clocks_[static_cast<std::size_t>(stage)].end(now_s_());
}

void DeviceEnd::begin_call() {
  const std::lock_guard lock(clocks_mutex_);
  calls_clock_.begin(now_s_());
  ++calls_;
}

void DeviceEnd::end_call() {
  const std::lock_guard lock(clocks_mutex_);
  calls_clock_.end(now_s_());
}

StageTimes DeviceEnd::times() const {
  StageTimes times;
  const std::scoped_lock lock(mutex_, clocks_mutex_);
  for (std::size_t i = 0; i < clocks_.size(); ++i) times.busy_s[i] = clocks_[i].total_s();
  times.calls_s = calls_clock_.total_s();
  times.calls = calls_;
  times.pinned_bytes = pinned_bytes_;
  return times;
}

}  // namespace paceline
