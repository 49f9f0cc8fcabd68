// The calls of Fortran programs that do not reach the functions in C: all of Open MPI; in MPICH's
// family those of mpi_f08 without buffers.
#include "fortran.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <vector>

namespace paceline::preload {
namespace {

std::array<paceline_function, PACELINE_STUB_CALLS> in_c;

struct Variables {
  std::vector<const void*> in_place, bottom;   // of each library or program that has its own
};

void add(std::vector<const void*>& to, void* library, const char* const (&names)[4]) {
  for (const char* name : names)
    if (const void* found = dlsym(library, name); found && std::ranges::find(to, found) == to.end())
      to.push_back(found);
}

int look_in(dl_phdr_info* object, std::size_t, void* data) {
  auto& found = *static_cast<Variables*>(data);
  void* const library = dlopen(object->dlpi_name[0] ? object->dlpi_name : nullptr,
                               RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return 0;
  add(found.in_place, library, {"mpi_fortran_in_place_", "mpi_fortran_in_place",
                                "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"});
  add(found.bottom, library, {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__",
                              "MPI_FORTRAN_BOTTOM"});
  dlclose(library);
  return 0;
}

const Variables& variables() {
  static const Variables found = [] {
    Variables all;
    dl_iterate_phdr(look_in, &all);
    return all;
  }();
  return found;
}

bool is_one_of(const std::vector<const void*>& all, const void* address) {
  return std::ranges::find(all, address) != all.end();
}

#define UNWRAP(...) __VA_ARGS__
#define LONG(count) count
#define LONGS(counts, length) counts
#define IN FortranBuffer
#define OUT FortranBuffer
#define ROOT FortranInt
#define OP FortranOp
#define TYPE FortranType
#define COUNT FortranInt
#define COUNTS const int*
#define DISPLS const int*

#define SERVE(suffix, name, types, values)                                              \
  void name##suffix(UNWRAP types const MPI_Fint* comm, MPI_Fint* error) {               \
    auto* const call = reinterpret_cast<decltype(&PMPI_##name)>(in_c[PACELINE_STUB_##name]); \
    const int status = call(UNWRAP values PMPI_Comm_f2c(*comm));                        \
    if (error) *error = status;                                                         \
  }

#ifdef OPEN_MPI
#define SERVE_SERVED(name, types, values) \
  SERVE(_f, name, types, values) SERVE(_f08, name, types, values)
#define SERVE_WITHOUT_COUNTS SERVE_SERVED
#else
#define SERVE_SERVED(name, types, values)
#define SERVE_WITHOUT_COUNTS(name, types, values) SERVE(_f08, name, types, values)
#endif
#define SERVE_HOST(name, types, values)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  SERVE_##kind(name, types, values)
#include "mpi_calls.def"

template <class Function>
void put(paceline_function table[], int which, Function* function) {
  if (table[which]) table[which] = reinterpret_cast<paceline_function>(function);
}

}  // namespace

FortranBuffer::operator void*() const {
  if (is_one_of(variables().in_place, at)) return MPI_IN_PLACE;
  return is_one_of(variables().bottom, at) ? MPI_BOTTOM : at;
}

void serve_fortran(paceline_function table[PACELINE_STUB_CALLS]) {
  static_assert(sizeof(MPI_Fint) == sizeof(int), "arrays of counts are passed on as they are");
  std::copy_n(table, PACELINE_STUB_CALLS, in_c.begin());
#ifdef OPEN_MPI
#define PUT_SERVED(name) \
  put(table, PACELINE_STUB_##name##_f, name##_f);                                       \
  put(table, PACELINE_STUB_##name##_f08, name##_f08);
#define PUT_WITHOUT_COUNTS PUT_SERVED
#else
#define PUT_SERVED(name)
#define PUT_WITHOUT_COUNTS(name) put(table, PACELINE_STUB_##name##_f08, name##_f08);
#endif
#define PUT_HOST(name)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) PUT_##kind(name)
#include "mpi_calls.def"
}

}  // namespace paceline::preload
