/* An extension brings MPI and its Fortran, and shows them to nobody: argv[1] has been linked with
   both, and does what fortran.c does in run(). */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void* symbol = library ? dlsym(library, "run") : NULL;
  if (!symbol) return printf("%s\n", argc > 1 ? dlerror() : "which?"), 3;
  int (*run)(void);
  memcpy(&run, &symbol, sizeof run);
  return run();
}
