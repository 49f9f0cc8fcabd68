// The launcher's secret: a process without it cannot add, change, swap or replay entries.
#include "transport/sealed_store.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "base/sip_hash.hpp"
#include "expect_fault.hpp"

using namespace paceline;
using test::expect_fault;

namespace {

constexpr std::chrono::milliseconds kSoon{20};

}  // namespace

TEST_CASE("SipHash-2-4 gives what its authors published") {
  const SipKey key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  std::string text;
  const std::uint64_t published[] = {0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au,
                                     0x85676696d7fb7e2du, 0xcf2794e0277187b7u, 0x18765564cd99a68du,
                                     0xcbc9466e58fee3ceu, 0xab0200f58b01d137u, 0x93f5f5799a932462u};
  for (const std::uint64_t hash : published) {
    CHECK(sip_hash(key, text) == hash);
    text += static_cast<char>(text.size());
  }
  while (text.size() < 15) text += static_cast<char>(text.size());
  CHECK(sip_hash(key, text) == 0xa129ca6149be45e5u);
}

TEST_CASE("sealed store: ranks with one secret hear each other, whatever they say") {
  const auto under = std::make_shared<MemoryStore>();
  SealedStore one(under, "secret"), two(under, "secret");
  for (const std::string& value : {std::string(), std::string("a\0b\n", 4),
                                   std::string("sealed 0 "), std::string(5000, 'x')}) {
    one.set("key", value);
    CHECK(two.get("key", kSoon) == value);
  }
  SealedStore plain(under, ""), other(under, "");
  plain.set("open", "value");
  CHECK(other.get("open", kSoon) == "value");
  CHECK(under->get("open", kSoon) == "value");
  CHECK(expect_fault(Fault::timeout, {"'nothing'"}, [&] { one.get("nothing", kSoon); }) == "");
}

TEST_CASE("sealed store: a secret that differs, or is missing, is named on both sides") {
  const auto under = std::make_shared<MemoryStore>();
  SealedStore one(under, "secret"), two(under, "another"), none(under, "");
  one.set("a", "value");
  none.set("b", "value");
  const auto refused = [](SealedStore& store, const char* key, const char* why) {
    return expect_fault(Fault::refusal, {str("'", key, "'"), why, "PACELINE_SECRET"},
                        [&] { store.get(key, kSoon); });
  };
  CHECK(refused(two, "a", "its seal is by another secret") == "");
  CHECK(refused(none, "a", "this rank has none") == "");
  CHECK(refused(one, "b", "it bears no seal") == "");
}

TEST_CASE("sealed store: what is changed, swapped or cut is refused") {
  const auto under = std::make_shared<MemoryStore>();
  SealedStore store(under, "secret");
  store.set("a", "value of a");
  store.set("b", "value of b");
  const std::string a = under->get("a", kSoon), b = under->get("b", kSoon);
  const auto refused = [&](const std::string& raw) {
    under->set("a", raw);
    return expect_fault(Fault::refusal, {"'a'"}, [&] { store.get("a", kSoon); });
  };
  CHECK(refused(b) == "");   // another's, as it was sealed
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::string turned = a;
    turned[i] = static_cast<char>(turned[i] ^ 1);
    CHECK(refused(turned) == "");
    CHECK(refused(a.substr(0, i)) == "");
  }
  CHECK(refused(a + "x") == "");
  under->set("a", a);
  CHECK(store.get("a", kSoon) == "value of a");
  // A key's end is not a value's beginning.
  store.set("a", "bc");
  under->set("ab", under->get("a", kSoon));
  CHECK(expect_fault(Fault::refusal, {"'ab'"}, [&] { store.get("ab", kSoon); }) == "");
}
