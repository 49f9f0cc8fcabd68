// Loaded: the names of a library that this process has loaded already.
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/error.hpp"

namespace paceline::peers {

class Loaded {
 public:
  explicit Loaded(const std::string& path)
      : path_(path), library_(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
    if (!library_) fail(Fault::usage, "mpi: this process has not loaded ", path, ".");
  }
  ~Loaded() { dlclose(library_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  void* need(const char* name) const {  // throws a refusal
    void* found = dlsym(library_, name);
    if (!found) fail(Fault::refusal, "mpi: ", path_, " has no ", name, ".");
    return found;
  }

 private:
  std::string path_;
  void* library_;
};

}  // namespace paceline::peers
