#include "device/cuda/api.hpp"

#include <dlfcn.h>

#include "base/str.hpp"

namespace paceline::device::cuda {
namespace {

struct Loaded {
  Api api;
  bool usable = false;
  std::string why;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::string version_text(int version) {
  return str(version / 1000, ".", version % 1000 / 10);
}

// Loads the driver. Returns why it cannot be used; empty if it can.
std::string load(Api& api) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return str("no CUDA driver (", dlerror(), "); install NVIDIA's, or in a container pass the "
               "devices (docker run --gpus all)");
  if (!find(library, "cuDriverGetVersion", api.driver_version) ||
      api.driver_version(&api.version) != kSuccess)
    return "libcuda.so.1 does not tell its version; is it NVIDIA's?";
  if (api.version < kLeastVersion)
    return str("the CUDA driver is of version ", version_text(api.version), ", and this needs ",
               version_text(kLeastVersion), "; update the driver");
  std::string missing;
#define PACELINE_CUDA_FIND(name, symbol, parameters) \
  if (!find(library, symbol, api.name)) missing = symbol;
  PACELINE_CUDA_FUNCTIONS(PACELINE_CUDA_FIND)
#undef PACELINE_CUDA_FIND
  if (!missing.empty())
    return str("the CUDA driver, of version ", version_text(api.version), ", lacks ", missing,
               "; update it");
  if (const Result result = api.init(0); result != kSuccess && result != kNoDevice)
    return str("the CUDA driver does not start: ", describe(api, result));
  int count = 0;
  if (api.device_count(&count) != kSuccess || count == 0)
    return "no CUDA device; nvidia-smi lists those of the machine, CUDA_VISIBLE_DEVICES hides some";
  return {};
}

}  // namespace

const Api* api(std::string* why) {
  static const Loaded* const loaded = [] {
    auto* one = new Loaded;   // kept for streams and memory released after all statics
    one->why = load(one->api);
    one->usable = one->why.empty();
    return one;
  }();
  if (why) *why = loaded->why;
  return loaded->usable ? &loaded->api : nullptr;
}

std::string describe(const Api& api, Result error) {
  const char *name = nullptr, *text = nullptr;
  if (!api.error_name || api.error_name(error, &name) != kSuccess || !name) name = "error";
  if (!api.error_text || api.error_text(error, &text) != kSuccess || !text) text = "unknown";
  return str(name, " (", error, "): ", text);
}

}  // namespace paceline::device::cuda
