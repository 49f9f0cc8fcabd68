#include "transport/mpi/library.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "transport/mpi/abi/make.hpp"
#include "transport/mpi/fabric.hpp"

namespace paceline {
namespace {

constexpr const char* kIntel = "I_MPI_Check_image_status";  // defined by Intel MPI alone

}  // namespace

std::string_view name_of(MpiThreads threads) {
  constexpr std::string_view names[] = {"single", "funneled", "serialized", "multiple"};
  return names[static_cast<int>(threads)];
}

// MPICH 5's own library defines the functions of the standard interface as well, but takes its own
// handles: only a library that is named so, or has the mark of no other, speaks the standard one.
std::shared_ptr<MpiLibrary> MpiLibrary::load(const std::string& path) {
  const mpi::Symbols symbols = mpi::Symbols::load(path);
  const std::string file = mpi::Symbols::file_of(symbols.need("PMPI_Init_thread"));
  if (!path.empty() && symbols.find(kIntel)) mpi::load_fabric_of(file);
  if (std::filesystem::path(file).filename().string().starts_with("libmpi_abi"))
    return mpi::make_standard(symbols);
  if (symbols.find("ompi_mpi_comm_world")) return mpi::make_openmpi(symbols);
  if (symbols.find("MPIR_Dup_fn")) return mpi::make_mpich(symbols);
  if (symbols.find("PMPI_Abi_get_version")) return mpi::make_standard(symbols);
  fail(Fault::refusal, "mpi: '", symbols.path(),
       "' has the binary interface neither of MPICH, nor of Open MPI, nor of MPI 5. Use a library "
       "that does.");
}

bool MpiLibrary::is_in_process() { return mpi::Symbols::in_process(); }

}  // namespace paceline
