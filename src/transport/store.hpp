// Store: the small key-value store through which ranks find each other before they can talk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

namespace paceline {

// Throws the timeout error of a store, which names the key.
[[noreturn]] void nobody_set(const std::string& key, std::chrono::milliseconds timeout);

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits for the key; throws a timeout error that names it.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

// For ranks that are threads of one process.
class MemoryStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// A folder that all ranks of one machine can write to: a file per key, renamed into place.
class FileStore : public Store {
 public:
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;

 private:
  std::string path(const std::string& key) const;
  std::string folder_;
};

}  // namespace paceline
