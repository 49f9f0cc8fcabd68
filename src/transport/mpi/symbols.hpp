// Symbols: the names that a loaded library defines.
#pragma once

#include <memory>
#include <string>

namespace paceline::mpi {

class Symbols {
 public:
  // Loads the library; empty: the MPI that is in the process already. Throws a resource error.
  static Symbols load(const std::string& path);
  // True if the process has an MPI.
  static bool in_process();

  void* find(const char* name) const;  // null: there is none
  void* need(const char* name) const;  // throws a refusal that names it
  // The file of the object that holds `address`, as the loader found it.
  static std::string file_of(const void* address);
  const std::string& path() const { return path_; }

 private:
  Symbols(std::shared_ptr<void> library, std::string path)
      : library_(std::move(library)), path_(std::move(path)) {}
  static Symbols loaded_already();

  std::shared_ptr<void> library_;  // null: there is none
  std::string path_;
};

}  // namespace paceline::mpi
