// WorldOf: the ranks of a communicator over one binary interface.
#pragma once

#include <climits>
#include <functional>
#include <memory>
#include <vector>

#include "transport/mpi/abi/port_of.hpp"
#include "transport/mpi/library.hpp"
#include "transport/mpi/netmod.hpp"
#include "transport/mpi/transport.hpp"

namespace paceline::mpi {

template <class A>
class WorldOf : public MpiWorld, public std::enable_shared_from_this<WorldOf<A>> {
 public:
  // Duplicates `whole`. `library` is kept.
  WorldOf(std::shared_ptr<MpiLibrary> library, const Binding<A>& mpi, typename A::Comm whole)
      : library_(std::move(library)), mpi_(mpi) {
    mpi_.check(mpi_.call.Comm_dup(whole, &communicator_), "Comm_dup");
    mpi_.check(mpi_.call.Comm_set_errhandler(communicator_, mpi_.handle.errors_return),
               "Comm_set_errhandler");
    mpi_.check(mpi_.call.Comm_rank(communicator_, &rank_), "Comm_rank");
    mpi_.check(mpi_.call.Comm_size(communicator_, &ranks_), "Comm_size");
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  bool can_post_from_anybody() const { return !is_over_ucx(library_->about()); }
  const Binding<A>& binding() const { return mpi_; }
  typename A::Comm communicator() const { return communicator_; }
  const void* communicator_address() const override { return &communicator_; }

  void free() override {
    if (!freed_) mpi_.call.Comm_free(&communicator_);
    freed_ = true;
  }

  std::unique_ptr<Transport> transport(const MpiConfig& config) override {
    agree(*this, config);
    return make_transport(std::make_unique<PortOf<A>>(this->shared_from_this()), config);
  }

  std::vector<std::string> allgather(const std::string& mine) override {
    const auto byte = mpi_.handle.byte;
    int length = size_of_message(mine.size());
    std::vector<int> lengths(std::size_t(ranks_), 0), at(std::size_t(ranks_), 0);
    mpi_.check(mpi_.call.Allgather(&length, int(sizeof(int)), byte, lengths.data(),
                                   int(sizeof(int)), byte, communicator_),
               "Allgather");
    std::size_t sum = 0;
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      at[r] = size_of_message(sum);
      sum += std::size_t(lengths[r]);
    }
    std::string all(std::size_t(size_of_message(sum)), '\0');
    mpi_.check(mpi_.call.Allgatherv(mine.data(), length, byte, all.data(), lengths.data(),
                                    at.data(), byte, communicator_),
               "Allgatherv");
    std::vector<std::string> said;
    for (std::size_t r = 0; r < lengths.size(); ++r)
      said.push_back(all.substr(std::size_t(at[r]), std::size_t(lengths[r])));
    return said;
  }

  void wake_peers() override {
    int found = 0;
    typename A::Status status;
    mpi_.check(mpi_.call.Iprobe(A::any_source, 0, communicator_, &found, &status), "Iprobe");
  }

  void check_open() const {   // throws a usage error
    if (freed_) fail(Fault::usage, "mpi: this rank has left the world; it can make no calls.");
  }

 private:
  static int size_of_message(std::size_t bytes) {
    if (bytes > INT_MAX) fail(Fault::resource, "mpi: start-up messages of ", bytes, " bytes.");
    return static_cast<int>(bytes);
  }

  std::shared_ptr<MpiLibrary> library_;
  Binding<A> mpi_;
  typename A::Comm communicator_ = {};
  int rank_ = 0, ranks_ = 1;
  bool freed_ = false;
};

}  // namespace paceline::mpi
