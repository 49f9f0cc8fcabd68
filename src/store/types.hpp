// Types of a KVStore with one call for each key: those of A. Mamidala, "Efficient Embedding of MPI
// Collectives in MXNET DAGs for scaling Deep Learning" (arXiv 1802.06949), as published.
#pragma once

#include <cstddef>
#include <vector>

#include "store/store.hpp"

namespace paceline::store {

// The thread that pushes waits for each value, makes its call and waits for that (section 4.1).
// Calls have no priority: one is under way at a time.
class Funnel : public Store {
 public:
  using Store::Store;

 private:
  void exchange(std::size_t key, Transfer& value, int priority) override;
};

// Each key has one of several communicators, so that several calls are under way (section 4.2). A
// push waits for its value, and once `outstanding` calls are under way it first waits for them all
// and for all ranks.
class ConCom : public Store {
 public:
  struct Options {
    std::size_t outstanding;
    std::vector<Communicator> communicators;
  };
  ConCom(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle,
         Options options);

  void barrier() override;

 private:
  void exchange(std::size_t key, Transfer& value, int priority) override;
  Communicator& communicator_of(std::size_t key) override;
  bool help(int milliseconds) override;
  std::size_t place_of(std::size_t key) const;

  std::vector<Communicator> communicators_;
  std::vector<tasks::Calls> calls_;
  const std::size_t outstanding_;
  std::vector<std::size_t> pushed_;   // since the last barrier: calls of these may be under way
};

// Every call writes one variable besides its buffer, so that each is made when the one pushed
// before it is complete; copies of other keys go on meanwhile (section 4.3).
class DepCha : public Store {
 public:
  DepCha(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle);

 private:
  void exchange(std::size_t key, Transfer& value, int priority) override;
  bool help(int milliseconds) override { return calls_.help(milliseconds); }

  tasks::Calls calls_;
  const graph::Variable chain_;
};

}  // namespace paceline::store
