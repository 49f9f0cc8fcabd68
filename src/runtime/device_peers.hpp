// DevicePeers: one device per process of a node. Its copy engines and kernels reach the memory of
// the other devices (CUDA IPC), so that no data goes through the host.
//
// Every process lowers the schedules of all ranks (engine/enqueued.hpp) and enqueues the tasks of
// its own position. Words in memory that all processes map order tasks of different processes: a
// stream writes its progress, and others wait for it. For each call the hosts exchange the places
// of its buffers once; they do not wait for the devices.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/driver.hpp"
#include "engine/enqueued.hpp"
#include "runtime/communicator.hpp"
#include "tune/choose.hpp"

namespace paceline {

// Device memory, as a rank describes it to the others.
struct DeviceHandle {
  char allocation[72];            // name
  std::uint64_t length, offset;   // bytes of the name; offset in the allocation
  std::uint64_t begin, bytes;     // address on its rank, and size, of the allocation
};

class DevicePeers {
 public:
  // Collective over the communicator. Throws a refusal on all ranks if they do not share a node.
  DevicePeers(Communicator comm, std::shared_ptr<device::Driver> driver, int device,
              const Machine& machine);
  ~DevicePeers();
  DevicePeers(const DevicePeers&) = delete;
  DevicePeers& operator=(const DevicePeers&) = delete;

  int rank() const { return me_; }
  int size() const { return ranks_; }

  // Enqueues the call after the work on the caller's stream; later work there comes after the call.
  // Collective. The driver must have allocated the buffers. Throws a mismatch on every rank if the
  // calls differ; a usage error or refusal before anything is exchanged.
  void enqueue(const Call& call, device::Stream caller);

  // Waits for the work on the stream, at most for the communicator's time-out. Then it releases the
  // stream, leaves undefined data in the buffers, breaks the group and throws a timeout error.
  void synchronize(device::Stream caller);

  std::string explain(const Call& call);
  std::string broken() const { return broken_; }

  static constexpr std::size_t kMostShapes = 64;
  static constexpr int kLanes = 2;   // few: streams that wait for words take hardware queues

 private:
  struct Buffer {   // a rank's buffers, at this process's addresses
    std::byte* input = nullptr;
    std::byte* output = nullptr;
  };
  struct Shape {
    std::string key;
    Choice choice;
    DeviceProgram program;
    std::vector<std::byte*> scratch;          // by position
    std::vector<bool> written;                // by task: true if another position waits for it
    std::vector<std::uint32_t> number;        // by task: number in its stream, from 1
    std::vector<std::uint32_t> lengths;       // by stream: number of tasks
  };
  struct Told {   // a rank's description of a call, for the others
    std::uint64_t key = 0;
    bool in_place = false, has_input = false, has_output = false;
    DeviceHandle input{}, output{};
  };

  Told tell(const Call& call) const;
  std::vector<Told> exchange(const Told& mine);
  Shape made_of(const Call& call, const std::vector<Told>& all) const;
  void number_tasks(Shape& shape) const;
  Shape& shape_of(const Call& call, const std::vector<Told>& all);
  std::vector<Buffer> reached(const Call& call, const std::vector<Told>& all);
  std::string missing() const;
  void share_scratch(Shape& shape);
  void release(Shape& shape);
  std::byte* reach(int rank, const DeviceHandle& where);
  void close_older(int rank, const DeviceHandle& than);
  void run(const Shape& shape, const DeviceTask& task, const std::vector<Buffer>& buffers);
  void enqueue_tasks(const Shape& shape, const std::vector<Buffer>& buffers);
  device::Memory at(const Shape& shape, const Place& place,
                    const std::vector<Buffer>& buffers) const;
  device::Word* word(std::size_t index) const;
  device::Word* begin_word(int rank) const { return word(static_cast<std::size_t>(rank)); }
  device::Word* end_word(int rank) const { return word(static_cast<std::size_t>(ranks_ + rank)); }
  device::Word* stream_word(std::uint32_t stream) const {
    return word(2 * static_cast<std::size_t>(ranks_) + stream);
  }
  std::size_t words() const { return static_cast<std::size_t>(ranks_) * (2 + 2 * kLanes); }
  void map_words();
  device::Stream own_stream(std::uint32_t stream);
  device::Event take_event();
  void give_up(const std::string& why);
  void check_usable() const;

  Communicator comm_;
  std::shared_ptr<device::Driver> driver_;
  const int device_, me_, ranks_;
  const Machine machine_;
  std::byte* words_ = nullptr;
  std::size_t words_bytes_ = 0;
  std::uint32_t epoch_ = 0;                          // calls so far
  std::vector<std::uint32_t> base_;                  // by stream: its tasks in earlier calls
  std::map<std::uint32_t, device::Stream> streams_;  // this rank's
  std::map<std::uint32_t, device::Event> ends_;
  device::Event begun_ = {};
  std::vector<device::Event> free_events_, all_events_;
  std::vector<device::Event> event_of_;              // by task, in enqueue()
  struct Opened {
    std::byte* memory = nullptr;
    std::uint64_t begin = 0, bytes = 0;   // address on its rank, and size
  };
  std::map<std::pair<int, std::string>, Opened> opened_;   // by rank and allocation
  std::list<Shape> shapes_;                          // last used first; equal on all ranks
  std::string broken_;
};

}  // namespace paceline
