// RawMpi: what a program with communicators of its own does, without mpi.h.
#pragma once

#include "transport/mpi/library.hpp"
#include "transport/mpi/symbols.hpp"

namespace paceline::test {

class RawMpi {
 public:
  union Comm {  // a handle of any MPI; its address is that of an MPI_Comm
    int number;
    void* pointer;
  };

  explicit RawMpi(const MpiLibrary& library)
      : symbols_(mpi::Symbols::load("")), abi_(library.abi()) {}

  Comm world() const { return handle(0x44000000, "ompi_mpi_comm_world", 0x101); }
  Comm self() const { return handle(0x44000001, "ompi_mpi_comm_self", 0x102); }

  Comm split(int colour, int key) const {
    void* function = symbols_.need("PMPI_Comm_split");
    Comm half = world();
    if (abi_ == "mpich")
      reinterpret_cast<int (*)(int, int, int, int*)>(function)(world().number, colour, key,
                                                               &half.number);
    else
      reinterpret_cast<int (*)(void*, int, int, void**)>(function)(world().pointer, colour, key,
                                                                   &half.pointer);
    return half;
  }

 private:
  Comm handle(int mpich, const char* openmpi, std::uintptr_t standard) const {
    Comm c{.pointer = nullptr};
    if (abi_ == "mpich")
      c.number = mpich;
    else if (abi_ == "openmpi")
      c.pointer = symbols_.need(openmpi);
    else
      c.pointer = reinterpret_cast<void*>(standard);
    return c;
  }

  mpi::Symbols symbols_;
  std::string abi_;
};

}  // namespace paceline::test
