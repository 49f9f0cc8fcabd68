#include "binding.hpp"

NB_MODULE(_core, m) {
  using namespace paceline::binding;
  m.doc() = "The compiled core of Paceline. Use it through the package `paceline`.";
  bind_errors(m);
  bind_communicator(m);
  bind_world(m);
  bind_tools(m);
}
