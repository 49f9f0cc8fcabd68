#include "device/cuda/image.hpp"

#include <string>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/options.hpp"

#ifdef PACELINE_FATBIN   // the path of what nvcc has made
asm(R"(
  .section .rodata
  .balign 64
  .globl paceline_kernel_image
  .hidden paceline_kernel_image
paceline_kernel_image:
  .incbin ")" PACELINE_FATBIN R"("
  .byte 0
  .previous
)");
extern "C" const unsigned char paceline_kernel_image[];
#endif

namespace paceline::device {

const void* kernel_image() {
  static const std::string* const file = [] {
    auto* content = new std::string;   // the driver may read it as long as the process lives
    const std::string path = text_of(Option::cuda_kernels);
    if (path.empty()) return content;
    *content = contents_of(path);
    if (content->empty())
      fail(Fault::usage, "device: PACELINE_CUDA_KERNELS names ", path, ", which cannot be read or "
           "is empty; nvcc -fatbin makes such a file.");
    return content;
  }();
  if (!file->empty()) return file->data();
#ifdef PACELINE_FATBIN
  return paceline_kernel_image;
#else
  return nullptr;
#endif
}

}  // namespace paceline::device
