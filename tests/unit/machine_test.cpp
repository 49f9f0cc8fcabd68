// Machines by name and by setting, and the bounds that fractions are taken of.
#include "model/machine.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "base/error.hpp"

using namespace paceline;

TEST_CASE("machine: names, settings, both") {
  for (const Machine& m : known_machines()) CHECK(machine_from(m.name).name == m.name);
  const Machine m = machine_from("alpha_us=5,gbit_per_s=8,reduce_gbyte_per_s=2,ranks_per_node=4");
  CHECK(m.across.alpha_s == doctest::Approx(5e-6));
  CHECK(m.across.beta_s_per_byte == doctest::Approx(1e-9));
  CHECK(m.gamma_s_per_byte == doctest::Approx(5e-10));
  CHECK(m.copy_s_per_byte == 0);
  CHECK(m.ranks_per_node == 4);
  const Machine edr = machine_from("edr-100g,inside_alpha_us=2,copy_gbyte_per_s=4");
  CHECK(edr.across.beta_s_per_byte == doctest::Approx(8e-11));
  CHECK(edr.inside.alpha_s == doctest::Approx(2e-6));
  CHECK(edr.copy_s_per_byte == doctest::Approx(2.5e-10));
  CHECK(describe(machine_from("edr-100g")) == "edr-100g: alpha 1.5 us, 100 Gbit/s, reduce 10 GB/s");
}

TEST_CASE("machine: three numbers") {
  const Machine m = machine_from("3e-5,4e-8,1e-10");
  CHECK(m.across.alpha_s == 3e-5);
  CHECK(m.across.beta_s_per_byte == 4e-8);
  CHECK(m.gamma_s_per_byte == 1e-10);
  CHECK(m.ranks_per_node == 1);
}

TEST_CASE("machine: its settings make it again") {
  for (const char* text : {"ethernet-10g", "lab-200mbit,ranks_per_node=3", "7.3e-5,4.1e-8,1e-10",
                           "alpha_us=0.1,copy_gbyte_per_s=3,task_us=7"}) {
    const Machine m = machine_from(text), again = machine_from(settings_of(m));
    CAPTURE(settings_of(m));
    CHECK(again.across.alpha_s == doctest::Approx(m.across.alpha_s).epsilon(1e-12));
    CHECK(again.across.beta_s_per_byte ==
          doctest::Approx(m.across.beta_s_per_byte).epsilon(1e-12));
    CHECK(again.inside.beta_s_per_byte ==
          doctest::Approx(m.inside.beta_s_per_byte).epsilon(1e-12));
    CHECK(again.gamma_s_per_byte == doctest::Approx(m.gamma_s_per_byte).epsilon(1e-12));
    CHECK(again.copy_s_per_byte == doctest::Approx(m.copy_s_per_byte).epsilon(1e-12));
    CHECK(again.task_s == doctest::Approx(m.task_s).epsilon(1e-12));
    CHECK(again.ranks_per_node == m.ranks_per_node);
  }
}

TEST_CASE("machine: what is not understood is refused") {
  for (const char* bad : {"", "edr", "edr-100g,", "gbit_per_s=", "gbit_per_s=fast", "alpha=1",
                          "alpha_us=-1", "alpha_us=nan", "ranks_per_node=0", "ranks_per_node=1.5",
                          "alpha_us=1,edr-100g", "1,2", "1,2,3,4", "1,-2,3", "1,nan,3", "5"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(machine_from(bad), Error);
  }
}

TEST_CASE("machine: messages inside a node and across") {
  Machine m = machine_from("edr-100g,ranks_per_node=3");
  CHECK(&m.link(0, 2) == &m.inside);
  CHECK(&m.link(2, 3) == &m.across);
  CHECK(m.inside.time_s(0) == m.inside.alpha_s);
}

TEST_CASE("machine: from which length on messages are long") {
  const std::string slower = "gbit_per_s=8,short_kib=8,long_gbit_per_s=4";
  const Link none = machine_from("gbit_per_s=8,short_kib=8,long_kib=32").across;
  const Link at_once = machine_from(slower).across;
  const Link later = machine_from(slower + ",long_kib=32").across;
  CHECK(!none.is_long(1 << 20));
  CHECK(!at_once.is_long(8 << 10));
  CHECK(at_once.is_long((8 << 10) + 1));
  CHECK(!later.is_long(32 << 10));
  CHECK(later.is_long((32 << 10) + 1));
  CHECK(later.time_s(32 << 10) == doctest::Approx((32 << 10) * 1e-9));
  CHECK(later.time_s(64 << 10) == doctest::Approx((64 << 10) * 2e-9));
}

TEST_CASE("machine: bounds") {
  const Machine m = machine_from("gbit_per_s=8,inside_gbit_per_s=80");   // 1 and 0.1 ns per byte
  const auto bound = [&](Collective c) { return bound_s(m, c, 8, 1e9); };
  CHECK(bound(Collective::allreduce) == doctest::Approx(1.75));
  CHECK(bound(Collective::broadcast) == doctest::Approx(1));
  CHECK(bound(Collective::reduce) == doctest::Approx(1));
  for (const Collective c : {Collective::reduce_scatter, Collective::allgather,
                             Collective::alltoall, Collective::gather, Collective::scatter})
    CHECK(bound(c) == doctest::Approx(0.875));
  CHECK(bound(Collective::barrier) == 0);
  CHECK(bound_s(m, Collective::allreduce, 1, 1e9) == 0);
}

TEST_CASE("machine: a node with several ranks is bound by its border") {
  Machine m = machine_from("gbit_per_s=8,inside_gbit_per_s=80,ranks_per_node=4");
  CHECK(bound_s(m, Collective::allreduce, 8, 1e9) == doctest::Approx(1));   // two big ranks
  CHECK(bound_s(m, Collective::allgather, 8, 1e9) == doctest::Approx(0.5));
  CHECK(bound_s(m, Collective::alltoall, 8, 1e9) == doctest::Approx(2));
  CHECK(bound_s(m, Collective::allreduce, 4, 1e9) == doctest::Approx(0.15));   // one node
}
