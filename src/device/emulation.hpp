// Emulation: devices on the host, to test all enqueued work without a GPU.
//
// Memory is memory of this process, streams are queues. Either every stream has a thread that runs
// its tasks, or the synchronising thread runs them, taking the streams in a seeded order: any order
// that the streams and events allow may occur. Enqueued work is kept as Work, for
// device/timing.hpp.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/random.hpp"
#include "device/driver.hpp"
#include "device/timing.hpp"

namespace paceline::device {

struct EmulationOptions {
  int devices = 2;
  bool threads = false;             // one for each stream; else the synchronising thread runs tasks
  std::uint64_t seed = 1;           // of the order without threads; with them, of short delays
  std::size_t memory_bytes = std::size_t{1} << 40;   // of each device
  bool keeps_work = false;          // for timing(); grows with all enqueued work
  bool moves = true;                // false: no data moves, and no memory is touched
};

class Emulation : public Driver {
 public:
  explicit Emulation(const EmulationOptions& options);   // throws a usage error
  ~Emulation() override;

  std::string name() const override { return "emulated"; }
  int devices() const override { return options_.devices; }
  bool reaches(int device, int peer) const override;
  int link(int device, int peer) const override;   // the same for all
  std::byte* allocate(int device, std::size_t bytes) override;
  void release(int device, std::byte* memory) override;
  void pin(void* memory, std::size_t bytes) override;
  void unpin(void* memory) override;
  SharedHandle share(int device, const std::byte* memory) override;
  std::byte* open(int device, const std::string& allocation) override;
  void close(int device, std::byte* opened) override;
  Stream make_stream(int device) override;
  Stream adopt_stream(int device, std::uintptr_t native) override;
  int device_of(Stream stream) const override;
  void release(Stream stream) override;
  Event make_event(int device) override;
  void release(Event event) override;
  void copy(Stream stream, const Copy& copy) override;
  void combine(Stream stream, const Combine& combine) override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  void wait(Stream stream, Word* word, std::uint32_t value) override;
  void write(Stream stream, Word* word, std::uint32_t value) override;
  bool is_done(Event event) override;
  void synchronize(Event event) override;
  void poll(Event event) override;
  Graph capture(Stream origin, const std::function<void()>& enqueue) override;
  void launch(Graph graph, Stream origin) override;
  void release(Graph graph) override;

  // Loses a device: work that is enqueued on it, or waits for it, fails.
  void lose(int device);
  std::vector<Work> take_work();            // since the last time
  std::size_t allocated(int device) const;   // bytes
  int owner_of(const void* memory) const;    // the device that allocated it; kHost: none

 private:
  struct Record {   // one record of an event; a later one does not change what waits for it
    bool done = false;
    std::string failure;
  };
  struct Task {
    std::function<void()> run = {};   // moves and combines; null: an event's
    std::vector<int> touches = {};    // devices
    std::shared_ptr<Record> record = {};   // that this reaches or waits for; null: none
    bool waits = false;
    const Word* word = nullptr;   // that it waits for
    std::uint32_t value = 0;
  };
  struct Block {   // of memory
    std::size_t bytes = 0;
    int file = -1;   // of the device's memory, which other processes open
    std::uint64_t serial = 0;   // of this process's blocks; file descriptors are reused
  };
  struct Queue {
    int device = 0;
    std::deque<Task> tasks;
    bool busy = false;
    bool ended = false;
    std::condition_variable awakened;   // its thread
    std::string failure;
    std::vector<std::uint32_t> last;   // predecessors of the next Work
    std::thread thread;
  };
  struct EventState {
    int device = 0;
    std::shared_ptr<Record> record;   // the last one
    std::vector<std::uint32_t> last;
  };
  using Lock = std::unique_lock<std::mutex>;

  void check(int device, const char* what) const;
  Queue& queue(Stream stream) const;
  bool others_go_on() const;
  bool look_again(Lock& lock);
  EventState& state(Event event);
  void release_memory();
  bool keep(std::function<void()> again);   // while a graph is captured
  void enqueue(Queue& queue, Task task);
  void log(Queue& queue, Work work);
  bool can_run(const Queue& queue) const;
  void run_head(Queue& queue, Lock& lock);
  static void pass(Queue& queue, const Task& task);
  void tell(const Record& record);
  bool run_any(Lock& lock);
  void serve(Queue& queue);
  void throw_failure(const Record& record);

  const EmulationOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable passed_;   // a record was reached, or a stream has nothing left
  std::map<int, std::unique_ptr<Queue>> queues_;
  std::map<int, EventState> events_;
  std::map<int, std::vector<std::function<void()>>> graphs_;
  std::vector<std::map<std::byte*, Block>> memory_;   // by device; the host's last
  std::map<std::byte*, std::size_t> opened_;   // memory of other processes
  std::vector<bool> lost_;
  std::vector<std::function<void()>>* capturing_ = nullptr;
  std::vector<Work> work_;
  Random random_;
  int next_ = 1;
  bool stop_ = false;
};

}  // namespace paceline::device
