#include "transport/vigil.hpp"

namespace paceline {

void Vigil::know(int rank, int process_id) {
  if (!processes_.contains(rank)) processes_.emplace(rank, ProcessWatch(process_id));
}

bool Vigil::is_set(Store& store, const std::string& key) {
  try {
    (void)store.get(key, std::chrono::milliseconds(1));
    return true;
  } catch (const Error& error) {
    if (error.fault() != Fault::timeout) throw;
    return false;
  }
}

}  // namespace paceline
