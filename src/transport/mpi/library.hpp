// MpiLibrary: an MPI that has been loaded into this process, behind one interface.
//
// Nothing here knows mpi.h: an MPI is loaded at run time, recognised by its symbols, and served by
// the one of three instances of the same template (transport/mpi/abi/) that speaks its binary
// interface: MPICH's, Open MPI's, or the standard one of MPI 5. Only PMPI_ functions are called.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "transport/bootstrap.hpp"
#include "transport/mpi/config.hpp"
#include "transport/transport.hpp"

namespace paceline {

enum class MpiThreads { single, funneled, serialized, multiple };
std::string_view name_of(MpiThreads threads);

// Ranks of an MPI communicator: a duplicate of it, which is ours alone. Keeps its library loaded.
// After leave() of its transport it makes no call into MPI any more: MPI may be finalised then.
class MpiWorld : public Bootstrap {
 public:
  // Messages among these ranks; once per world. Keeps the world.
  virtual std::unique_ptr<Transport> transport(const MpiConfig& config) = 0;
  // Lets MPI send what is pending: some MPIs do so only inside their calls.
  virtual void wake_peers() = 0;
  virtual const void* communicator_address() const = 0;   // of its MPI_Comm
  // Collective: frees its communicator, and calls MPI no more.
  virtual void free() = 0;
};

class MpiLibrary {
 public:
  // `path`: of the library; empty: the one that the process has. Throws a resource error that names
  // the path if it cannot be loaded, a refusal if it is an unknown MPI.
  static std::shared_ptr<MpiLibrary> load(const std::string& path);
  // True if the process has an MPI already, as a program linked with MPI or mpi4py does.
  static bool is_in_process();

  virtual ~MpiLibrary() = default;
  virtual std::string_view abi() const = 0;  // "mpich", "openmpi", "standard"
  virtual std::string version() const = 0;   // one line, as the library says
  virtual std::string about() const = 0;     // all that it says about itself
  virtual bool is_initialized() const = 0;
  virtual bool is_finalized() const = 0;
  // Initialises MPI with all the thread support it has, unless that is done; returns its thread
  // level.
  virtual MpiThreads init() = 0;
  virtual int rank() const = 0;   // of this process among all of its processes
  virtual void finalize() = 0;  // what init() began; else nothing
  // `communicator`: the address of an MPI_Comm of this library; null: all processes. Collective
  // over it.
  virtual std::shared_ptr<MpiWorld> open(const void* communicator) = 0;
};

}  // namespace paceline
