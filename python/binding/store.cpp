// Arrays by key for Python; a user sees python/paceline/kvstore.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "base/error.hpp"
#include "binding.hpp"
#include "engine.hpp"
#include "kernels/kernels.hpp"
#include "on_device.hpp"
#include "pending.hpp"
#include "store/auto.hpp"
#include "store/types.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

// Of a list of any length so many arrays are transferred before the next ones are looked at: what
// they take stays in the cache.
constexpr std::size_t kTogether = 128;

// What calls need while they are under way, also where the store is gone: whoever gives up the
// engine finds their communicators.
using Callers = std::shared_ptr<std::vector<std::shared_ptr<Caller>>>;

std::shared_ptr<void> kept_by_calls(const Callers& callers, nb::handle memory) {
  return droppable_anywhere(std::pair(nb::borrow(memory), callers));
}

struct PyKey {
  nb::object array;   // its buffer, or its part of a bucket
  nb::object shape;
  Type type;
};

// What is pushed to one key, or pulled from it: of a list that has the key twice, all of it.
struct Entry {
  std::size_t key;
  std::vector<nb::object> values;
};

class PyStore {
 public:
  PyStore(PyEngine& engine, nb::handle arrays, const Communicator& communicator,
          const std::vector<Communicator>& others, std::string_view type, const std::string& op,
          std::size_t outstanding, nb::object plan)
      : engine_(engine.get()),
        of_arrays_(nb::borrow<nb::dict>(arrays.attr("_of_arrays"))),
        variable_of_(arrays.attr("variable_of")),
        callers_(std::make_shared<Callers::element_type>()) {
    graph::Engine& e = *engine_;
    const Op combined = op_from(op);
    if (type == "funnel") {
      store_ = std::make_unique<store::Funnel>(e, communicator, combined, look_for_signals);
      return;   // its calls are made by who pushes: the engine has none to give up
    }
    callers_->push_back(engine.caller(communicator));
    for (const Communicator& other : others) callers_->push_back(engine.caller(other));
    if (type == "depcha") {
      store_ = std::make_unique<store::DepCha>(e, communicator, combined, look_for_signals);
    } else if (type == "concom") {
      store_ = std::make_unique<store::ConCom>(e, communicator, combined, look_for_signals,
                                               store::ConCom::Options{outstanding, others});
    } else {
      store::Auto::Options options{outstanding, [held = droppable_anywhere(std::move(plan))] {
                                     const nb::gil_scoped_acquire locked;
                                     (*held)();
                                   }};
      auto made = std::make_unique<store::Auto>(e, communicator, combined, look_for_signals,
                                                std::move(options));
      auto_ = made.get();
      store_ = std::move(made);
    }
  }

  void add(nb::handle key, std::string name, nb::object array, nb::object shape) {
    const Buffer buffer(array, {"kvstore: init", "value"});
    keys_.push_back({array, std::move(shape), buffer.type()});
    numbers_[key] = store_->add({.name = std::move(name), .type = buffer.type(),
                                 .count = buffer.count(),
                                 .data = static_cast<std::byte*>(buffer.data()),
                                 .keeps = kept_by_calls(callers_, array)});
  }

  // False where something does not fit: nothing has been done then, and Python says what it is.
  bool push(nb::handle keys, nb::handle values, int priority);
  bool pull(nb::handle keys, nb::handle arrays, int priority);
  bool wait(const std::vector<nb::object>& keys);
  void wait_for_all() { store_->wait(); }
  void barrier() { store_->barrier(); }
  void flush() { store_->flush(); }

  // Of auto: what a plan is made of, and the plan.
  std::vector<std::pair<std::size_t, double>> seen() const {
    std::vector<std::pair<std::size_t, double>> found;
    for (const store::Auto::Seen& one : auto_->seen()) found.emplace_back(one.key, one.ready_s);
    return found;
  }
  using PyBucket = std::tuple<std::vector<std::size_t>, nb::object, std::vector<nb::object>,
                              std::size_t>;
  void set_plan(const std::vector<PyBucket>& buckets, std::vector<std::size_t> order);
  PyVariable variable(std::size_t number) const {
    if (number >= keys_.size())
      fail(Fault::internal, "kvstore: there is no key number ", number, " of ", keys_.size(),
           "; init() numbers keys.");
    return {engine_, store_->variable(number)};
  }
  void begin_round() { auto_->begin_round(); }
  void push_bucket(std::size_t number) { auto_->push_bucket(number); }

 private:
  std::optional<std::vector<Entry>> entries(nb::handle keys, nb::handle values) const;
  bool add_entry(std::vector<Entry>& entries, nb::handle key, nb::handle value) const;
  bool open(const PyKey& key, nb::handle value, Buffer& buffer) const;
  graph::Variable variable_of(nb::handle array) const;
  store::Transfer put_of(const Entry& entry, std::vector<Buffer> held) const;
  store::Transfer copy_of(std::size_t key, nb::handle array, Buffer held) const;

  EnginePointer engine_;
  nb::dict of_arrays_;
  nb::object variable_of_;
  Callers callers_;
  nb::dict numbers_;   // of keys
  std::vector<PyKey> keys_;
  mutable std::vector<std::size_t> places_;   // of keys in a list of entries, while one is made
  std::unique_ptr<store::Store> store_;
  store::Auto* auto_ = nullptr;
};

// A number for each key that is known.
std::optional<std::size_t> number_of(const nb::dict& numbers, nb::handle key) {
  PyObject* const found = PyDict_GetItemWithError(numbers.ptr(), key.ptr());
  if (!found) {
    PyErr_Clear();
    return {};
  }
  return nb::cast<std::size_t>(nb::handle(found));
}

bool is_list(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

nb::handle item_of(nb::handle list, std::size_t i) {
  return PySequence_Fast_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i));
}

bool PyStore::add_entry(std::vector<Entry>& entries, nb::handle key, nb::handle value) const {
  const auto number = number_of(numbers_, key);
  if (!number) return false;
  std::size_t& place = places_[*number];
  if (place == 0) {
    entries.push_back({*number, {}});
    place = entries.size();
  }
  std::vector<nb::object>& values = entries[place - 1].values;
  if (!is_list(value)) {
    values.push_back(nb::borrow(value));
    return !value.is_none();
  }
  for (nb::handle one : value) {
    values.push_back(nb::borrow(one));
    if (one.is_none()) return false;
  }
  return nb::len(value) > 0;
}

std::optional<std::vector<Entry>> PyStore::entries(nb::handle keys, nb::handle values) const {
  std::vector<Entry> found;
  places_.resize(keys_.size());
  bool fit = true;
  if (PyLong_Check(keys.ptr()) || PyUnicode_Check(keys.ptr())) {
    fit = add_entry(found, keys, values);
  } else if (is_list(keys) && is_list(values) && nb::len(keys) == nb::len(values)) {
    found.reserve(nb::len(keys));
    for (std::size_t i = 0; fit && i < nb::len(keys); ++i)
      fit = add_entry(found, item_of(keys, i), item_of(values, i));
  } else {
    fit = false;
  }
  for (const Entry& entry : found) places_[entry.key] = 0;
  return fit ? std::optional(std::move(found)) : std::nullopt;
}

// The memory of a value of this key, or nothing where it is not one.
bool PyStore::open(const PyKey& key, nb::handle value, Buffer& buffer) const try {
  static PyObject* const kShape = PyUnicode_InternFromString("shape");
  buffer = Buffer(value, {"kvstore", "value"}, Accepts::devices);
  if (buffer.type() != key.type) return false;
  nb::object shape = nb::steal(PyObject_GetAttr(value.ptr(), kShape));
  if (!shape.is_valid()) {
    PyErr_Clear();
    shape = nb::module_::import_("paceline.buffers").attr("shape_of")(value);
  }
  const int equal = PyObject_RichCompareBool(shape.ptr(), key.shape.ptr(), Py_EQ);
  if (equal < 0) nb::raise_python_error();
  return equal == 1;
} catch (const Error&) {   // Python says what it is, and of which key
  return false;
}

// As Engine.variable_of() of Python finds it, or makes it.
graph::Variable PyStore::variable_of(nb::handle array) const {
  const nb::object id = nb::steal(PyLong_FromVoidPtr(array.ptr()));
  if (PyObject* const known = PyDict_GetItemWithError(of_arrays_.ptr(), id.ptr()))
    if (nb::handle(PyTuple_GET_ITEM(known, 0))().is(array))
      return nb::cast<PyVariable&>(nb::handle(PyTuple_GET_ITEM(known, 1))).variable;
  const nb::object made = variable_of_(array);
  return nb::cast<PyVariable&>(made).variable;
}

// What puts one value, or the sum of several, into the key's buffer.
store::Transfer PyStore::put_of(const Entry& entry, std::vector<Buffer> held) const {
  const PyKey& key = keys_[entry.key];
  store::Transfer transfer;
  std::vector<const void*> from;
  for (std::size_t i = 0; i < held.size(); ++i) {
    from.push_back(held[i].data());
    transfer.values.push_back(variable_of(entry.values[i]));
  }
  transfer.to = store_->data(entry.key);
  const std::size_t count = held.front().count();
  transfer.bytes = count * size_of(key.type);
  if (held.size() == 1 && held.front().device() == kOnHost) {
    transfer.from = from.front();
  } else if (held.size() == 1) {
    transfer.work = device_copy(held.front(), Buffer(key.array, {"kvstore: push", "key"}));
  } else {
    const auto fetched = std::make_shared<Fetched>();
    for (const Buffer& one : held) fetched->add(one);
    transfer.pool = graph::Pool::compute;
    transfer.work = [from, to = transfer.to, count, fetched,
                     reduce = reduce_kernel(key.type, Op::sum)] {
      std::vector<const void*> here = from;
      fetched->fetch(here);   // those on devices come to the host
      reduce(to, here.data(), static_cast<int>(here.size()), count);
      fetched->give_back();
    };
  }
  transfer.keeps = droppable_anywhere(std::move(held));
  return transfer;
}

store::Transfer PyStore::copy_of(std::size_t number, nb::handle array, Buffer held) const {
  const PyKey& key = keys_[number];
  store::Transfer transfer;
  transfer.values.push_back(variable_of(array));
  transfer.from = store_->data(number);
  transfer.to = held.data();
  transfer.bytes = held.count() * size_of(key.type);
  if (held.device() != kOnHost)
    transfer.work = device_copy(Buffer(key.array, {"kvstore: pull", "key"}), held);
  transfer.keeps = droppable_anywhere(std::move(held));
  return transfer;
}

bool PyStore::push(nb::handle keys, nb::handle values, int priority) {
  store::Store::check_priority(priority);
  const auto found = entries(keys, values);
  if (!found) return false;
  std::vector<std::vector<Buffer>> held(found->size());
  std::vector<std::size_t> numbers;
  numbers.reserve(found->size());
  for (std::size_t i = 0; i < found->size(); ++i) {
    const Entry& entry = (*found)[i];
    numbers.push_back(entry.key);
    held[i].resize(entry.values.size());
    for (std::size_t k = 0; k < entry.values.size(); ++k)
      if (!open(keys_[entry.key], entry.values[k], held[i][k])) return false;
  }
  if (auto_) {
    const nb::gil_scoped_release unlocked;
    auto_->expect(numbers);
  }
  std::vector<store::Transfer> transfers;
  transfers.reserve(std::min(kTogether, found->size()));
  for (std::size_t i = 0; i < found->size();) {
    const std::size_t first = i;
    transfers.clear();
    for (; i < std::min(first + kTogether, found->size()); ++i)
      transfers.push_back(put_of((*found)[i], std::move(held[i])));
    const nb::gil_scoped_release unlocked;
    for (std::size_t k = first; k < i; ++k)
      store_->push(numbers[k], transfers[k - first], priority);
  }
  return true;
}

bool PyStore::pull(nb::handle keys, nb::handle arrays, int priority) {
  const auto found = entries(keys, arrays);
  if (!found) return false;
  std::vector<Buffer> held;
  for (const Entry& entry : *found)
    for (const nb::object& array : entry.values) {
      held.emplace_back();
      if (!open(keys_[entry.key], array, held.back()) || held.back().read_only()) return false;
    }
  std::vector<std::size_t> numbers;
  std::vector<store::Transfer> transfers;
  numbers.reserve(std::min(kTogether, held.size()));
  transfers.reserve(std::min(kTogether, held.size()));
  std::size_t done = 0;
  const auto pull_those = [&] {
    {
      const nb::gil_scoped_release unlocked;
      store_->pull(numbers, transfers, priority);
    }
    done += numbers.size();
    numbers.clear();
    transfers.clear();
  };
  for (const Entry& entry : *found)
    for (const nb::object& array : entry.values) {
      transfers.push_back(copy_of(entry.key, array, std::move(held[done + numbers.size()])));
      numbers.push_back(entry.key);
      if (numbers.size() == kTogether) pull_those();
    }
  if (!numbers.empty()) pull_those();
  return true;
}

bool PyStore::wait(const std::vector<nb::object>& keys) {
  std::vector<std::size_t> numbers;
  for (const nb::object& key : keys) {
    const auto number = number_of(numbers_, key);
    if (!number) return false;
    numbers.push_back(*number);
  }
  const nb::gil_scoped_release unlocked;
  store_->wait(numbers);
  return true;
}

void PyStore::set_plan(const std::vector<PyBucket>& buckets, std::vector<std::size_t> order) {
  std::vector<store::Auto::BucketSpec> made;
  for (const auto& [keys, flat, parts, pieces] : buckets) {
    const Buffer buffer(flat, {"kvstore: auto", "bucket"});
    made.push_back({keys, static_cast<std::byte*>(buffer.data()), pieces,
                    kept_by_calls(callers_, flat)});
    for (std::size_t i = 0; i < keys.size(); ++i) keys_[keys[i]].array = parts[i];
  }
  auto_->set_plan(made, std::move(order));
}

}  // namespace

void bind_store(nb::module_& m) {
  nb::class_<PyStore>(m, "Store", "Arrays by key; a user sees paceline.kvstore.")
      .def(nb::init<PyEngine&, nb::handle, const Communicator&, const std::vector<Communicator>&,
                    std::string_view, const std::string&, std::size_t, nb::object>(),
           "engine"_a, "arrays"_a, "communicator"_a, "others"_a, "type"_a, "op"_a,
           "outstanding"_a, "plan"_a.none())
      .def("add", &PyStore::add, "key"_a, "name"_a, "array"_a, "shape"_a)
      .def("variable", &PyStore::variable, "number"_a)
      .def("push", &PyStore::push, "keys"_a.none(), "values"_a.none(), "priority"_a,
           "False where something does not fit: nothing has been done then.")
      .def("pull", &PyStore::pull, "keys"_a.none(), "arrays"_a.none(), "priority"_a,
           "False where something does not fit: nothing has been done then.")
      .def("wait", &PyStore::wait, "keys"_a, "Whether all keys are known; else it does not wait.")
      .def("wait_for_all", &PyStore::wait_for_all, nb::call_guard<nb::gil_scoped_release>())
      .def("barrier", &PyStore::barrier, nb::call_guard<nb::gil_scoped_release>())
      .def("flush", &PyStore::flush, nb::call_guard<nb::gil_scoped_release>())
      .def("seen", &PyStore::seen)
      .def("set_plan", &PyStore::set_plan, "buckets"_a, "order"_a)
      .def("begin_round", &PyStore::begin_round, nb::call_guard<nb::gil_scoped_release>())
      .def("push_bucket", &PyStore::push_bucket, "number"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Of the plan; its keys' buffers hold the values, and nothing is under way for them.");
}

}  // namespace paceline::binding
