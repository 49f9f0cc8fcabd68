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

// Arrays of a list that are transferred before the next ones are looked at: they stay in the
// cache.
constexpr std::size_t kTogether = 128;

// Communicators of calls under way, kept also after the store is gone: giving up the engine
// reaches them.
using Callers = std::shared_ptr<std::vector<std::shared_ptr<Caller>>>;

std::shared_ptr<void> kept_by_calls(const Callers& callers, nb::handle memory) {
  return droppable_anywhere(std::pair(nb::borrow(memory), callers));
}

struct PyKey {
  nb::object array;   // its buffer, or its part of a bucket
  nb::object shape;
  std::vector<Py_ssize_t> lengths;   // the same
  Type type;
};

// The values pushed to one key, or pulled from it; all of them if a list has the key twice.
struct Entry {
  std::size_t key;
  std::size_t first, count;   // of the list's arrays
};

struct Entries {
  std::vector<Entry> of_keys;
  std::vector<nb::object> arrays;
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
      return;   // pushing threads make its calls: the engine has none to give up
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
    auto lengths = nb::cast<std::vector<Py_ssize_t>>(shape);
    keys_.push_back({array, std::move(shape), std::move(lengths), buffer.type()});
    numbers_[key] = store_->add({.name = std::move(name), .type = buffer.type(),
                                 .count = buffer.count(),
                                 .data = static_cast<std::byte*>(buffer.data()),
                                 .keeps = kept_by_calls(callers_, array)});
  }

  // False if something does not fit: nothing has been done then, and Python says what it is.
  bool push(nb::handle keys, nb::handle values, int priority);
  bool pull(nb::handle keys, nb::handle arrays, int priority);
  bool wait(const std::vector<nb::object>& keys);
  void wait_for_all() { store_->wait(); }
  void barrier() { store_->barrier(); }
  void flush() { store_->flush(); }

  // For type auto: the input of a plan, and the plan.
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
  std::optional<Entries> entries(nb::handle keys, nb::handle values) const;
  bool add_entry(Entries& entries, nb::handle key, nb::handle value) const;
  bool open(const PyKey& key, nb::handle value, Buffer& buffer) const;
  graph::Variable variable_of(nb::handle array) const;
  store::Transfer put_of(const Entry& entry, const nb::object* arrays, const Buffer* held) const;
  store::Transfer copy_of(std::size_t key, nb::handle array, const Buffer& held) const;

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

bool PyStore::add_entry(Entries& entries, nb::handle key, nb::handle value) const {
  const auto number = number_of(numbers_, key);
  if (!number) return false;
  std::size_t& place = places_[*number];
  if (place == 0) {
    entries.of_keys.push_back({*number, entries.arrays.size(), 0});
    place = entries.of_keys.size();
  }
  const auto add = [&, &entry = entries.of_keys[place - 1]](nb::handle one) {
    const auto end = static_cast<std::ptrdiff_t>(entry.first + entry.count++);
    entries.arrays.insert(entries.arrays.begin() + end, nb::borrow(one));
    for (std::size_t i = place; i < entries.of_keys.size(); ++i) ++entries.of_keys[i].first;
    return !one.is_none();
  };
  if (!is_list(value)) return add(value);
  for (nb::handle one : value)
    if (!add(one)) return false;
  return nb::len(value) > 0;
}

std::optional<Entries> PyStore::entries(nb::handle keys, nb::handle values) const {
  Entries found;
  places_.resize(keys_.size());
  bool fit = false;
  if (PyLong_Check(keys.ptr()) || PyUnicode_Check(keys.ptr())) {
    fit = add_entry(found, keys, values);
  } else if (is_list(keys) && is_list(values) && nb::len(keys) == nb::len(values)) {
    fit = true;
    found.of_keys.reserve(nb::len(keys));
    found.arrays.reserve(nb::len(keys));
    for (std::size_t i = 0; fit && i < nb::len(keys); ++i)
      fit = add_entry(found, item_of(keys, i), item_of(values, i));
  }
  for (const Entry& entry : found.of_keys) places_[entry.key] = 0;
  return fit ? std::optional(std::move(found)) : std::nullopt;
}

// Opens the memory of a value of this key; false if it is not one.
bool PyStore::open(const PyKey& key, nb::handle value, Buffer& buffer) const try {
  static PyObject* const kShape = PyUnicode_InternFromString("shape");
  buffer = Buffer(value, {"kvstore", "value"}, Accepts::devices);
  if (buffer.type() != key.type) return false;
  if (const auto lengths = buffer.lengths()) return std::ranges::equal(*lengths, key.lengths);
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

bool refers_to(nb::handle reference, nb::handle object) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* referent = nullptr;
  if (PyWeakref_GetRef(reference.ptr(), &referent) < 0) nb::raise_python_error();
  return nb::steal(referent).is(object);
#else
  return PyWeakref_GetObject(reference.ptr()) == object.ptr();
#endif
}

// Finds or makes the variable as Engine.variable_of() of Python does.
graph::Variable PyStore::variable_of(nb::handle array) const {
  const nb::object id = nb::steal(PyLong_FromVoidPtr(array.ptr()));
  if (PyObject* const known = PyDict_GetItemWithError(of_arrays_.ptr(), id.ptr()))
    if (refers_to(PyTuple_GET_ITEM(known, 0), array))
      return nb::inst_ptr<PyVariable>(PyTuple_GET_ITEM(known, 1))->variable;
  return nb::cast<PyVariable&>(variable_of_(array)).variable;
}

// Returns the transfer that puts one value, or the sum of several, into the key's buffer.
store::Transfer PyStore::put_of(const Entry& entry, const nb::object* arrays,
                                const Buffer* held) const {
  const PyKey& key = keys_[entry.key];
  store::Transfer transfer;
  for (std::size_t i = 0; i < entry.count; ++i) transfer.values.push_back(variable_of(arrays[i]));
  transfer.to = store_->data(entry.key);
  const std::size_t count = held->count();
  transfer.bytes = count * size_of(key.type);
  if (entry.count == 1 && held->device() == kOnHost) {
    transfer.from = held->data();
  } else if (entry.count == 1) {
    transfer.work = device_copy(*held, Buffer(key.array, {"kvstore: push", "key"}));
  } else {
    const auto fetched = std::make_shared<Fetched>();
    std::vector<const void*> from;
    for (std::size_t i = 0; i < entry.count; ++i) {
      from.push_back(held[i].data());
      fetched->add(held[i]);
    }
    transfer.pool = graph::Pool::compute;
    transfer.work = [from, to = transfer.to, count, fetched,
                     reduce = reduce_kernel(key.type, Op::sum)] {
      std::vector<const void*> here = from;
      fetched->fetch(here);   // those on devices come to the host
      reduce(to, here.data(), static_cast<int>(here.size()), count);
      fetched->give_back();
    };
  }
  return transfer;
}

store::Transfer PyStore::copy_of(std::size_t number, nb::handle array, const Buffer& held) const {
  const PyKey& key = keys_[number];
  store::Transfer transfer;
  transfer.values.push_back(variable_of(array));
  transfer.from = store_->data(number);
  transfer.to = held.data();
  transfer.bytes = held.count() * size_of(key.type);
  if (held.device() != kOnHost)
    transfer.work = device_copy(Buffer(key.array, {"kvstore: pull", "key"}), held);
  return transfer;
}

bool PyStore::push(nb::handle keys, nb::handle values, int priority) {
  store::Store::check_priority(priority);
  const auto found = entries(keys, values);
  if (!found) return false;
  const std::vector<Entry>& of_keys = found->of_keys;
  std::vector<Buffer> held(found->arrays.size());
  std::vector<std::size_t> numbers;
  numbers.reserve(of_keys.size());
  for (const Entry& entry : of_keys) {
    numbers.push_back(entry.key);
    for (std::size_t i = entry.first; i < entry.first + entry.count; ++i)
      if (!open(keys_[entry.key], found->arrays[i], held[i])) return false;
  }
  if (auto_) {
    const nb::gil_scoped_release unlocked;
    auto_->expect(numbers);
  }
  const Buffer* const buffers = held.data();
  const std::shared_ptr<void> all = droppable_anywhere(std::move(held));
  std::vector<store::Transfer> transfers;
  transfers.reserve(std::min(kTogether, of_keys.size()));
  for (std::size_t first = 0; first < of_keys.size(); first += transfers.size()) {
    transfers.clear();
    for (std::size_t i = first; i < std::min(first + kTogether, of_keys.size()); ++i) {
      const std::size_t at = of_keys[i].first;
      transfers.push_back(put_of(of_keys[i], &found->arrays[at], buffers + at));
      transfers.back().keeps = all;
    }
    const nb::gil_scoped_release unlocked;
    store_->push(&numbers[first], transfers.data(), transfers.size(), priority);
  }
  return true;
}

bool PyStore::pull(nb::handle keys, nb::handle arrays, int priority) {
  const auto found = entries(keys, arrays);
  if (!found) return false;
  std::vector<Buffer> held(found->arrays.size());
  std::vector<std::size_t> keys_of_arrays;
  keys_of_arrays.reserve(held.size());
  for (const Entry& entry : found->of_keys)
    for (std::size_t i = entry.first; i < entry.first + entry.count; ++i) {
      keys_of_arrays.push_back(entry.key);
      if (!open(keys_[entry.key], found->arrays[i], held[i]) || held[i].read_only()) return false;
    }
  const Buffer* const buffers = held.data();
  const std::shared_ptr<void> all = droppable_anywhere(std::move(held));
  std::vector<std::size_t> numbers;
  std::vector<store::Transfer> transfers;
  transfers.reserve(std::min(kTogether, keys_of_arrays.size()));
  for (std::size_t first = 0; first < keys_of_arrays.size(); first += numbers.size()) {
    const std::size_t end = std::min(first + kTogether, keys_of_arrays.size());
    numbers.assign(&keys_of_arrays[first], keys_of_arrays.data() + end);
    transfers.clear();
    for (std::size_t i = first; i < end; ++i) {
      transfers.push_back(copy_of(keys_of_arrays[i], found->arrays[i], buffers[i]));
      transfers.back().keeps = all;
    }
    const nb::gil_scoped_release unlocked;
    store_->pull(numbers, transfers, priority);
  }
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
  nb::class_<PyStore>(m, "Store", "Arrays by key, for paceline.kvstore.")
      .def(nb::init<PyEngine&, nb::handle, const Communicator&, const std::vector<Communicator>&,
                    std::string_view, const std::string&, std::size_t, nb::object>(),
           "engine"_a, "arrays"_a, "communicator"_a, "others"_a, "type"_a, "op"_a,
           "outstanding"_a, "plan"_a.none())
      .def("add", &PyStore::add, "key"_a, "name"_a, "array"_a, "shape"_a)
      .def("variable", &PyStore::variable, "number"_a)
      .def("push", &PyStore::push, "keys"_a.none(), "values"_a.none(), "priority"_a,
           "Returns False, and does nothing, if an argument does not fit.")
      .def("pull", &PyStore::pull, "keys"_a.none(), "arrays"_a.none(), "priority"_a,
           "Returns False, and does nothing, if an argument does not fit.")
      .def("wait", &PyStore::wait, "keys"_a, "Returns False, without waiting, if a key is unknown.")
      .def("wait_for_all", &PyStore::wait_for_all, nb::call_guard<nb::gil_scoped_release>())
      .def("barrier", &PyStore::barrier, nb::call_guard<nb::gil_scoped_release>())
      .def("flush", &PyStore::flush, nb::call_guard<nb::gil_scoped_release>())
      .def("seen", &PyStore::seen)
      .def("set_plan", &PyStore::set_plan, "buckets"_a, "order"_a)
      .def("begin_round", &PyStore::begin_round, nb::call_guard<nb::gil_scoped_release>())
      .def("push_bucket", &PyStore::push_bucket, "number"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "Pushes a bucket of the plan. Its values lie in its keys' buffers; none is under way.");
}

}  // namespace paceline::binding
