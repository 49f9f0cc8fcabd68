#include "transport/store.hpp"

#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"

namespace paceline {

void nobody_set(const std::string& key, std::chrono::milliseconds timeout) {
  fail(Fault::timeout, "start-up: no rank set '", key, "' in the key-value store within ",
       timeout.count(),
       " ms. Did every rank start, with the same store and the same number of ranks?");
}

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
  const std::string file = path(key), trouble = replace_file(file, value, 0600);
  if (!trouble.empty())
    fail(Fault::resource, "start-up: the file '", file, "' cannot be written: ", trouble,
         ". Is the store's folder there, with room, and this user's?");
}

std::string FileStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    FileText found = read_file(path(key));
    if (!found.trouble.empty())
      fail(Fault::refusal, "start-up: '", path(key), "' is rejected: ", found.trouble,
           ". A store's folder must be this user's, and new for each run.");
    if (found.is_there) return std::move(found.text);
    if (std::chrono::steady_clock::now() > deadline) nobody_set(key, timeout);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace paceline
