// Cuda: devices by the CUDA driver, which the first object of this class loads.
//
// It uses the primary contexts, as frameworks do: their memory and streams may be passed in
// directly. It keeps each thread's current context.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/cuda/api.hpp"
#include "device/driver.hpp"

namespace paceline::device {

// Description of a device, for display.
struct CudaDevice {
  std::string name;
  std::string bus;                    // "0000:3b:00"
  int major = 0, minor = 0;           // of its architecture
  std::size_t memory_bytes = 0;
};

class Cuda : public Driver {
 public:
  Cuda();   // throws a refusal that names what is missing
  ~Cuda() override;

  std::string name() const override { return "cuda"; }
  int devices() const override { return static_cast<int>(places_.size()); }
  bool reaches(int device, int peer) const override;
  int link(int device, int peer) const override;
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
  void poll(Event event) override { is_done(event); }
  Graph capture(Stream origin, const std::function<void()>& enqueue) override;
  void launch(Graph graph, Stream origin) override;
  void release(Graph graph) override;

  CudaDevice describe(int device) const;
  int version() const { return api_.version; }
  // Returns the device that owns this memory; kHost: none. Managed memory is the host's.
  int owner_of(const void* memory) const;

 private:
  struct Place {   // a device
    cuda::Device device = 0;
    std::atomic<bool> is_open{false};   // once true, only `kernels` changes
    cuda::Context context = nullptr;
    int processors = 1;
    cuda::Module module = nullptr;   // the reduce kernels
    cuda::Result loaded = 0;         // the driver's status if there is none
    std::map<std::pair<Type, Op>, cuda::Function> kernels;
  };
  struct OnStream {
    int device = 0;
    cuda::StreamHandle handle = nullptr;
    bool is_own = true;
  };
  struct OnEvent {
    int device = 0;
    cuda::EventHandle handle = nullptr;
  };
  class Current;

  Place& place(int device, const char* what) const;
  void open(Place& place, int device) const;
  OnStream on(Stream stream) const;
  OnEvent on(Event event) const;
  void check(cuda::Result result, const char* what, int device) const;
  cuda::Function kernel(int device, Type type, Op op);
  void run_kernel(const OnStream& on, const Combine& combine);
  cuda::Address address_of(Word* word, int device) const;
  cuda::IpcHandle exported(int device, cuda::Address begin, unsigned long long buffer);

  const cuda::Api& api_;
  // Guards the members below. Never held during a call of the driver: poll() takes it.
  mutable std::mutex mutex_;
  mutable std::mutex opening_, kernels_;   // held during calls of the driver
  std::vector<std::unique_ptr<Place>> places_;
  mutable std::map<std::pair<int, int>, bool> reaches_;
  std::map<int, OnStream> streams_;
  std::map<int, OnEvent> events_;
  std::map<int, std::pair<int, cuda::GraphExec>> graphs_;   // with their devices
  std::map<unsigned long long, cuda::IpcHandle> exported_;  // by number of the allocation
  int next_ = 1;
};

// Returns this process's Cuda, made at the first call. Throws as its constructor does.
std::shared_ptr<Cuda> cuda_driver();

// Returns why there is none; empty if there is one.
std::string trouble_with_cuda();

}  // namespace paceline::device
