// Image: the reduce kernels, compiled by nvcc from reduce.cu: machine code for the configured
// architectures, and PTX, which drivers compile for later ones.
#pragma once

namespace paceline::device {

// Returns the kernels of the build, or of the file that the option cuda_kernels names. Null if
// there was no nvcc at the build. Throws a usage error if the file cannot be read.
const void* kernel_image();

}  // namespace paceline::device
