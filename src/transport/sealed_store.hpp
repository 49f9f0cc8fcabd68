// SealedStore: a store whose values count only if a rank with the launcher's secret wrote them.
//
// Every value, so every card, carries a seal: a hash of its key and itself that needs the secret. A
// process that reaches the store without it can withhold a value, but not change, swap or invent
// one. docs/design/0034-trust.md names the other parties that are trusted.
#pragma once

#include <memory>
#include <string>

#include "transport/store.hpp"

namespace paceline {

class SealedStore : public Store {
 public:
  // Without a secret, values are stored as they are, and reading a sealed one is refused.
  SealedStore(std::shared_ptr<Store> store, const std::string& secret);
  void set(const std::string& key, const std::string& value) override;
  // Throws a refusal if the seal does not fit.
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override;

 private:
  std::string seal(const std::string& key, const std::string& value) const;

  std::shared_ptr<Store> store_;
  std::string secret_;
};

}  // namespace paceline
