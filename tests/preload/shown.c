/* Which collectives a program finds that asks for them by name, as mpi4py does by weak symbols:
   those that its MPI has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#define FORMS(name) {"MPI_" name, "PMPI_" name}, {"MPI_" name "_c", "PMPI_" name "_c"}
static const char* const names[][2] = {
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  FORMS(#name), FORMS(#nonblocking), FORMS(#name "_init"),
#include "mpi_calls.def"
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int found = 0, wrong = 0;
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
    const int is_shown = dlsym(RTLD_DEFAULT, names[i][0]) != NULL;
    const int is_there = dlsym(RTLD_DEFAULT, names[i][1]) != NULL;
    found += is_shown;
    wrong += is_shown != is_there;
    if (is_shown != is_there) printf("%s is %sshown\n", names[i][0], is_shown ? "" : "not ");
  }
  printf("%d found, %d wrong\n", found, wrong);
  MPI_Finalize();
  return wrong != 0;
}
