#include "store/types.hpp"

#include <algorithm>
#include <utility>

#include "runtime/fingerprint.hpp"

namespace paceline::store {

void Funnel::exchange(std::size_t key, Transfer& value, int priority) {
  // The task that puts the value in waits for pulls of the one that it overwrites.
  put_and_wait(key, value, priority);
  communicator_.run(allreduce(keys_[key], 0));
}

ConCom::ConCom(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle,
               Options options)
    : Store(engine, std::move(communicator), op, idle),
      communicators_(std::move(options.communicators)),
      outstanding_(options.outstanding) {
  for (const Communicator& one : communicators_) calls_.emplace_back(engine, one);
}

// Equal on all ranks, whatever order they make their keys in.
std::size_t ConCom::place_of(std::size_t key) const {
  return tag_of(keys_[key].spec.name) % communicators_.size();
}

Communicator& ConCom::communicator_of(std::size_t key) { return communicators_[place_of(key)]; }

bool ConCom::help(int milliseconds) {
  return std::ranges::any_of(calls_, [&](auto& calls) { return calls.help(milliseconds); });
}

void ConCom::barrier() {
  Store::barrier();
  pushed_.clear();
}

void ConCom::exchange(std::size_t key, Transfer& value, int priority) {
  if (pushed_.size() >= outstanding_) {
    wait(pushed_);
    meet();
    pushed_.clear();
  }
  put_and_wait(key, value, priority);
  pushed_.push_back(key);
  calls_[place_of(key)].push(allreduce(keys_[key], priority),
                             {.name = keys_[key].spec.name, .write = {keys_[key].buffer},
                              .priority = priority, .keeps = keys_[key].spec.keeps});
}

DepCha::DepCha(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle)
    : Store(engine, std::move(communicator), op, idle),
      calls_(engine, communicator_),
      chain_(engine.variable("the order of allreduces")) {}

void DepCha::exchange(std::size_t key, Transfer& value, int priority) {
  put(key, value, priority);
  calls_.push(allreduce(keys_[key], priority),
              {.name = keys_[key].spec.name, .write = {keys_[key].buffer, chain_},
               .priority = priority, .keeps = keys_[key].spec.keeps});
}

}  // namespace paceline::store
