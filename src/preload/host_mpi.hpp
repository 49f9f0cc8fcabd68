// The MPI whose mpi.h this is compiled with: its names, and a test that the process has the same.
#pragma once

#define MPICH_SKIP_MPICXX 1  // without the obsolete C++ bindings
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <string>
#include <string_view>

#define PACELINE_TEXT_OF(number) #number
#define PACELINE_TEXT(number) PACELINE_TEXT_OF(number)

namespace paceline::preload {

// Start of the text of MPI_Get_library_version, and the header's version. Intel's header has
// MPICH's version, too.
#if defined(OPEN_MPI)
inline constexpr std::string_view kFamily = "Open MPI v";
inline constexpr std::string_view kVersion = PACELINE_TEXT(OMPI_MAJOR_VERSION) "." PACELINE_TEXT(
    OMPI_MINOR_VERSION) "." PACELINE_TEXT(OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
inline constexpr std::string_view kFamily = "Intel(R) MPI Library";
inline constexpr std::string_view kVersion = I_MPI_VERSION;
#elif defined(MPICH_VERSION)
inline constexpr std::string_view kFamily = "MPICH Version:";
inline constexpr std::string_view kVersion = MPICH_VERSION;
#else
#error "The drop-in library knows Open MPI, MPICH and Intel MPI; this mpi.h is of another MPI."
#endif

// The Fortran wrapper calls MPI_ names in MPICH's family, and PMPI_ names in Open MPI.
#if defined(OPEN_MPI)
inline constexpr bool kFortranCallsC = false;
#else
inline constexpr bool kFortranCallsC = true;
#endif

// "MPICH Version: 4.0.2": the first line, without runs of spaces.
inline std::string first_line(std::string_view text) {
  std::string line;
  for (char c : text.substr(0, text.find('\n'))) {
    if (c == '\t') c = ' ';
    if (c != ' ' || (!line.empty() && line.back() != ' ')) line += c;
  }
  return line;
}

// True if the library with this version text has the handles and functions of the header: same
// family, same major version.
inline bool is_host(std::string_view said) {
  const std::string line = first_line(said);
  if (!line.starts_with(kFamily)) return false;
  std::string_view version = std::string_view(line).substr(kFamily.size());
  if (version.starts_with(' ')) version.remove_prefix(1);
  return version.starts_with(kVersion.substr(0, kVersion.find('.') + 1));
}

}  // namespace paceline::preload
