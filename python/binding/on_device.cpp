#include "on_device.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "device/cuda/cuda.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline::binding {
namespace {

// Never freed: at the end of the process the driver may have gone first.
struct Ends {
  std::mutex mutex;
  std::map<int, std::shared_ptr<DeviceEnd>> ends;
  std::map<std::pair<int, std::uintptr_t>, device::Stream> streams;
};

Ends& ends() {
  static Ends* const one = new Ends;
  return *one;
}

}  // namespace

std::shared_ptr<DeviceEnd> cuda_end(int device) {
  const std::lock_guard lock(ends().mutex);
  std::shared_ptr<DeviceEnd>& end = ends().ends[device];
  if (!end) end = std::make_shared<DeviceEnd>(device::cuda_driver(), device, now_s);
  return end;
}

device::Stream cuda_stream(int device, std::uintptr_t native) {
  const std::lock_guard lock(ends().mutex);
  device::Stream& stream = ends().streams[{device, native}];
  if (stream == device::Stream{}) stream = device::cuda_driver()->adopt_stream(device, native);
  return stream;
}

OnDevice place_of(const Kept& kept) {
  const Buffer& first = kept.input.given() ? kept.input : kept.output;
  if (!first.given() || first.device() == kOnHost) return {};
  return {cuda_end(first.device()), cuda_stream(first.device(), first.stream())};
}

namespace {

// Enqueues on the end's stream after an event of the owner's, and waits for it.
void copy_after(DeviceEnd& end, device::Stream stream, device::Event after,
                const device::Copy& copy) {
  device::Driver& driver = end.driver();
  const device::Event done = end.take_event();
  driver.wait(stream, after);
  driver.copy(stream, copy);
  driver.record(done, stream);
  driver.synchronize(done);
  end.give(done);
  end.give(after);
}

device::Memory memory_of(const Buffer& buffer) {
  return {buffer.device(), static_cast<std::byte*>(buffer.data())};
}

}  // namespace

std::function<void()> device_copy(const Buffer& from, const Buffer& to) {
  const Buffer& leads = to.device() != kOnHost ? to : from;
  const std::shared_ptr<DeviceEnd> end = cuda_end(leads.device());
  const device::Event after = end->mark(cuda_stream(leads.device(), leads.stream()));
  // Event after what the other device's owner has enqueued there, if it is another device.
  std::shared_ptr<DeviceEnd> other;
  device::Event first = {};
  if (from.device() != kOnHost && from.device() != leads.device()) {
    other = cuda_end(from.device());
    first = other->mark(cuda_stream(from.device(), from.stream()));
  }
  const device::Copy copy{memory_of(to), memory_of(from), from.count() * size_of(from.type())};
  return [=, outward = to.device() == kOnHost] {
    const device::Stream stream = outward ? end->aside_out() : end->aside_in();
    if (other) {
      end->driver().wait(stream, first);
      other->give(first);
    }
    copy_after(*end, stream, after, copy);
  };
}

void Fetched::add(const Buffer& source) {
  Source one;
  if (source.device() != kOnHost) {
    one.end = cuda_end(source.device());
    one.data = static_cast<const std::byte*>(source.data());
    one.bytes = source.count() * size_of(source.type());
    one.after = one.end->mark(cuda_stream(source.device(), source.stream()));
  }
  sources_.push_back(std::move(one));
}

void Fetched::fetch(std::vector<const void*>& sources) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& one = sources_[i];
    if (!one.end) continue;
    one.pinned = one.end->take_pinned(one.bytes);
    copy_after(*one.end, one.end->aside_out(), one.after,
               {{device::kHost, one.pinned},
                {one.end->device(), const_cast<std::byte*>(one.data)}, one.bytes});
    sources[i] = one.pinned;
  }
}

void Fetched::give_back() {
  for (Source& one : sources_)
    if (one.pinned) one.end->give_pinned(std::exchange(one.pinned, nullptr), one.bytes);
}

int owner_of_cuda_memory(const void* memory) {
  const int device = device::cuda_driver()->owner_of(memory);
  if (device == device::kHost)
    fail(Fault::usage, "device: __cuda_array_interface__ gives memory that the driver does not "
         "know as a device's; has it been freed?");
  return device;
}

}  // namespace paceline::binding
