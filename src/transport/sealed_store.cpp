#include "transport/sealed_store.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/sip_hash.hpp"

namespace paceline {
namespace {

constexpr std::string_view kSealed = "sealed ";

}  // namespace

SealedStore::SealedStore(std::shared_ptr<Store> store, const std::string& secret)
    : store_(std::move(store)), secret_(secret) {}

// A secret is text of any length; two hashes of it make a key.
std::string SealedStore::seal(const std::string& key, const std::string& value) const {
  const SipKey made{sip_hash({0, 1}, secret_), sip_hash({0, 2}, secret_)};
  return str(kSealed, hex(sip_hash(made, str(key.size(), " ", key, value))), " ");
}

void SealedStore::set(const std::string& key, const std::string& value) {
  store_->set(key, secret_.empty() ? value : seal(key, value) + value);
}

std::string SealedStore::get(const std::string& key, std::chrono::milliseconds timeout) {
  std::string value = store_->get(key, timeout);
  const bool is_sealed = value.starts_with(kSealed);
  if (secret_.empty() && !is_sealed) return value;
  const auto refuse = [&](const char* why) {
    fail(Fault::refusal, "start-up: '", key, "' in the key-value store is rejected: ", why,
         ". All ranks must have the PACELINE_SECRET that their launcher has set, and no other ",
         "process may write there.");
  };
  if (secret_.empty()) refuse("it is sealed by a secret, and this rank has none");
  if (!is_sealed) refuse("this rank has a secret, and it bears no seal");
  const std::size_t length = kSealed.size() + 17;
  std::string text = value.size() < length ? std::string() : value.substr(length);
  if (value.size() < length || value.substr(0, length) != seal(key, text))
    refuse("its seal is by another secret, or it has been changed");
  return text;
}

}  // namespace paceline
