// Enqueued: lowers a world of schedules to a program for devices. One process drives them all, so
// all work is issued ahead: no rank polls, and no message is matched at run time.
//
//   matched send and receive   one copy from the sender's memory to the receiver's
//   reduce, copy, finish       a combination on the rank's device, which reads peers' memory where
//                              the schedule does (one-shot and two-shot algorithms)
//   signal and wait            order only
//   lanes                      streams: of each device and lane one that sends, one that combines
//
// The tasks are in an order in which they can be enqueued. Every stream is first in, first out, and
// a task waits for an event of another stream only if no predecessor has waited for it already.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/compiled_schedule.hpp"

namespace paceline {

// A piece of work on one stream.
struct DeviceTask {
  enum class Kind { copy, combine, divide };

  Kind kind = Kind::copy;
  int position = 0;                       // owner of its stream
  std::uint32_t stream = 0;               // of DeviceProgram::streams
  std::uint32_t first = 0, parts = 0;     // of DeviceProgram::parts
  std::vector<std::uint32_t> waits = {};  // earlier tasks of other streams
  std::uint32_t waiters = 0;              // later tasks that wait for it
};

// A stretch of a task: targets and sources, whose owners are positions.
struct DevicePart {
  std::size_t elements = 0;
  std::uint32_t first_place = 0, places = 0;   // {to, from}, {target, sources ...}, {where}
};

struct DeviceStream {
  int position = 0;
  std::string name;   // "out 0", "combine 1"
};

struct DeviceProgram {
  Type type = Type::u8;
  int divisor = 1;
  bool has_op = false;
  Op op = Op::sum;
  std::vector<std::size_t> scratch_bytes;   // by position
  std::vector<DeviceStream> streams;
  std::vector<DeviceTask> tasks;
  std::vector<DevicePart> parts;
  std::vector<Place> places;                // the owner is a position, never kOwn
};

inline constexpr int kMostDeviceLanes = 8;   // further lanes share these streams

// `world`: by position, schedules that are not fused. Throws an internal error if they do not fit
// together (verify gives details).
DeviceProgram lower_to_devices(const std::vector<std::shared_ptr<const CompiledSchedule>>& world,
                               Op op,
                               int most_lanes = kMostDeviceLanes);

// A schedule that a rank may run in a call. Several of one rank, in place and not, have the same
// messages.
struct RankSchedule {
  int rank = 0;
  const Schedule* schedule = nullptr;
};

// Returns the steps of schedule `own` in an order that serves all, in which each receive directly
// follows its send. If every rank runs one of its schedules step by step in this order, waiting at
// each receive, no deadlock can occur. An equal `world` on all ranks gives an equal order.
std::vector<std::uint32_t> steps_in_order(const std::vector<RankSchedule>& world, std::size_t own);

// Returns two tasks that touch the same memory, one of them writing, and that streams and events do
// not order; empty if there are none. Takes quadratic time: for tests.
std::string unordered_conflict(const DeviceProgram& program);

}  // namespace paceline
