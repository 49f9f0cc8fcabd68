// Groups of devices: calls for all positions at once, on emulated devices.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "base/error.hpp"
#include "binding.hpp"
#include "device/cuda/cuda.hpp"
#include "device/cuda/image.hpp"
#include "device/emulation.hpp"
#include "devices.hpp"
#include "pending.hpp"
#include "runtime/device_group.hpp"

namespace nb = nanobind;

namespace paceline::binding {
namespace {

class PyDeviceGroup {
 public:
  PyDeviceGroup(const PyDevices& devices, std::vector<int> positions, const std::string& machine)
      : devices_(devices), driver_(devices.driver),
        group_(driver_, std::move(positions), machine_from(machine)) {
    for (int at = 0; at < group_.size(); ++at) {
      streams_.push_back(driver_->make_stream(group_.device_of(at)));
      ends_.push_back(driver_->make_event(group_.device_of(at)));
    }
  }

  ~PyDeviceGroup() {
    try {
      wait();
    } catch (...) {   // callers see the error if they synchronise
    }
  }

  PyDeviceGroup(const PyDeviceGroup&) = delete;
  PyDeviceGroup& operator=(const PyDeviceGroup&) = delete;

  int size() const { return group_.size(); }

  // `calls`: for each position what calls.named() makes of its arguments.
  std::vector<Call> calls_from(const std::vector<nb::tuple>& calls, nb::handle knobs,
                               std::vector<Kept>& kept) const {
    std::vector<Call> made;
    for (std::size_t at = 0; at < calls.size(); ++at) {
      const nb::tuple& c = calls[at];
      const auto collective = nb::cast<std::string>(c[0]);
      kept.emplace_back();
      made.push_back(call_from({collective, c[1], c[2], c[3], c[4], c[5], c[6], knobs},
                               {static_cast<int>(at), static_cast<int>(calls.size()),
                                Accepts::devices},
                               kept.back()));
      if (at < static_cast<std::size_t>(group_.size()))
        must_be_on(kept.back(), devices_, group_.device_of(static_cast<int>(at)), collective);
    }
    return made;
  }

  void enqueue(const std::vector<nb::tuple>& calls, nb::handle knobs) {
    std::vector<Kept> kept;
    const std::vector<Call> made = calls_from(calls, knobs, kept);
    group_.enqueue(made, streams_);
    for (Kept& one : kept) under_way_.push_back(std::move(one));
  }

  std::pair<int, std::vector<Kept>> capture(const std::vector<nb::tuple>& calls,
                                            nb::handle knobs) {
    std::vector<Kept> kept;
    const std::vector<Call> made = calls_from(calls, knobs, kept);
    return {static_cast<int>(group_.capture(made, streams_.front())), std::move(kept)};
  }

  std::string explain(const std::vector<nb::tuple>& calls, nb::handle knobs) {
    std::vector<Kept> kept;
    return group_.explain(calls_from(calls, knobs, kept));
  }

  void launch(int graph) { driver_->launch(device::Graph{graph}, streams_.front()); }
  void release(int graph) { driver_->release(device::Graph{graph}); }

  void wait() {
    for (std::size_t at = 0; at < streams_.size(); ++at) driver_->record(ends_[at], streams_[at]);
    for (device::Event end : ends_) driver_->synchronize(end);
  }

  void synchronize() {
    {
      const nb::gil_scoped_release unlocked;
      wait();
    }
    under_way_.clear();
  }

 private:
  PyDevices devices_;
  std::shared_ptr<device::Driver> driver_;
  DeviceGroup group_;
  std::vector<device::Stream> streams_;
  std::vector<device::Event> ends_;
  std::vector<Kept> under_way_;   // what calls read and write until they are done
};

// A call that is kept, with its buffers.
struct PyDevicePlan {
  std::shared_ptr<PyDeviceGroup> group;
  int graph = 0;
  std::vector<Kept> kept;

  PyDevicePlan(std::shared_ptr<PyDeviceGroup> g, const std::vector<nb::tuple>& calls,
               nb::handle knobs)
      : group(std::move(g)) {
    std::tie(graph, kept) = group->capture(calls, knobs);
  }
  ~PyDevicePlan() { group->release(graph); }
  PyDevicePlan(const PyDevicePlan&) = delete;
  PyDevicePlan& operator=(const PyDevicePlan&) = delete;
};

std::vector<std::pair<double, double>> spans(PyEmulated& self, const std::string& words) {
  std::vector<std::pair<double, double>> found;
  const Machine machine = machine_from(words);
  const double gamma = machine.gamma_s_per_byte;
  const device::Rates rates{machine.across.alpha_s, 1 / machine.across.beta_s_per_byte,
                            gamma > 0 ? 1 / gamma : 0};
  for (const device::Span& span : device::timing(self.emulation->take_work(), rates))
    found.emplace_back(span.begin_s, span.end_s);
  return found;
}

// Returns the name of a device and its place in the system.
nb::dict describe_device(const PyDevices& self, int device) {
  nb::dict about;
  const auto* cuda = dynamic_cast<const device::Cuda*>(self.driver.get());
  if (!cuda) {
    about["name"] = "emulated";
    return about;
  }
  const device::CudaDevice found = cuda->describe(device);
  about["name"] = found.name;
  about["bus"] = found.bus;
  about["architecture"] = str(found.major, '.', found.minor);
  about["memory_bytes"] = found.memory_bytes;
  about["driver"] = str(cuda->version() / 1000, '.', cuda->version() % 1000 / 10);
  return about;
}

}  // namespace

void must_be_on(const Kept& kept, const PyDevices& devices, int device, std::string_view call) {
  const auto where = [](int at) { return at == kOnHost ? str("the host") : str("device ", at); };
  for (const Buffer* buffer : {&kept.input, &kept.output}) {
    if (!buffer->given()) continue;
    int wanted = device, found = buffer->device();
    if (devices.emulation) {   // CUDA's is wrong, the host's may be that of an emulated device
      if (found == kOnHost) found = devices.emulation->owner_of(buffer->data());
      if (found == device::kHost) continue;
      if (buffer->device() != kOnHost) wanted = kOnHost;
    }
    if (found != wanted)
      fail(Fault::usage, call, ": an array is on ", where(found), " and must be on ",
           where(wanted), "; copy it there.");
  }
}

void bind_device(nb::module_& m) {
  nb::class_<PyDevices>(m, "Devices", "Devices, for paceline.device.")
      .def_prop_ro("count", [](const PyDevices& self) { return self.driver->devices(); })
      .def_prop_ro("kind", [](const PyDevices& self) { return self.driver->name(); })
      .def("reaches", [](const PyDevices& self, int device, int peer) {
        return self.driver->reaches(device, peer);
      }, nb::arg("device"), nb::arg("peer"))
      .def("link", [](const PyDevices& self, int device, int peer) {
        return self.driver->link(device, peer);
      }, nb::arg("device"), nb::arg("peer"),
           "Returns the place of the link between two devices by speed; 0: the fastest.")
      .def("describe", describe_device, nb::arg("device"));
  nb::class_<PyEmulated, PyDevices>(m, "EmulatedDevices", "Devices that the host emulates.")
      .def("__init__", [](PyEmulated* self, int devices, bool threads, std::uint64_t seed,
                          std::size_t memory_bytes, bool keeps_work, bool moves) {
        new (self) PyEmulated(std::make_shared<device::Emulation>(device::EmulationOptions{
            devices, threads, seed, memory_bytes, keeps_work, moves}));
      }, nb::arg("devices"), nb::arg("threads") = false, nb::arg("seed") = 1,
           nb::arg("memory_bytes") = std::size_t{1} << 40, nb::arg("keeps_work") = false,
           nb::arg("moves") = true)
      .def("lose", [](PyEmulated& self, int device) { self.emulation->lose(device); },
           nb::arg("device"), "Emulates the loss of the device.")
      .def("spans", spans, nb::arg("machine"),
           "Returns the model times of the work enqueued since the last call: (begin, end) in\n"
           "seconds. alpha, beta and gamma of the machine are those of copies and sums.");
  m.def("cuda_devices", [] { return PyDevices{device::cuda_driver(), nullptr}; },
        "Returns the CUDA devices. Raises RefusalError, which names the cause, if there are none.");
  m.def("has_cuda_kernels", [] { return device::kernel_image() != nullptr; },
        "True if the build, or the option cuda_kernels, has reduce kernels for CUDA devices.");
  m.def("trouble_with_cuda", device::trouble_with_cuda,
        "Returns the reason why there are no CUDA devices; empty if there are.");
  nb::class_<PyDeviceGroup>(m, "DeviceGroup", "Devices as the ranks of collectives.")
      .def(nb::init<const PyDevices&, std::vector<int>, const std::string&>(), nb::arg("devices"),
           nb::arg("positions"), nb::arg("machine"))
      .def_prop_ro("size", &PyDeviceGroup::size)
      .def("enqueue", &PyDeviceGroup::enqueue, nb::arg("calls"), nb::arg("knobs").none())
      .def("explain", &PyDeviceGroup::explain, nb::arg("calls"), nb::arg("knobs").none())
      .def("synchronize", &PyDeviceGroup::synchronize);
  nb::class_<PyDevicePlan>(m, "DevicePlan", "A call of a group that can be started many times.")
      .def(nb::init<std::shared_ptr<PyDeviceGroup>, const std::vector<nb::tuple>&, nb::handle>(),
           nb::arg("group"), nb::arg("calls"), nb::arg("knobs").none())
      .def("start", [](PyDevicePlan& self) { self.group->launch(self.graph); });
}

}  // namespace paceline::binding
