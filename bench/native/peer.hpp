// Peer: an MPI's own collectives, which are measured beside Paceline's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace paceline::peers {

// Form of an MPI's call: its blocking collective; several non-blocking ones at once, on equal parts
// of the message, and a wait for all of them; a ring of its Sendrecv.
enum class Form { blocking, concurrent, sendrecv_ring };
Form form_from(std::string_view name);  // throws a usage error

// Names are those of the command line. `count`: elements of a unit, which one rank sends to, or
// receives from, another; of the whole vector if a collective has no units.
struct MpiCall {
  std::string collective, type = "uint8", op = "sum";
  int root = 0;
  const void* input = nullptr;  // equal to output: in place, if the collective allows it
  void* output = nullptr;
  std::size_t count = 0;
  std::size_t element = 1;  // bytes
  Form form = Form::blocking;
  std::size_t parts = 1;  // number of calls of `concurrent`
};

class Peer {
 public:
  // `abi`: the binary interface, as MpiLibrary names it. `path`: of the library, which this process
  // has loaded. `communicator`: the address of an MPI_Comm of it, which outlives the peer.
  static std::unique_ptr<Peer> open(std::string_view abi, const std::string& path,
                                    const void* communicator);
  virtual ~Peer() = default;

  // Returns a function that makes the call and completes it. Throws a refusal for types and
  // operations that MPI lacks (16-bit floats, average) and for collectives that the form cannot do.
  virtual std::function<void()> prepared(const MpiCall& call) const = 0;
};

}  // namespace paceline::peers
