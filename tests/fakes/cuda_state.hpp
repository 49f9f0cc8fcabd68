// What the feigned CUDA driver keeps: devices, memory, streams, events, captures.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda/job.hpp"

namespace feigned {

inline constexpr std::size_t kBlock = 2u << 20;   // of shorter memory, which is opened but once

inline constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100,
                     kInvalidContext = 201, kAlreadyMapped = 208, kPeerAccessEnabled = 704,
                     kInvalidHandle = 400,
                     kNotFound = 500, kNotReady = 600, kLaunchFailed = 719, kUnjoined = 904,
                     kIsolation = 905, kNotPermitted = 800;

struct Stream;

struct Context {
  int device = 0;
  std::atomic<bool> is_lost{false};
  std::size_t taken = 0;   // bytes
  std::unique_ptr<Stream> usual;
};

struct Block {
  std::uintptr_t shown = 0;   // PROT_NONE
  char* data = nullptr;
  std::size_t bytes = 0;
  int device = 0, file = -1;
  bool is_opened = false;     // another process's
  int number = 0;             // no other's ever; of an opened one that of its process
  std::uintptr_t origin = 0;  // where the process has it that has allocated it
  int process = 0;
};

struct Stream {
  explicit Stream(Context* where);
  ~Stream();
  void serve();
  void push(std::function<void()> task);
  void drain();

  Context* context;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool busy = false, ended = false;
  std::thread worker;   // last: it uses the others
};

using Clock = std::map<Stream*, int>;   // how much of each captured stream has come before

struct Record {
  std::atomic<bool> done{false};
};

struct Event {
  Context* context = nullptr;
  std::mutex mutex;
  std::shared_ptr<Record> record;   // the last one
  const void* captured_in = nullptr;
  Clock clock;
};

struct Graph {
  std::vector<std::function<void()>> steps;
};

struct Capture {
  Stream* origin = nullptr;
  std::map<Stream*, Clock> clocks;   // of the streams that have joined
  Graph graph;
  int error = kSuccess;
};

struct World {
  std::mutex mutex;
  std::mutex calls;                  // held by who frees memory or loads kernels
  std::set<Stream*> streams;
  std::vector<std::unique_ptr<Context>> contexts;   // by device
  std::map<std::uintptr_t, Block> blocks;
  std::map<std::uintptr_t, std::size_t> pinned;
  std::atomic<int> kernels{0}, copies{0}, graphs{0};
};

int setting(const char* name, int usual);
World& world();
extern thread_local Context* current;
extern thread_local std::unique_ptr<Capture> capture;
Block* block_of(std::uintptr_t address);   // with the lock
char* data_at(std::uintptr_t address);
void enqueue(Stream* stream, const std::function<void()>& start);
std::unique_lock<std::mutex> when_idle();   // every stream; calls of other threads wait as long:
void when_nobody_frees();
Stream* stream_of(Stream* given);
int trouble(const Stream* stream);
void wait_for_word(const std::atomic<std::uint32_t>* word, std::uint32_t value);
void run_kernel(void (*kernel)(paceline::device::ReduceJob), paceline::device::ReduceJob job,
                unsigned blocks, unsigned threads);

}  // namespace feigned
