// Combining and copying memory: the only arithmetic in the library.
//
// Every kernel exists as a portable reference and once per instruction set from one source file;
// the best one that this processor runs is chosen once, at first use.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/types.hpp"

namespace paceline {

enum class Target { portable, avx2, avx512 };

// dst[i] = sources[0][i] op sources[1][i] op ..., from left to right; one source is a copy.
// 16-bit floats are accumulated in float32 and rounded once (to nearest even) at the store.
// min and max: a NaN in any source gives NaN, and -0.0 is smaller than +0.0. Every NaN result has
// the same bits (positive, quiet, no payload); all targets give the same bits. Integers wrap.
// logical_*: NaN is true, -0.0 is false, results are 0 and 1; a bool byte that is not zero is true.
// dst may be one of the sources, but must not overlap one in any other way. No alignment is needed.
// `average` combines like `sum`. Expects the default floating-point mode (no flush to zero).
using Reduce = void (*)(void* dst, const void* const* sources, int source_count, std::size_t count);

// The same into each of several targets, from registers, for results that several ranks want. An
// average is divided on the way, as divide() does it; other operations want the divisor 1.
using ReduceCopy = void (*)(void* const* targets, int target_count, const void* const* sources,
                        int source_count, std::size_t count, int divisor);

// Throw a refusal if the operation is not defined for the type (is_defined), or if the processor
// lacks the target.
Reduce reduce_kernel(Type type, Op op);
Reduce reduce_kernel(Type type, Op op, Target target);
ReduceCopy reduce_copy_kernel(Type type, Op op);
ReduceCopy reduce_copy_kernel(Type type, Op op, Target target);

// data[i] /= divisor, at the end of an average. 16-bit floats divide in float32, integers towards
// zero. Throws a refusal for bool and for divisor 0.
void divide(void* data, Type type, std::size_t count, int divisor);

// As memcpy, for a KiB or so at a time; no overlap. memcpy takes twice as long for a KiB if dst
// lies some bytes further in its page than src: processors then take what they load for what they
// have just stored.
void copy(void* dst, const void* src, std::size_t bytes);

// Copies past the caches, for data that no rank reads soon; no overlap. After nontemporal_fence()
// the stores made so are ordered before all later ones.
void copy_nontemporal(void* dst, const void* src, std::size_t bytes);
void nontemporal_fence();

std::span<const Target> targets();      // those this processor runs, best last
std::string_view name_of(Target target);

}  // namespace paceline
