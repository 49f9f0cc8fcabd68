#include "report.hpp"

#include <cstdio>

#include "base/error.hpp"

namespace paceline::preload {

int report(const char* name, MPI_Comm comm) {
  int code = MPI_ERR_OTHER;
  try {
    throw;
  } catch (const Error& error) {
    std::fprintf(stderr, "paceline: %s: %s\n", name, error.what());
    if (error.fault() == Fault::usage) code = MPI_ERR_ARG;
    if (error.fault() == Fault::resource) code = MPI_ERR_NO_MEM;
    if (error.fault() == Fault::internal) code = MPI_ERR_INTERN;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paceline: %s: %s\n", name, error.what());
    code = MPI_ERR_NO_MEM;
  }
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

void check(int code, const char* call) {
  if (code != MPI_SUCCESS) fail(Fault::resource, "preload: PMPI_", call, " failed (", code, ").");
}

}  // namespace paceline::preload
