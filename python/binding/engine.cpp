// The dependency engine for Python; a user sees python/paceline/engine.py.
#include "graph/engine.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "base/error.hpp"
#include "binding.hpp"
#include "engine.hpp"
#include "kernels/kernels.hpp"
#include "on_device.hpp"
#include "pending.hpp"
#include "tasks/collective.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

// Arrays up to this size are copied in less time than it takes to wake a thread.
constexpr std::size_t kShortBytes = 32u << 10;

// An exception of a Python task, kept for the threads that wait for it.
class PythonFailure : public std::exception {
 public:
  explicit PythonFailure(const nb::python_error& error)
      : value_(droppable_anywhere(nb::borrow(error.value()))),
        text_(str(Py_TYPE(value_->ptr())->tp_name, ": ", nb::str(*value_).c_str())) {}
  const char* what() const noexcept override { return text_.c_str(); }
  // Raises a copy if one can be made. A raised exception holds the frames that it came through,
  // and these may hold the task, which holds this exception: a cycle that is never freed.
  void raise() const {
    nb::object raised = *value_;
    try {
      raised = nb::module_::import_("paceline.engine").attr("_copy_of")(*value_);
    } catch (const nb::python_error&) {   // the interpreter ends
    }
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  }

 private:
  std::shared_ptr<nb::object> value_;
  std::string text_;
};

// Callable of a Python task, and its result.
struct Function {
  nb::object call;
  nb::object result;
};

struct PyTask {
  EnginePointer engine;
  graph::Task task;
  std::shared_ptr<Function> function;   // of a Python task
  std::shared_ptr<nb::object> result;   // of a native one
};

// Settings that all kinds of tasks have.
struct Spec {
  const std::vector<PyVariable*>& read;
  const std::vector<PyVariable*>& write;
  int priority;
  std::string name;
};

graph::Pool pool_from(std::string_view name) {
  if (name == "compute") return graph::Pool::compute;
  if (name == "copy") return graph::Pool::copy;
  if (name == "communication") return graph::Pool::communication;
  fail(Fault::usage, "engine: there is no pool '", name, "'; pools are compute, copy and ",
       "communication.");
}

graph::TaskSpec spec_from(const Spec& from) {
  graph::TaskSpec spec{.name = from.name, .priority = from.priority};
  for (const PyVariable* variable : from.read) spec.read.push_back(variable->variable);
  for (const PyVariable* variable : from.write) spec.write.push_back(variable->variable);
  return spec;
}

PyTask push(PyEngine& self, nb::object function, const std::vector<PyVariable*>& read,
            const std::vector<PyVariable*>& write, int priority, std::string_view pool,
            std::string name) {
  graph::TaskSpec spec = spec_from({read, write, priority, std::move(name)});
  spec.pool = pool_from(pool);
  auto held = droppable_anywhere(Function{std::move(function), nb::none()});
  const auto work = [held] {
    const nb::gil_scoped_acquire locked;
    const nb::object call = std::move(held->call);   // what it has captured goes with it
    try {
      held->result = call();
    } catch (const nb::python_error& error) {
      throw PythonFailure(error);
    }
  };
  spec.keeps = held;   // one that is skipped drops its function without the engine's lock
  const nb::gil_scoped_release unlocked;
  return {self.get(), self.get()->push(work, std::move(spec)), held, nullptr};
}

// The same elements of the same type, apart from each other.
void check_alike(const char* call, const Buffer& source, const Buffer& target) {
  if (source.count() != target.count() || source.type() != target.type())
    fail(Fault::usage, call, ": the source has ", source.count(), " ", name_of(source.type()),
         ", the target ", target.count(), " ", name_of(target.type()),
         "; both must have the same length and type.");
  if (target.read_only()) fail(Fault::usage, call, ": the target is read-only.");
}

PyTask copy(PyEngine& self, nb::handle source, nb::handle target,
            const std::vector<PyVariable*>& read, const std::vector<PyVariable*>& write,
            int priority, std::string name) {
  auto kept = droppable_anywhere(
      Kept{Buffer(source, {"copy", "source"}, Accepts::devices),
           Buffer(target, {"copy", "target"}, Accepts::devices)});
  check_alike("copy", kept->input, kept->output);
  graph::TaskSpec spec = spec_from({read, write, priority, std::move(name)});
  spec.pool = graph::Pool::copy;
  spec.keeps = kept;
  const std::size_t bytes = kept->input.count() * size_of(kept->input.type());
  const bool on_host = kept->input.device() == kOnHost && kept->output.device() == kOnHost;
  spec.at_once = on_host && bytes <= kShortBytes;
  std::function<void()> work = [from = kept->input.data(), to = kept->output.data(), bytes] {
    if (bytes > 0) std::memmove(to, from, bytes);
  };
  if (!on_host)
    work = device_copy(kept->input, kept->output);
  auto result = droppable_anywhere(nb::borrow(target));
  const nb::gil_scoped_release unlocked;
  return {self.get(), self.get()->push(work, std::move(spec)), nullptr, std::move(result)};
}

// Refuses what copy() and combine() would refuse of an array, for callers with several arrays.
void check_array(nb::handle array, std::string_view call, bool is_written) {
  const Buffer buffer(array, {call, "value"}, Accepts::devices);
  if (is_written && buffer.read_only())
    fail(Fault::usage, call, ": the value is read-only, and would be written.");
}

// target = sources[0] op sources[1] op ...; the target may be one of the sources.
PyTask combine(PyEngine& self, const std::vector<nb::handle>& sources, nb::handle target,
               const std::string& op, const std::vector<PyVariable*>& read,
               const std::vector<PyVariable*>& write, int priority, std::string name) {
  if (sources.empty()) fail(Fault::usage, "combine: there are no sources; pass at least one.");
  std::vector<Buffer> held;
  held.emplace_back(target, Where{"combine", "target"});
  std::vector<const void*> from;
  for (const nb::handle source : sources) {
    held.emplace_back(source, Where{"combine", "source"}, Accepts::devices);
    check_alike("combine", held.back(), held.front());
    from.push_back(held.back().data());
  }
  const auto fetched = std::make_shared<Fetched>();
  for (std::size_t k = 1; k < held.size(); ++k) fetched->add(held[k]);
  const Buffer& to = held.front();
  const Reduce reduce = reduce_kernel(to.type(), op_from(op));
  graph::TaskSpec spec = spec_from({read, write, priority, std::move(name)});
  const auto work = [from, data = to.data(), count = to.count(), reduce, fetched] {
    std::vector<const void*> here = from;
    fetched->fetch(here);   // those on devices come to the host
    reduce(data, here.data(), static_cast<int>(here.size()), count);
    fetched->give_back();
  };
  spec.keeps = droppable_anywhere(std::move(held));
  auto result = droppable_anywhere(nb::borrow(target));
  const nb::gil_scoped_release unlocked;
  return {self.get(), self.get()->push(work, std::move(spec)), nullptr, std::move(result)};
}

// The calls of a communicator in an engine.
struct PyCalls {
  EnginePointer engine;
  std::shared_ptr<Caller> caller;
  tasks::Calls calls;
};

PyTask call(PyCalls& self, std::string_view collective, nb::handle input, nb::handle output,
            nb::handle op, nb::handle root, nb::handle counts, nb::handle received,
            nb::handle knobs, nb::object result, const std::vector<PyVariable*>& read,
            const std::vector<PyVariable*>& write, int priority, std::string name) {
  Kept kept;
  const Call made = call_from({collective, input, output, op, root, counts, received, knobs},
                              {self.caller->communicator.rank(),
                               self.caller->communicator.size()}, kept);
  graph::TaskSpec spec = spec_from({read, write, priority, std::move(name)});
  spec.keeps = droppable_anywhere(std::pair(std::move(kept), self.caller));
  auto held = droppable_anywhere(std::move(result));
  const nb::gil_scoped_release unlocked;
  return {self.engine, self.calls.push(made, std::move(spec)), nullptr, std::move(held)};
}

nb::object result_of(const PyTask& task) {
  if (task.function) return task.function->result;
  return task.result ? *task.result : nb::none();
}

nb::object wait_for_task(PyTask& self) {
  {
    const nb::gil_scoped_release unlocked;
    self.engine->wait(self.task, look_for_signals);
  }
  return result_of(self);
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PythonFailure& failure) {
    failure.raise();
  }
}

void bind_tasks(nb::module_& m) {
  nb::class_<PyVariable>(m, "Variable", "A value that tasks read and write.")
      .def_prop_ro("name", [](const PyVariable& self) { return self.variable->name; })
      .def("wait", [](PyVariable& self) {
        self.engine->wait(self.variable, look_for_signals);
      }, nb::call_guard<nb::gil_scoped_release>(),
           "Returns when all tasks pushed so far that write it are complete. Raises their error.");
  nb::class_<PyTask>(m, "Task", "A piece of work of an engine.")
      .def("wait", wait_for_task,
           "Returns the task's result once it is complete: the return value of its function, or\n"
           "the array that it wrote. Raises its error, or that of a task on which it depends.")
      .def("cancel", [](PyTask& self) { return self.engine->cancel(self.task); },
           nb::call_guard<nb::gil_scoped_release>(),
           "Cancels the task. Returns False if it has begun. Tasks that depend on it fail.")
      .def_prop_ro("done", [](const PyTask& self) {
        const nb::gil_scoped_release unlocked;
        return self.engine->is_complete(self.task);
      }, "True if the task is complete; it may have failed.");
}

}  // namespace

void bind_engine(nb::module_& m) {
  nb::register_exception_translator(translate);
  bind_tasks(m);
  m.def("check_array", check_array, "array"_a, "call"_a, "is_written"_a);
  nb::class_<PyEngine>(m, "Engine", "Runs tasks in the order that their reads and writes allow.")
      .def(nb::init<int, int, int>(), "compute"_a, "copy"_a, "communication"_a)
      .def("variable", [](PyEngine& self, std::string name) {
        return PyVariable{self.get(), self.get()->variable(std::move(name))};
      }, "name"_a)
      .def("push", push, "function"_a, "read"_a, "write"_a, "priority"_a, "pool"_a, "name"_a)
      .def("copy", copy, "source"_a, "target"_a, "read"_a, "write"_a, "priority"_a, "name"_a)
      .def("combine", combine, "sources"_a, "target"_a, "op"_a, "read"_a, "write"_a, "priority"_a,
           "name"_a)
      .def("calls", [](PyEngine& self, const Communicator& communicator) {
        return new PyCalls{self.get(), self.caller(communicator),
                           tasks::Calls(*self.get(), communicator)};
      }, "communicator"_a)
      .def("wait", [](PyEngine& self) { self.get()->wait_all(look_for_signals); },
           nb::call_guard<nb::gil_scoped_release>())
      .def("cancel", [](PyEngine& self) { self.get()->cancel_all(); },
           nb::call_guard<nb::gil_scoped_release>())
      .def("give_up", &PyEngine::give_up, "why"_a)
      .def("settles", [](PyEngine& self, int milliseconds) {
        return self.get()->settles(std::chrono::milliseconds(milliseconds), look_for_signals);
      }, "milliseconds"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("close", [](PyEngine& self) { self.get()->close(look_for_signals); },
           nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("is_here", [](const PyEngine& self) { return self.get()->is_here(); })
      .def_prop_ro("is_closed", [](const PyEngine& self) {
        const nb::gil_scoped_release unlocked;
        return self.get()->is_closed();
      })
      .def_prop_ro("unfinished", [](const PyEngine& self) {
        const nb::gil_scoped_release unlocked;
        return self.get()->unfinished();
      });
  nb::class_<PyCalls>(m, "Calls", "The calls of a communicator in an engine.")
      .def("push", call, "collective"_a, "input"_a.none(), "output"_a.none(), "op"_a.none(),
           "root"_a.none(), "counts"_a.none(), "received"_a.none(), "knobs"_a.none(),
           "result"_a.none(), "read"_a, "write"_a, "priority"_a, "name"_a);
}

}  // namespace paceline::binding
