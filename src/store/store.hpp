// Store: arrays by key on every rank of a communicator, combined over all of them by tasks.
//
// A key has a buffer on every rank. push() copies a value into it, or combines several, and has the
// ranks' buffers combined in place; pull() copies it back. Both return at once, except for types
// whose comment says otherwise (store/types.hpp). All ranks push the same keys in the same order.
// One thread at a time may call. The next wait for a key throws what went wrong in its tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/engine.hpp"
#include "runtime/communicator.hpp"
#include "tasks/collective.hpp"

namespace paceline::store {

// A copy of an array of the program into a key's buffer (push), or back (pull). It is no message:
// transport/transport.hpp has those under the same name.
struct Transfer {
  std::vector<graph::Variable> values = {};   // of the array, or of the arrays that are combined
  const void* from = nullptr;                 // a plain copy of so many bytes,
  void* to = nullptr;
  std::size_t bytes = 0;
  std::function<void()> work = {};            // or this instead, such as a sum of several arrays
  std::shared_ptr<void> keeps = {};           // the arrays, until it has run
  graph::Pool pool = graph::Pool::copy;       // of its task in a push
  bool is_done = false;                       // the store's own: it has run, without a task

  void run() const;
  bool is_short() const { return !work && bytes <= kShort; }
  static constexpr std::size_t kShort = 32u << 10;   // bytes; to wake a thread takes longer
};

// Properties of a key that do not change.
struct KeySpec {
  std::string name;   // also the tag of its calls
  Type type = Type::f32;
  std::size_t count = 0;
  std::byte* data = nullptr;
  std::shared_ptr<void> keeps = {};   // the memory, and whatever else calls on it need
};

class Store {
 public:
  // `idle`: as graph::Engine::Idle, for all waits of this store.
  Store(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle);
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  std::size_t add(KeySpec spec);   // keys are numbered from 0 on
  std::byte* data(std::size_t key) const { return keys_[key].spec.data; }
  // Variable of the key's buffer: tasks that read it come after the calls made by then.
  const graph::Variable& variable(std::size_t key) const { return keys_[key].buffer; }

  // Before each push of these keys, and before data() of them is asked for: their buffers may move.
  virtual void expect(const std::vector<std::size_t>& /*keys*/) {}
  // Throws a usage error for a priority that no call can have.
  static void check_priority(int priority);
  // One value for each key, no key twice. A transfer that needs no task keeps what it holds.
  void push(const std::size_t* keys, Transfer* values, std::size_t count, int priority);
  // Copies keys into arrays, those of neighbours that come together in one task.
  void pull(const std::vector<std::size_t>& keys, std::vector<Transfer>& arrays, int priority);
  // Makes the calls that pushed values still wait for; on all ranks at the same place.
  virtual void flush() {}
  void wait(const std::vector<std::size_t>& keys);   // of these keys alone; throws what went wrong
  void wait();              // of all keys
  virtual void barrier();   // the same, then waits until all ranks are here

 protected:
  struct Key {
    KeySpec spec;
    graph::Variable buffer;
    std::vector<graph::Task> pulls = {};   // since the last wait; some may be complete
  };

  // A push of one key: puts the value into its buffer and makes the call that combines the ranks'.
  virtual void exchange(std::size_t key, Transfer& value, int priority) = 0;
  void meet();   // returns when all ranks are here
  virtual bool help(int /*milliseconds*/) { return false; }   // tasks::Calls::help()
  // Keys that are exchanged by one call have one number, others have -1.
  virtual int bucket_of(std::size_t /*key*/) const { return -1; }
  virtual Communicator& communicator_of(std::size_t /*key*/) { return communicator_; }
  // Before a pull of these keys: calls that it would wait for have to be made.
  virtual void pull_comes(const std::vector<std::size_t>& /*keys*/) {}
  // True if its buffer holds a value that no call has been made for.
  virtual bool is_held_back(std::size_t /*key*/) const { return false; }

  // Runs the transfer into the key's buffer: now if it is short and nothing is in its way, else as
  // a task. Nothing if it is_done.
  void put(std::size_t key, Transfer& value, int priority);
  // The same, and waits; if that fails, it breaks the communicator, since peers would wait for the
  // call, and throws.
  void put_and_wait(std::size_t key, Transfer& value, int priority);
  Call allreduce(std::byte* data, std::size_t count, Type type, const std::string& name,
                 int priority) const;
  Call allreduce(const Key& key, int priority) const;

  graph::Engine& engine_;
  Communicator communicator_;
  std::vector<Key> keys_;

 private:
  bool are_at_rest();   // all keys: nothing is under way, and nothing has failed
  void wait_for(Key& key);
  std::size_t put_together(const std::size_t* keys, Transfer* values, std::size_t count);
  void start_pull(const std::size_t* keys, std::size_t count, Transfer* arrays, int priority);

  const Op op_;
  const graph::Engine::Idle idle_;
  std::vector<graph::Variable> buffers_;   // of all keys
};

}  // namespace paceline::store
