// The part of a device operation that enqueues the work of its device.
#include "base/error.hpp"
#include "engine/device_operation.hpp"

namespace paceline {

using device::Memory;
using device::Stream;

void DeviceOperation::enqueue(const void* input, void* output, Stream callers) {
  base_[0] = const_cast<std::byte*>(static_cast<const std::byte*>(input));
  base_[1] = static_cast<std::byte*>(output);
  base_[2] = scratch_;
  const std::lock_guard lock(end_->enqueueing());
  const device::Event begun = end_->mark(callers);
  for (Line* line : {&out_, &in_, &work_}) {
    line->base = line->word->load(std::memory_order_relaxed);
    line->given = line->seen = 0;
    line->steps.clear();
  }
  messages_base_ = messages_->load(std::memory_order_relaxed);
  is_ahead_ = true;
  try {
    for (std::uint32_t step : compiled_->order) enqueue_step(step, begun);
    for (Line* line : {&out_, &in_, &work_})
      if (line->given > 0) end_->driver().record(line->end, line->stream);
  } catch (...) {
    end_->give(begun);
    give_up();
    throw;
  }
  end_->give(begun);
}

// Enqueues a step. Signals and empty messages go through the stream as well, without a copy, so
// that they follow the device's earlier tasks.
void DeviceOperation::enqueue_step(std::uint32_t step, device::Event begun) {
  Line* const line = line_of(step);
  if (!line) return;
  device::Driver& driver = end_->driver();
  if (line->given == 0) driver.wait(line->stream, begun);
  wait_for_those_before(step, line->stream);
  if (moves(step)) slots_[step] = end_->take_pinned(compiled_->steps[step].bytes);
  if (line == &in_)
    driver.wait(line->stream, messages_, messages_base_ + line->given + 1);
  if (line == &work_)
    combine_on_device(step);
  else if (moves(step))
    copy_stretches(step, line->stream, line == &out_);
  event_of_[step] = end_->take_event();
  driver.record(event_of_[step], line->stream);
  driver.write(line->stream, line->word, line->base + line->given + 1);
  ++line->given;
  line->steps.push_back(step);
}

void DeviceOperation::combine_on_device(std::uint32_t step) {
  const CompiledStep& b = compiled_->steps[step];
  const std::size_t element = size_of(compiled_->type);
  for (std::uint32_t i = 0; i < b.stretches; ++i) {
    const Stretch& stretch = compiled_->stretches[b.first + i];
    const Place* places = compiled_->places.data() + stretch.first_place;
    if (b.places == 2) {
      end_->driver().copy(work_.stream, {memory_at(places[0]), memory_at(places[1]),
                                         stretch.elements * element});
      continue;
    }
    device::Combine combine{.target = memory_at(places[0]), .sources = {},
                            .count = stretch.elements, .type = compiled_->type, .op = op_};
    const bool divides = b.places == 1;
    for (std::uint32_t k = divides ? 0 : 1; k < b.places; ++k)
      combine.sources.push_back(memory_at(places[k]));
    if (divides) combine.divisor = compiled_->divisor;
    end_->driver().combine(work_.stream, combine);
  }
}

void DeviceOperation::copy_stretches(std::uint32_t step, Stream stream, bool out) {
  const CompiledStep& b = compiled_->steps[step];
  std::byte* slot = slots_[step];
  for (std::uint32_t i = 0; i < b.stretches; ++i) {
    const Stretch& stretch = compiled_->stretches[b.first + i];
    const std::size_t bytes = stretch.elements * size_of(compiled_->type);
    const Memory here = memory_at(compiled_->places[stretch.first_place]);
    const Memory there{device::kHost, slot};
    end_->driver().copy(stream, out ? device::Copy{there, here, bytes}
                                    : device::Copy{here, there, bytes});
    slot += bytes;
  }
}

// Makes the stream wait for the step's predecessors. A predecessor without a task stands for its
// own predecessors; those on the same stream come earlier anyway.
void DeviceOperation::wait_for_those_before(std::uint32_t step, Stream stream) {
  for (std::uint32_t i = before_begin_[step]; i < before_begin_[step + 1]; ++i) {
    const std::uint32_t earlier = before_[i];
    const Line* const line = line_of(earlier);
    if (!line)
      wait_for_those_before(earlier, stream);
    else if (line->stream != stream)
      end_->driver().wait(stream, event_of_[earlier]);
  }
}

void DeviceOperation::give_up() {
  is_ahead_ = false;
  let_run_out();
  for (Line* line : {&out_, &in_, &work_}) {
    if (line->given == 0) continue;
    try {   // the caller gets its buffers back: nothing may touch them afterwards
      end_->driver().record(line->end, line->stream);
      end_->driver().synchronize(line->end);
    } catch (const Error&) {   // a lost device touches nothing either
    }
    line->steps.clear();
  }
  give_back();
}

// Releases all waits for messages.
void DeviceOperation::let_run_out() {
  messages_->store(messages_base_ + in_.given, std::memory_order_release);
}

}  // namespace paceline
