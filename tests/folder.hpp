// A folder of its own, which goes with the test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace paceline::test {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/paceline-test-XXXXXX";
    if (!mkdtemp(name)) throw std::runtime_error("no folder can be made in /tmp");
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
};

}  // namespace paceline::test
