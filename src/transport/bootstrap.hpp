// Bootstrap: at start-up every rank says something, and every rank hears all of it.
//
// Ranks need nothing else before they can talk. They meet through a key-value store, an MPI, or as
// threads of one process.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "transport/store.hpp"
#include "transport/vigil.hpp"

namespace paceline {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Collective: entry r is what rank r said in its call of the same turn. Throws a timeout error if
  // a rank does not come.
  virtual std::vector<std::string> allgather(const std::string& mine) = 0;
  // Tells the meeting the process of a rank on this machine, once it is proven. If that process
  // ends, ranks that still wait for it fail, provided that the meeting can see it.
  virtual void know(int rank, int process_id);
  // Watches that process: by the descriptor that the meeting has of it, if it has one.
  virtual SharedWatch watch(int rank, int process_id) const;
  // The processes that are known.
  virtual Watches processes() const { return {}; }
  // True once an exchange has failed: this rank says nothing more.
  virtual bool is_over() const { return false; }
};

// A rank has waited long enough for this meeting, and may be on its way to the next one.
class GivenUp : public Error {
 public:
  explicit GivenUp(const std::string& message) : Error(Fault::timeout, message) {}
};

// A meeting through a store; `name` is new for every meeting in it. A rank that sees another one's
// process dead writes that in its place, for ranks on other nodes. A rank that ends the meeting
// writes its reason under its own next turn. A waiting rank calls `idle` now and then; an exception
// from it ends the meeting.
class StoreBootstrap : public Bootstrap {
 public:
  StoreBootstrap(Store& store, std::string name, int rank, int ranks,
               std::chrono::milliseconds timeout, void (*idle)() = nullptr)
      : store_(store),
        name_(std::move(name)),
        rank_(rank),
        ranks_(ranks),
        timeout_(timeout),
        idle_(idle) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::vector<std::string> allgather(const std::string& mine) override;
  void know(int rank, int process_id) override { vigil_.know(rank, process_id); }
  SharedWatch watch(int rank, int process_id) const override {
    return vigil_.watch(rank, process_id);
  }
  Watches processes() const override { return vigil_.processes(); }
  bool is_over() const override { return is_over_; }
  // Ends the meeting for this rank, also between two turns: peers that wait for its next word get
  // this one.
  void end(Fault fault, const std::string& why);

 private:
  std::string key(int rank, int turn) const;
  std::vector<std::string> hear(const std::string& mine);
  void look();

  Store& store_;
  std::string name_;
  int rank_, ranks_;
  std::chrono::milliseconds timeout_;
  void (*idle_)();
  int turn_ = 0, said_ = 0;   // turns
  bool is_over_ = false, has_ended_ = false;
  Vigil vigil_;
};

// A meeting of some of the ranks. Every rank of the whole takes part in every turn, each in its own
// part, so that one meeting serves all parts.
class PartBootstrap : public Bootstrap {
 public:
  // `members`: in order; the caller is one of them.
  PartBootstrap(Bootstrap& whole, std::vector<int> members);
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(members_.size()); }
  std::vector<std::string> allgather(const std::string& mine) override;
  void know(int rank, int process_id) override {
    whole_.know(members_[static_cast<std::size_t>(rank)], process_id);
  }
  SharedWatch watch(int rank, int process_id) const override {
    return whole_.watch(members_[static_cast<std::size_t>(rank)], process_id);
  }
  bool is_over() const override { return whole_.is_over(); }

 private:
  Bootstrap& whole_;
  std::vector<int> members_;
  int rank_ = 0;
};

// Runs a step of the start-up that may fail on some ranks. Collective. If it fails on any rank, it
// throws on all: the own error on a rank that failed, elsewhere the rank that failed and its error.
// Returns every rank's `note`, which travels with the word that it went well.
std::vector<std::string> collective_try(Bootstrap& meeting, const std::function<void()>& step,
                                  const std::string& note = "");

}  // namespace paceline
