#include "fuzz/numbers.hpp"

#include "base/str.hpp"
#include "unit/kernels_reference.hpp"

namespace paceline::fuzz {
namespace {

using numbers::decode;
using numbers::encode;
using numbers::format_of;

double power(int exponent) { return std::ldexp(1.0, exponent); }
bool is_sum(Op op) { return op == Op::sum || op == Op::average; }

double largest(Type type) {
  const auto f = format_of(type);
  return (2 - power(-f.fraction_bits)) * power(f.bias());
}
double least(Type type) {
  return power(1 - format_of(type).bias() - format_of(type).fraction_bits);
}

std::uint64_t infinity(Type type) {
  return encode(type, std::numeric_limits<double>::infinity());
}
std::uint64_t sign_bit(Type type) { return std::uint64_t{1} << (8 * size_of(type) - 1); }

std::uint64_t low_bits(Type type, std::uint64_t bits) {
  return bits & (sign_bit(type) | (sign_bit(type) - 1));
}

// Exact in any order: small whole numbers, products of which few are no powers of two.
double whole(const Reduction& r, int position, std::uint64_t seed) {
  const double sign = seed & 1 ? -1 : 1;
  if (r.op == Op::product) {
    const double odd[] = {1, 3, 5};
    return sign * (position < 2 ? odd[seed / 2 % 3] : power(static_cast<int>(seed / 2 % 3) - 1));
  }
  const auto most = std::uint64_t{1} << std::min(20, format_of(r.type).fraction_bits);
  return sign * static_cast<double>(seed / 2 % (most / std::uint64_t(r.ranks) + 1));
}

// Sums of these round and cancel; products neither overflow nor vanish.
double wild(const Reduction& r, std::uint64_t seed) {
  const double part = 0.5 + static_cast<double>(seed >> 12) * power(-53);
  const int range = r.op == Op::product ? 2 : 9;
  const int exponent = static_cast<int>(seed >> 1 & 15) % range - range / 2;
  return (seed & 1 ? -1 : 1) * std::ldexp(part, exponent + (r.op == Op::product ? 1 : 0));
}

// Some elements have infinities, some numbers that are nearly nothing: a product of both would
// depend on the order.
std::uint64_t special(const Reduction& r, std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t kind = seed >> 8 & 7, sign = seed & 1 ? sign_bit(r.type) : 0;
  const bool bounded = is_sum(r.op) || r.op == Op::product;
  switch (draw(index, 1) % 4) {
    case 0:   // zeros of either sign, nothing else
      return sign;
    case 1:
      if (kind == 0) return sign | infinity(r.type);
      if (kind == 1) return sign;
      if (kind == 2 && seed >> 16 & 1) return infinity(r.type) + 1 + (seed >> 20 & 31);
      break;
    case 2:   // subnormal ones
      if (kind < 5) return sign | (seed >> 16 & ((std::uint64_t{1} << 7) - 1));
      break;
    default:
      if (r.op == Op::product || kind > 2) break;
      return sign | encode(r.type, largest(r.type) / (bounded ? 2 * r.ranks : 1));
  }
  return encode(r.type, wild(r, seed));
}

std::string differs(Type type, std::uint64_t got, double wanted) {
  return str("is ", decode(type, got), " (bits ", got, "), not ", wanted);
}

// An expansion is a list of terms, of growing size, whose bits do not overlap.
void grow(std::vector<double>& expansion, double term) {
  std::size_t kept = 0;
  for (double part : expansion) {
    if (std::fabs(term) < std::fabs(part)) std::swap(term, part);
    const double sum = term + part, error = part - (sum - term);
    if (error != 0) expansion[kept++] = error;
    term = sum;
  }
  expansion.resize(kept);
  expansion.push_back(term);
}

// Of the sum or average of finite numbers.
std::string flaw_of_sum(const Reduction& r, const std::vector<double>& sources,
                        std::uint64_t bits) {
  const double got = decode(r.type, bits);
  const double parts = r.op == Op::average ? r.ranks : 1;
  const double unit = power(-format_of(r.type).fraction_bits - 1);
  double size = 0;
  std::vector<double> terms = sources;
  bool all_negative_zeros = true;
  for (double x : sources) {
    size += std::fabs(x);
    all_negative_zeros &= x == 0 && std::signbit(x);
  }
  if (!std::isfinite(got)) return differs(r.type, bits, exact_sum(sources) / parts);
  if (size == 0)
    return got == 0 && std::signbit(got) == all_negative_zeros
               ? "" : differs(r.type, bits, all_negative_zeros ? -0.0 : 0.0);
  terms.push_back(-got * parts);
  terms.push_back(-std::fma(got, parts, -(got * parts)));
  const double off = std::fabs(exact_sum(terms));
  const double roundings = r.ranks - 1 + (r.op == Op::average ? 2 : 0);
  if (off <= 1.01 * roundings * unit * size + (r.op == Op::average ? parts * least(r.type) : 0))
    return {};
  return differs(r.type, bits, exact_sum(sources) / parts) + str(", off by ", off / parts);
}

std::string flaw_of_product(const Reduction& r, const std::vector<double>& sources,
                            std::uint64_t bits) {
  const double got = decode(r.type, bits), unit = power(-format_of(r.type).fraction_bits - 1);
  long double product = 1;
  bool negative = false;
  for (double x : sources) {
    product *= x;
    negative ^= std::signbit(x);
  }
  if (std::isnan(got) || std::signbit(got) != negative)
    return differs(r.type, bits, double(product));
  if (product == 0 || std::isinf(product))
    return static_cast<long double>(got) == product ? "" : differs(r.type, bits, double(product));
  // A factor that was rounded among the subnormal numbers is doubled at most by each of the others.
  const long double bound = 1.01L * r.ranks * unit * std::fabs(product) +
                            static_cast<long double>(std::ldexp(least(r.type), r.ranks));
  return std::fabs(got - product) <= bound ? "" : differs(r.type, bits, double(product));
}

// What the rule says where the bits do not depend on the order.
std::uint64_t exact_bits(const Reduction& r, const std::vector<std::uint64_t>& sources) {
  std::uint64_t bits = numbers::reference(r.type, r.op, sources);
  if (r.op == Op::average && sources.size() > 1)
    bits = numbers::quotient(r.type, bits, static_cast<int>(sources.size()));
  return low_bits(r.type, bits);   // integers are computed in 64 bits
}

}  // namespace

std::uint64_t number(const Reduction& r, int position, std::uint64_t seed, std::uint64_t index) {
  if (!is_floating(r.type)) return any_bits(r.type, seed);
  const bool rounds = is_sum(r.op) || r.op == Op::product;
  if (r.values == Values::whole) {
    const Reduction one{r.type, Op::sum, r.values, 1};   // as large as they like
    return encode(r.type, whole(rounds ? r : one, position, seed));
  }
  return rounds && r.values == Values::wild ? encode(r.type, wild(r, seed))
                                            : special(r, seed, index);
}

std::uint64_t any_bits(Type type, std::uint64_t seed) {
  return type == Type::boolean ? seed & 1 : low_bits(type, seed);
}

std::string flaw(const Reduction& r, const std::vector<std::uint64_t>& sources,
                 std::uint64_t got) {
  const bool rounds = is_floating(r.type) && r.values != Values::whole && sources.size() > 1 &&
                      (is_sum(r.op) || r.op == Op::product);
  if (!rounds) {
    const std::uint64_t wanted = exact_bits(r, sources);
    if (got == wanted) return {};
    return is_floating(r.type) ? differs(r.type, got, decode(r.type, wanted))
                               : str("is ", got, ", not ", wanted, " (bits)");
  }
  std::vector<double> numbers;
  bool nan = false, plus = false, minus = false, zero = false;
  for (std::uint64_t bits : sources) {
    const double x = numbers.emplace_back(decode(r.type, bits));
    nan |= std::isnan(x);
    zero |= x == 0;
    (x > 0 ? plus : minus) |= std::isinf(x);
  }
  nan |= is_sum(r.op) ? plus && minus : zero && (plus || minus);
  if (nan) {
    const double wanted = std::nan("");
    return got == encode(r.type, wanted) ? "" : differs(r.type, got, wanted);
  }
  if (!is_sum(r.op)) return flaw_of_product(r, numbers, got);
  if (!plus && !minus) return flaw_of_sum(r, numbers, got);
  const std::uint64_t wanted = infinity(r.type) | (minus ? sign_bit(r.type) : 0);
  return got == wanted ? "" : differs(r.type, got, decode(r.type, wanted));
}

double exact_sum(const std::vector<double>& terms) {
  std::vector<double> expansion;
  for (double term : terms) grow(expansion, term);
  double sum = 0;
  for (double part : expansion) sum += part;   // from the smallest on
  return sum;
}

}  // namespace paceline::fuzz
