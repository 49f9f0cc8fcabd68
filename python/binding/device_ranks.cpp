// Processes that each have a device, for Python: through the host, or reaching each other's memory.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "binding.hpp"
#include "devices.hpp"
#include "engine/device_end.hpp"
#include "pending.hpp"
#include "runtime/progress/clock.hpp"
#include "runtime/device_peers.hpp"

namespace nb = nanobind;

namespace paceline::binding {
namespace {

// A device of some, which a rank has for its own.
struct Mine {
  PyDevices devices;
  int device;
};

Call call_of(const nb::tuple& c, nb::handle knobs, const Communicator& comm, Kept& kept,
             const Mine& mine) {
  const auto collective = nb::cast<std::string>(c[0]);
  const Call call = call_from({collective, c[1], c[2], c[3], c[4], c[5], c[6], knobs},
                              {comm.rank(), comm.size(), Accepts::devices}, kept);
  must_be_on(kept, mine.devices, mine.device, collective);
  return call;
}

// Memory of a device that Python holds.
class PyMemory {
 public:
  PyMemory(const PyDevices& devices, int device, std::size_t bytes)
      : driver_(devices.driver), device_(device), bytes_(bytes),
        data_(driver_->allocate(device, bytes)), stream_(driver_->make_stream(device)),
        end_(driver_->make_event(device)) {}
  ~PyMemory() {
    const nb::gil_scoped_release unlocked;   // to free is to wait for every stream of the device
    driver_->release(stream_);
    driver_->release(end_);
    driver_->release(device_, data_);
  }
  PyMemory(const PyMemory&) = delete;
  PyMemory& operator=(const PyMemory&) = delete;

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }
  std::size_t bytes() const { return bytes_; }

  using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  void write(const Bytes& from) {
    check(from.size());
    copy({device_, data_}, {device::kHost, reinterpret_cast<std::byte*>(from.data())}, from.size());
  }
  void read(const Bytes& to) {
    check(to.size());
    copy({device::kHost, reinterpret_cast<std::byte*>(to.data())}, {device_, data_}, to.size());
  }

 private:
  void check(std::size_t bytes) const {
    if (bytes != bytes_)
      fail(Fault::usage, "device: ", bytes, " bytes for memory of ", bytes_,
           "; both must be equally long.");
  }
  void copy(device::Memory to, device::Memory from, std::size_t bytes) {
    const nb::gil_scoped_release unlocked;
    driver_->copy(stream_, {to, from, bytes});
    driver_->record(end_, stream_);
    driver_->synchronize(end_);
  }

  std::shared_ptr<device::Driver> driver_;
  int device_;
  std::size_t bytes_;
  std::byte* data_;
  device::Stream stream_;
  device::Event end_;
};

// The memory of an emulated device is the host's as well.
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> empty(const PyEmulated& self, int device,
                                                        std::size_t bytes) {
  std::byte* const data = self.driver->allocate(device, bytes);
  struct Held {
    std::shared_ptr<device::Driver> driver;
    int device;
    std::byte* data;
  };
  const nb::capsule owner(new Held{self.driver, device, data}, [](void* held) noexcept {
    auto* const one = static_cast<Held*>(held);
    one->driver->release(one->device, one->data);
    delete one;
  });
  return {reinterpret_cast<std::uint8_t*>(data), {bytes}, owner};
}

class PyLink {
 public:
  PyLink(const Communicator& comm, const PyDevices& devices, int device)
      : comm_(comm), driver_(devices.driver), mine_{devices, device},
        end_(std::make_shared<DeviceEnd>(driver_, device, now_s)),
        stream_(driver_->make_stream(device)), done_(driver_->make_event(device)) {}
  ~PyLink() {
    driver_->release(done_);
    requests_.clear();
    driver_->release(stream_);
  }
  PyLink(const PyLink&) = delete;
  PyLink& operator=(const PyLink&) = delete;

  void enqueue(const nb::tuple& arguments, nb::handle knobs) {
    Kept kept;
    Call call = call_of(arguments, knobs, comm_, kept, mine_);
    call.device = {end_, stream_};
    Request request = [&] {
      const nb::gil_scoped_release unlocked;
      return comm_.start(call);
    }();
    request.join(stream_);
    requests_.push_back(std::make_unique<Pending>(std::move(request), std::move(kept),
                                                  nb::none()));
  }

  void synchronize() {
    std::exception_ptr first;
    for (auto& request : std::exchange(requests_, {})) try {
        request->wait(0);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    if (first) std::rethrow_exception(first);
    const nb::gil_scoped_release unlocked;
    driver_->record(done_, stream_);
    driver_->synchronize(done_);
  }

  std::string explain(const nb::tuple& arguments, nb::handle knobs) {
    Kept kept;
    Call call = call_of(arguments, knobs, comm_, kept, mine_);
    call.device = {end_, stream_};
    return comm_.explain(call);
  }

  nb::dict stages() const {
    static const char* const kNames[] = {"register", "copy out", "send",
                                         "receive",  "reduce",   "copy in"};
    const StageTimes times = end_->times();
    nb::dict seconds;
    for (std::size_t i = 0; i < times.busy_s.size(); ++i) seconds[kNames[i]] = times.busy_s[i];
    nb::dict found;
    found["seconds"] = seconds;
    found["calls_s"] = times.calls_s;
    found["calls"] = times.calls;
    found["pinned_bytes"] = times.pinned_bytes;
    return found;
  }

 private:
  Communicator comm_;
  std::shared_ptr<device::Driver> driver_;
  Mine mine_;
  std::shared_ptr<DeviceEnd> end_;
  device::Stream stream_;
  device::Event done_;
  std::vector<std::unique_ptr<Pending>> requests_;
};

class PyPeers {
 public:
  PyPeers(const Communicator& comm, const PyDevices& devices, int device,
          const std::string& machine)
      : comm_(comm), driver_(devices.driver), mine_{devices, device},
        peers_(comm, driver_, device, machine_from(machine)),
        stream_(driver_->make_stream(device)) {}
  ~PyPeers() { driver_->release(stream_); }
  PyPeers(const PyPeers&) = delete;
  PyPeers& operator=(const PyPeers&) = delete;

  void enqueue(const nb::tuple& arguments, nb::handle knobs) {
    Kept kept;
    const Call call = call_of(arguments, knobs, comm_, kept, mine_);
    {
      const nb::gil_scoped_release unlocked;
      peers_.enqueue(call, stream_);
    }
    under_way_.push_back(std::move(kept));
  }
  void synchronize() {
    {
      const nb::gil_scoped_release unlocked;
      peers_.synchronize(stream_);
    }
    under_way_.clear();
  }
  std::string explain(const nb::tuple& arguments, nb::handle knobs) {
    Kept kept;
    return peers_.explain(call_of(arguments, knobs, comm_, kept, mine_));
  }
  std::string broken() const { return peers_.broken(); }

 private:
  Communicator comm_;
  std::shared_ptr<device::Driver> driver_;
  Mine mine_;
  DevicePeers peers_;
  device::Stream stream_;
  std::vector<Kept> under_way_;
};

}  // namespace

void bind_device_ranks(nb::module_& m) {
  nb::class_<PyMemory>(m, "DeviceMemory", "Memory of a device.")
      .def(nb::init<const PyDevices&, int, std::size_t>(), nb::arg("devices"), nb::arg("device"),
           nb::arg("bytes"))
      .def_prop_ro("address", &PyMemory::address)
      .def_prop_ro("bytes", &PyMemory::bytes)
      .def("write", &PyMemory::write, nb::arg("array"))
      .def("read", &PyMemory::read, nb::arg("array"));
  m.def("emulated_empty", empty, nb::arg("devices"), nb::arg("device"), nb::arg("bytes"));
  nb::class_<PyLink>(m, "DeviceLink", "A device whose messages go through the host.")
      .def(nb::init<const Communicator&, const PyDevices&, int>(), nb::arg("comm"),
           nb::arg("devices"), nb::arg("device"))
      .def("enqueue", &PyLink::enqueue, nb::arg("call"), nb::arg("knobs").none())
      .def("explain", &PyLink::explain, nb::arg("call"), nb::arg("knobs").none())
      .def("synchronize", &PyLink::synchronize)
      .def("stages", &PyLink::stages);
  nb::class_<PyPeers>(m, "DevicePeers", "A device that reaches those of the other ranks.")
      .def(nb::init<const Communicator&, const PyDevices&, int, const std::string&>(),
           nb::arg("comm"), nb::arg("devices"), nb::arg("device"), nb::arg("machine"))
      .def("enqueue", &PyPeers::enqueue, nb::arg("call"), nb::arg("knobs").none())
      .def("explain", &PyPeers::explain, nb::arg("call"), nb::arg("knobs").none())
      .def("synchronize", &PyPeers::synchronize)
      .def_prop_ro("broken", &PyPeers::broken);
}

}  // namespace paceline::binding
