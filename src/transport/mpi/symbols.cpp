#include "transport/mpi/symbols.hpp"

#include <dlfcn.h>
#include <link.h>

#include <vector>

#include "base/error.hpp"

namespace paceline::mpi {
namespace {

constexpr const char* kAnyMpi = "PMPI_Init_thread";  // defined by each of them

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The handle is kept for good: an MPI cannot be unloaded, its threads and exit handlers stay.
std::shared_ptr<void> keep(void* handle) {
  return {handle, [](void*) {}};
}

int collect(dl_phdr_info* object, std::size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(object->dlpi_name);
  return 0;
}

}  // namespace

Symbols Symbols::load(const std::string& path) {
  if (path.empty()) {
    Symbols found = loaded_already();
    if (!found.library_)
      fail(Fault::refusal,
           "mpi: no MPI is in this process. Give the path of its library, or link with it.");
    return found;
  }
  // Global: plug-ins of an MPI look its names up there.
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return {keep(handle), path};
  const char* why = dlerror();
  fail(Fault::resource, "mpi: the library '", path, "' cannot be loaded: ", why ? why : "unknown",
       ". Give the library of the mpiexec in use, such as libmpi.so.12 or libmpi.so.40.");
}

bool Symbols::in_process() { return loaded_already().library_ != nullptr; }

// A program linked with MPI has it in the global scope. An extension module of Python brings its
// MPI without putting it there: then its library is among the loaded objects.
Symbols Symbols::loaded_already() {
  if (void* self = dlopen(nullptr, RTLD_NOW); self && dlsym(self, kAnyMpi))
    return {keep(self), file_of(dlsym(self, kAnyMpi))};
  std::vector<std::string> objects;
  dl_iterate_phdr(collect, &objects);
  for (const std::string& object : objects) {
    if (!base_name(object).starts_with("libmpi")) continue;
    void* handle = dlopen(object.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    if (handle && dlsym(handle, kAnyMpi)) return {keep(handle), object};
  }
  return {nullptr, ""};
}

void* Symbols::find(const char* name) const { return dlsym(library_.get(), name); }

void* Symbols::need(const char* name) const {
  if (void* found = find(name)) return found;
  fail(Fault::refusal, "mpi: the library '", path_, "' has no ", name,
       ". Paceline needs an MPI of version 3.1 or newer.");
}

std::string Symbols::file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

}  // namespace paceline::mpi
