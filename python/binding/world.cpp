// Joining and leaving a world: through a folder, or through any Python object that stores keys.
#include <nanobind/nanobind.h>
#include <nanobind/stl/chrono.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/options.hpp"
#include "binding.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/options_config.hpp"
#include "config.hpp"
#include "pending.hpp"
#include "runtime/communicator.hpp"
#include "runtime/world.hpp"
#include "transport/sealed_store.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

// A Python object with set(key, bytes) and get(key, timedelta) -> bytes. The core calls it
// without the GIL; an exception in it ends the joining.
class PythonStore : public Store {
 public:
  explicit PythonStore(nb::object object) : object_(std::move(object)) {}
  ~PythonStore() override {
    const nb::gil_scoped_acquire locked;
    object_.reset();
  }
  PythonStore(const PythonStore&) = delete;
  PythonStore& operator=(const PythonStore&) = delete;

  void set(const std::string& key, const std::string& value) override {
    const nb::gil_scoped_acquire locked;
    object_.attr("set")(key, nb::bytes(value.data(), value.size()));
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const nb::gil_scoped_acquire locked;
    try {
      const auto value = nb::cast<nb::bytes>(object_.attr("get")(key, timeout));
      return {value.c_str(), value.size()};
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_TimeoutError)) throw;
      fail(Fault::timeout, error.what());
    }
  }

 private:
  nb::object object_;
};

std::shared_ptr<Store> store_from(nb::handle store) {
  if (store.is_none()) return std::make_shared<MemoryStore>();
  if (nb::isinstance<nb::str>(store))
    return std::make_shared<FileStore>(nb::cast<std::string>(store));
  return std::make_shared<PythonStore>(nb::borrow(store));
}

Communicator join(nb::handle store, int rank, int ranks, const std::string& name,
                  const std::string& place, std::optional<int> timeout_ms,
                  std::optional<int> start_timeout_ms,
                  std::vector<std::string> mpi_libraries) {
  WorldConfig config = config_with(timeout_ms, start_timeout_ms);
  config.rank = rank;
  config.ranks = ranks;
  config.name = name;
  config.mpi_libraries = std::move(mpi_libraries);
  const auto held = std::make_shared<SealedStore>(store_from(store), text_of(Option::secret));
  const nb::gil_scoped_release unlocked;
  return join_again(held, config, place);
}

nb::object option(const std::string& name) {
  const OptionRow& row = find_option(name);
  const std::string value = value_of(row).text;
  if (row.kind == OptionKind::integer || row.kind == OptionKind::bytes)
    return nb::int_(nb::str(value.c_str()));
  return nb::str(value.c_str());
}

}  // namespace

WorldConfig config_with(std::optional<int> timeout_ms, std::optional<int> start_timeout_ms) {
  WorldConfig config = config_from_options();
  if (timeout_ms) config.timeout_ms = *timeout_ms;
  if (start_timeout_ms) config.start_timeout_ms = *start_timeout_ms;
  config.idle = look_for_signals;
  config.call_site = call_site;
  return config;
}

void bind_world(nb::module_& m) {
  m.def(
      "join", join, "store"_a.none(), "rank"_a, "ranks"_a, "name"_a, "place"_a = "",
      "timeout_ms"_a.none() = nb::none(), "start_timeout_ms"_a.none() = nb::none(),
      "mpi_libraries"_a = std::vector<std::string>(),
      "Joins a world. store: a folder, an object with set and get, or None for one rank alone.\n"
      "name and place name the world; a failed try may be repeated with the same ones.\n"
      "mpi_libraries: libraries to start if the ranks are on several nodes, the best first.");
  m.def("option", option, "name"_a, nb::sig("def option(name: str) -> typing.Any"),
        "The checked value in force of an option.");
}

}  // namespace paceline::binding
