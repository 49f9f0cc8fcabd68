// Are our numbers for a binary interface those of its mpi.h? Compiled by an MPI's compiler with
// -DPACELINE_ABI=Mpich, OpenMpi or Standard, and run as it is, without ranks. What is wrong does
// not compile, or is printed. PACELINE_MUTANT makes it wrong: the proof that this can fail.
#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "native/functions.hpp"
#include "native/predefined.hpp"
#include "transport/mpi/abi/mpich.hpp"
#include "transport/mpi/abi/openmpi.hpp"
#include "transport/mpi/abi/standard.hpp"

#ifndef PACELINE_MUTANT
#define PACELINE_MUTANT 0
#endif

namespace paceline::mpi {

struct Checked : PACELINE_ABI {
#if PACELINE_MUTANT == 1  // a number
  static constexpr int multiple = PACELINE_ABI::multiple + 1;
#elif PACELINE_MUTANT == 2  // the layout of a status
  struct Status {
    int MPI_ERROR, MPI_TAG, MPI_SOURCE;
    int rest[5];
  };
#elif PACELINE_MUTANT == 3  // the parameters of a function
  using Op = long double;
#endif
};

using Ours = Checked;
using Status = Ours::Status;

static_assert(Ours::success == MPI_SUCCESS && Ours::error_in_status == MPI_ERR_IN_STATUS);
static_assert(Ours::undefined == MPI_UNDEFINED && Ours::any_source == MPI_ANY_SOURCE);
static_assert(Ours::single == MPI_THREAD_SINGLE && Ours::funneled == MPI_THREAD_FUNNELED);
static_assert(Ours::serialized == MPI_THREAD_SERIALIZED && Ours::multiple == MPI_THREAD_MULTIPLE);
static_assert(Ours::tag_ub == MPI_TAG_UB);
static_assert(Ours::error_string >= MPI_MAX_ERROR_STRING);
static_assert(Ours::version_string >= MPI_MAX_LIBRARY_VERSION_STRING);

static_assert(sizeof(Status) == sizeof(MPI_Status) && alignof(Status) == alignof(MPI_Status));
static_assert(offsetof(Status, MPI_SOURCE) == offsetof(MPI_Status, MPI_SOURCE));
static_assert(offsetof(Status, MPI_TAG) == offsetof(MPI_Status, MPI_TAG));
static_assert(offsetof(Status, MPI_ERROR) == offsetof(MPI_Status, MPI_ERROR));

// Passed in the same way: as numbers, or as addresses, of the same size.
template <class A, class B>
constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                       std::is_integral_v<A> == std::is_integral_v<B>;
template <class A, class B>
constexpr bool callable_alike = false;
template <class A, class... As, class B, class... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
constexpr bool callable_alike<A (*)(As...), B (*)(Bs...)> = alike<A, B> && (alike<As, Bs> && ...);

#define PACELINE_CHECK(result, name, parameters) \
  static_assert(callable_alike<decltype(MpiFunctions<Ours>::name), decltype(&PMPI_##name)>, #name);
PACELINE_MPI_FUNCTIONS(PACELINE_CHECK)
#undef PACELINE_CHECK
#define PACELINE_CHECK(result, name, parameters)                                         \
  static_assert(callable_alike<decltype(peers::Functions<Ours>::name), decltype(&PMPI_##name)>, \
                #name);
PACELINE_PEER_FUNCTIONS(PACELINE_CHECK)
#undef PACELINE_CHECK

template <class Handle>
std::uint64_t bits(Handle handle) {
  static_assert(sizeof(handle) <= sizeof(std::uint64_t));
  std::uint64_t out = 0;
  std::memcpy(&out, &handle, sizeof(handle));
  return out;
}

int differing = 0;

template <class A, class B>
void compare(const char* name, A ours, B theirs) {
  static_assert(alike<A, B>);
  if (bits(ours) == bits(theirs)) return;
  std::printf("%s is %#llx, not %#llx\n", name, static_cast<unsigned long long>(bits(theirs)),
              static_cast<unsigned long long>(bits(ours)));
  ++differing;
}

void check_handles() {
  const auto h = PACELINE_ABI::handles(Symbols::load(""));
  compare("MPI_COMM_WORLD", h.world, MPI_COMM_WORLD);
  compare("MPI_ERRORS_RETURN", h.errors_return, MPI_ERRORS_RETURN);
  compare("MPI_IN_PLACE", Ours::in_place(), static_cast<void*>(MPI_IN_PLACE));
  compare("MPI_BYTE", h.byte, MPI_BYTE);
}

// Each row of a table beside what mpi.h calls it.
template <class Ours, std::size_t n, class Theirs>
void compare_rows(const peers::Predefined (&rows)[n], const Theirs (&theirs)[n],
                  const Symbols& symbols) {
  for (std::size_t i = 0; i < n; ++i)
    compare(rows[i].name.data(), peers::handle_of<PACELINE_ABI, Ours>(rows[i], symbols), theirs[i]);
}

void check_predefined() {
  const Symbols symbols = Symbols::load("");
  compare("MPI_REQUEST_NULL",
          peers::handle_of<PACELINE_ABI, PACELINE_ABI::Request>(peers::kNoRequest, symbols),
          MPI_REQUEST_NULL);
  compare_rows<PACELINE_ABI::Datatype>(
      peers::kTypes,
      {MPI_DOUBLE, MPI_FLOAT, MPI_INT8_T, MPI_UINT8_T, MPI_INT16_T, MPI_UINT16_T, MPI_INT32_T,
       MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T, MPI_C_BOOL},
      symbols);
  compare_rows<PACELINE_ABI::Op>(
      peers::kOps,
      {PACELINE_MUTANT == 4 ? MPI_PROD : MPI_SUM,  // 4: a handle
       MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR},
      symbols);
}

}  // namespace paceline::mpi

int main() {
  int begun = 0;
  PMPI_Initialized(&begun);  // so that the library is linked at all
  paceline::mpi::check_handles();
  paceline::mpi::check_predefined();
  std::printf("%d handles differ\n", paceline::mpi::differing);
  return paceline::mpi::differing ? 1 : 0;
}
