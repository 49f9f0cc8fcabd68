#include "transport/vigil.hpp"

namespace paceline {

void Vigil::know(int rank, int process_id) {
  if (!processes_.contains(rank)) processes_.emplace(rank, watch(rank, process_id));
}

SharedWatch Vigil::watch(int rank, int process_id) const {
  const auto known = processes_.find(rank);
  const bool is_it = known != processes_.end() && known->second->id() == process_id;
  return is_it ? known->second : std::make_shared<const ProcessWatch>(process_id);
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
