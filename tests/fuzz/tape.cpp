#include "fuzz/command.hpp"
namespace paceline::fuzz {
int write_tapes(const Request&) { return 2; }
int judge_tapes(const Request&) { return 2; }
}
