// LibraryOf: a loaded MPI over one binary interface. Included by the instances only.
#pragma once

#include <memory>
#include <string>

#include "transport/mpi/abi/world_of.hpp"

namespace paceline::mpi {

template <class A>
class LibraryOf : public MpiLibrary, public std::enable_shared_from_this<LibraryOf<A>> {
 public:
  LibraryOf(const MpiFunctions<A>& functions, const MpiHandles<A>& handles)
      : mpi_{functions, handles} {}

  std::string_view abi() const override { return A::name; }

  std::string about() const override {
    std::string text(A::version_string + 1, '\0');
    int length = 0;
    mpi_.check(mpi_.call.Get_library_version(text.data(), &length), "Get_library_version");
    text.resize(std::size_t(std::clamp(length, 0, A::version_string)));
    return text;
  }

  std::string version() const override {
    std::string text = about();
    text.resize(std::min(text.size(), text.find_first_of(std::string("\n\0", 2))));
    for (char& c : text)
      if (c == '\t') c = ' ';
    return text;
  }

  bool is_initialized() const override { return mpi_.is_set(mpi_.call.Initialized); }
  bool is_finalized() const override { return mpi_.is_set(mpi_.call.Finalized); }

  MpiThreads init() override {
    if (is_finalized())
      fail(Fault::usage, "mpi: MPI has been finalised in this process; it cannot start again.");
    int level = A::single;
    if (is_initialized()) {
      mpi_.check(mpi_.call.Query_thread(&level), "Query_thread");
    } else {
      mpi_.check(mpi_.call.Init_thread(nullptr, nullptr, A::multiple, &level), "Init_thread");
      ours_ = true;
    }
    if (level >= A::multiple) return MpiThreads::multiple;
    if (level >= A::serialized) return MpiThreads::serialized;
    return level >= A::funneled ? MpiThreads::funneled : MpiThreads::single;
  }

  void finalize() override {
    if (ours_ && !is_finalized()) mpi_.check(mpi_.call.Finalize(), "Finalize");
    ours_ = false;
  }

  int rank() const override {
    int rank = 0;
    mpi_.check(mpi_.call.Comm_rank(mpi_.handle.world, &rank), "Comm_rank");
    return rank;
  }

  std::shared_ptr<MpiWorld> open(const void* communicator) override {
    if (!is_initialized() || is_finalized())
      fail(Fault::usage, "mpi: a world can be opened between MPI_Init and MPI_Finalize only.");
    const auto whole =
        communicator ? *static_cast<const typename A::Comm*>(communicator) : mpi_.handle.world;
    return std::make_shared<WorldOf<A>>(this->shared_from_this(), mpi_, whole);
  }

 private:
  Binding<A> mpi_;
  bool ours_ = false;  // we have initialised it
};

}  // namespace paceline::mpi
