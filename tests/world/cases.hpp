// The cases that every transport is put through: awkward counts, roots, in place, pipelines, uneven
// units.
#pragma once

#include <functional>
#include <set>

#include "coll/registry.hpp"
#include "tune/choose.hpp"
#include "world/collective_case.hpp"

namespace paceline::test {

std::set<std::size_t> awkward_counts(int p);

// True if the call needs ranks that share memory, or a system that copies between their memories.
bool is_load_store(const Case& c);
bool is_attached(const Case& c);

// Calls visit(case) for every algorithm at p ranks. `few`: fewer cases, for slow transports and
// sanitizers.
void for_each_case(int p, bool few, const std::function<void(const Case&)>& visit);

}  // namespace paceline::test
