// Image: the reduce kernels as nvcc has made them of reduce.cu: machine code for the architectures
// that were asked for, and PTX, which drivers compile for later ones.
#pragma once

namespace paceline::device {

// Those of the build, or of the file that the option cuda_kernels names. Null: built where there
// was no nvcc. Throws a usage error where the file cannot be read.
const void* kernel_image();

}  // namespace paceline::device
