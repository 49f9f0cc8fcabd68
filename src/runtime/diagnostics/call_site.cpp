#include "runtime/diagnostics/call_site.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/str.hpp"

namespace paceline {
namespace {

constexpr int kFrames = 64;

std::string_view name_of_file(const Dl_info& info) {
  const std::string_view path = info.dli_fname ? info.dli_fname : "";
  return path.substr(path.rfind('/') + 1);
}

// Returns the address as the file's own tables have it: absolute in a program that is not
// relocated, else an offset.
std::uintptr_t offset_in(const Dl_info& info, const void* address) {
  const auto* header = static_cast<const unsigned char*>(info.dli_fbase);
  std::uint16_t type = ET_DYN;
  if (std::memcmp(header, ELFMAG, SELFMAG) == 0) std::memcpy(&type, header + EI_NIDENT, 2);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return type == ET_EXEC ? at : at - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
}

// Returns a symbol of C++ as the program's text has it, and any other as it is.
std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return text ? text.get() : symbol;
}

}  // namespace

std::string describe_place(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return {};
  char place[24];
  std::snprintf(place, sizeof place, "+0x%zx", std::size_t(offset_in(info, address)));
  const std::string symbol = info.dli_sname ? str(" (", readable(info.dli_sname), ")") : "";
  return str(name_of_file(info), place, symbol);
}

// Skips all files named libpaceline*, since the drop-in library consists of two.
std::string native_call_site() {
  Dl_info own{}, info{};
  if (dladdr(reinterpret_cast<void*>(&native_call_site), &own) == 0) return {};
  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  for (int i = 0; i < count; ++i) {
    const void* call = static_cast<const char*>(frames[i]) - 1;   // the return address less 1
    if (dladdr(call, &info) == 0 || info.dli_fbase == own.dli_fbase ||
        name_of_file(info).starts_with("libpaceline"))
      continue;
    return describe_place(call);
  }
  return {};
}

}  // namespace paceline
