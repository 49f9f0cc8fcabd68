#include "store/store.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/str.hpp"
#include "base/thrown.hpp"
#include "runtime/fingerprint.hpp"

namespace paceline::store {
namespace {

constexpr int kHelpMs = 1;       // the longest wait in one call of help()
constexpr int kVainHelps = 20;   // in a row: then a peer is late, and the progress thread will do

}  // namespace

void Transfer::run() const {
  if (work) return work();
  if (bytes > 0 && from != to) std::memmove(to, from, bytes);
}

Store::Store(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle)
    : engine_(engine), communicator_(std::move(communicator)), op_(op), idle_(idle) {}

std::size_t Store::add(KeySpec spec) {
  graph::Variable buffer = engine_.variable(spec.name);
  buffers_.push_back(buffer);
  keys_.push_back({std::move(spec), std::move(buffer)});
  return keys_.size() - 1;
}

void Store::check_priority(int priority) {
  if (priority < kLeastUrgent || priority > kMostUrgent)
    fail(Fault::usage, "kvstore: push: priority is ", priority, "; it must be from ", kLeastUrgent,
         " to ", kMostUrgent, ".");
}

void Store::push(const std::size_t* keys, Transfer* values, std::size_t count, int priority) {
  for (std::size_t i = 0; i < count;)
    for (const std::size_t end = i + put_together(keys + i, values + i, count - i); i < end; ++i)
      exchange(keys[i], values[i], priority);
}

// Returns the number of first values that were looked at together, at least 1. Short values of keys
// for which nothing is under way are put here after one look at the engine for all of them: a look
// costs as much as a copy.
std::size_t Store::put_together(const std::size_t* keys, Transfer* values, std::size_t count) {
  std::vector<graph::Variable> read, written;
  std::size_t together = 0;
  for (std::size_t bytes = 0; together < count; ++together) {
    const Transfer& value = values[together];
    bytes += value.bytes;
    if (value.work || bytes > Transfer::kShort || is_held_back(keys[together])) break;
    std::ranges::copy(value.values, std::back_inserter(read));
    written.push_back(keys_[keys[together]].buffer);
  }
  if (together < 2) return 1;
  const bool done = engine_.do_now(read, written, [&] {
    for (std::size_t i = 0; i < together; ++i) values[i].run();
  });
  for (std::size_t i = 0; i < together; ++i) values[i].is_done = done;
  return together;
}

void Store::put(std::size_t key, Transfer& value, int priority) {
  if (value.is_done) return;
  const std::vector<graph::Variable> target{keys_[key].buffer};
  if (value.is_short() &&
      engine_.do_now(value.values, target, [&] { value.run(); }))
    return;
  graph::TaskSpec spec{.name = "local sum of " + keys_[key].spec.name,
                       .read = std::move(value.values), .write = target, .priority = priority};
  spec.pool = value.pool;
  spec.at_once = value.is_short();
  spec.keeps = std::exchange(value.keeps, nullptr);
  engine_.push([value = std::move(value)] { value.run(); }, std::move(spec));
}

void Store::put_and_wait(std::size_t key, Transfer& value, int priority) {
  put(key, value, priority);
  try {
    engine_.wait(keys_[key].buffer, idle_);
  } catch (...) {
    communicator_of(key).abort(
        str("does not make its call allreduce '", keys_[key].spec.name,
            "', since an operand failed: ", text_of(std::current_exception())));
    throw;
  }
}

Call Store::allreduce(std::byte* data, std::size_t count, Type type, const std::string& name,
                      int priority) const {
  Call call;
  call.collective = Collective::allreduce;
  call.type = type;
  call.op = op_;
  call.input = call.output = data;
  call.count = count;
  call.label = name;
  call.tag = tag_of(name);
  call.priority = priority;
  return call;
}

Call Store::allreduce(const Key& key, int priority) const {
  return allreduce(key.spec.data, key.spec.count, key.spec.type, key.spec.name, priority);
}

void Store::pull(const std::vector<std::size_t>& keys, std::vector<Transfer>& arrays,
                 int priority) {
  pull_comes(keys);
  for (std::size_t i = 0, end = 0; i < keys.size(); i = end) {
    std::size_t bytes = arrays[i].bytes;
    const int bucket = arrays[i].is_short() ? bucket_of(keys[i]) : -1;
    for (end = i + 1; end < keys.size() && bucket >= 0 && bucket_of(keys[end]) == bucket; ++end) {
      bytes += arrays[end].bytes;
      if (arrays[end].work || bytes > Transfer::kShort) break;
    }
    start_pull(&keys[i], end - i, &arrays[i], priority);
  }
}

void Store::start_pull(const std::size_t* keys, std::size_t count, Transfer* arrays,
                       int priority) {
  graph::TaskSpec spec{.name = "pull of " + keys_[keys[0]].spec.name, .priority = priority,
                       .pool = graph::Pool::copy};
  std::vector<std::shared_ptr<void>> keeps;
  spec.at_once = true;
  for (std::size_t i = 0; i < count; ++i) {
    spec.read.push_back(keys_[keys[i]].buffer);
    std::ranges::copy(arrays[i].values, std::back_inserter(spec.write));
    spec.at_once &= arrays[i].is_short();
  }
  const auto work = [&] { std::for_each_n(arrays, count, [](const auto& one) { one.run(); }); };
  if (spec.at_once && engine_.do_now(spec.read, spec.write, work)) return;
  for (std::size_t i = 0; i < count; ++i)
    keeps.push_back(std::exchange(arrays[i].keeps, nullptr));
  std::vector<Transfer> all(std::make_move_iterator(arrays),
                            std::make_move_iterator(arrays + count));
  spec.keeps = std::make_shared<decltype(keeps)>(std::move(keeps));
  const graph::Task task = engine_.push(
      [all = std::move(all)] {
        for (const Transfer& one : all) one.run();
      },
      std::move(spec));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<graph::Task>& pulls = keys_[keys[i]].pulls;
    std::erase_if(pulls, [&](const graph::Task& pull) { return engine_.is_complete(pull); });
    pulls.push_back(task);
  }
}

// The thread that waits drives the calls: no other one has to be woken for each of them. It had
// better sleep while none of them ends.
void Store::wait_for(Key& key) {
  const std::vector<graph::Variable> own{key.buffer};
  std::size_t left = engine_.unfinished();
  for (int vain = 0; vain < kVainHelps && !engine_.do_now(own, {}, [] {}) && help(kHelpMs);) {
    const std::size_t before = std::exchange(left, engine_.unfinished());
    vain = left == before ? vain + 1 : 0;
  }
  // An error is thrown once: pulls that are over, and may have failed for the same reason, are not
  // waited for again. Ctrl-C ends the wait, and those under way stay.
  try {
    engine_.wait(key.buffer, idle_);
    for (const graph::Task& pull : key.pulls) engine_.wait(pull, idle_);
    key.pulls.clear();
  } catch (...) {
    std::erase_if(key.pulls, [&](const graph::Task& pull) { return engine_.is_complete(pull); });
    throw;
  }
}

void Store::wait(const std::vector<std::size_t>& keys) {
  flush();
  for (std::size_t key : keys) wait_for(keys_[key]);
}

// One look at the engine for all keys, in the place of two for each.
bool Store::are_at_rest() {
  return std::ranges::all_of(keys_, [](const Key& key) { return key.pulls.empty(); }) &&
         engine_.do_now(buffers_, {}, [] {});
}

// Keys that are exchanged together come to rest together. Looks that find nothing cost little:
// there are few.
void Store::wait() {
  flush();
  for (std::size_t i = 0, look = 0; i < keys_.size(); ++i) {
    if (i == look) {
      if (are_at_rest()) return;
      look = std::max<std::size_t>(1, 2 * look);
    }
    wait_for(keys_[i]);
  }
}

void Store::barrier() {
  wait();
  meet();
}

void Store::meet() {
  Call call;
  call.collective = Collective::barrier;
  communicator_.run(call);
}

}  // namespace paceline::store
