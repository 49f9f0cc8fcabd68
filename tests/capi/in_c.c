/* The header as a C compiler sees it. */
#include <paceline/paceline.h>

const paceline_call kCallOfC = {
    .size = sizeof(paceline_call), .collective = PACELINE_BARRIER, .type = PACELINE_BOOL,
    .op = PACELINE_LOGICAL_XOR, .root = 1, .count = 2, .algorithm = "some", .segments = 3,
    .window = 4, .radix = 7, .blocks = 8, .uneven = 5, .timeout_ms = 6, .tag = 9, .priority = -2};

const size_t kSizesOfC[5] = {sizeof(paceline_call), sizeof(paceline_status),
                             sizeof(paceline_collective), sizeof(paceline_type),
                             sizeof(paceline_op)};
