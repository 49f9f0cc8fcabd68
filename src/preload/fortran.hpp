// Calls in Fortran: all arguments are addresses, the last one of the error code. The module mpi_f08
// passes the same, but may omit the error code.
#pragma once

#include <cstdint>

#include "host_mpi.hpp"
#include "stub.h"

namespace paceline::preload {

// Hold the address of an argument and convert to its value.
struct FortranInt {
  const MPI_Fint* at;
  operator int() const { return static_cast<int>(*at); }
};
struct FortranType {
  const MPI_Fint* at;
  operator MPI_Datatype() const { return PMPI_Type_f2c(*at); }
};
struct FortranTypes {
  const MPI_Fint* at;
  MPI_Datatype operator[](int i) const { return PMPI_Type_f2c(at[i]); }
};
struct FortranOp {
  const MPI_Fint* at;
  operator MPI_Op() const { return PMPI_Op_f2c(*at); }
};
struct FortranBuffer {   // MPI_IN_PLACE and MPI_BOTTOM are variables in Fortran
  void* at;
  operator void*() const;
};
static_assert(sizeof(FortranInt) == sizeof(void*) && sizeof(FortranBuffer) == sizeof(void*));

// Puts into the table, for each call that the Fortran library of this MPI makes without the
// function in C, one that makes it by the table's function in C.
void serve_fortran(paceline_function table[PACELINE_STUB_CALLS]);

}  // namespace paceline::preload
