#include "transport/store.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.hpp"

namespace paceline {
namespace {

[[noreturn]] void nobody_set(const std::string& key, std::chrono::milliseconds timeout) {
  fail(Fault::timeout, "start-up: nobody set '", key, "' in the key-value store within ",
       timeout.count(),
       " ms. Did every rank start, with the same store and the same number of ranks?");
}

}  // namespace

void MemoryStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::string MemoryStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
    nobody_set(key, timeout);
  return values_[key];
}

// Keys hold slashes; files must not.
std::string FileStore::path(const std::string& key) const {
  std::string name = key;
  for (char& c : name)
    if (c == '/') c = '+';
  return folder_ + "/" + name;
}

void FileStore::set(const std::string& key, const std::string& value) {
  const std::string last = path(key), first = str(last, ".", getpid(), "~");
  std::ofstream(first, std::ios::binary) << value;
  if (std::rename(first.c_str(), last.c_str()) != 0)
    fail(Fault::resource, "start-up: the file '", last,
         "' cannot be written. Is the store's folder there?");
}

std::string FileStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (std::ifstream file(path(key), std::ios::binary); file)
      return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (std::chrono::steady_clock::now() > deadline) nobody_set(key, timeout);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace paceline
