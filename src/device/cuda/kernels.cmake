# The reduce kernels for GPUs, where there is an nvcc: one file with machine code for some
# architectures and PTX for all later ones, which device/cuda/image.cpp takes in. A build without
# nvcc is complete but for these: devices then copy and refuse to combine.
set(PACELINE_CUDA_ARCHS "90" CACHE STRING
    "Architectures with machine code of their own, such as 80;90; PTX for 75 comes along")
find_program(PACELINE_NVCC nvcc HINTS ENV PACELINE_NVCC_DIR
             PATHS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin
             DOC "The CUDA compiler; none: no kernels")
if(PACELINE_NVCC)
  set(kernels ${CMAKE_CURRENT_BINARY_DIR}/paceline_kernels.fatbin)
  set(codes -gencode=arch=compute_75,code=compute_75)
  foreach(arch ${PACELINE_CUDA_ARCHS})
    list(APPEND codes -gencode=arch=compute_${arch},code=sm_${arch})
  endforeach()
  add_custom_command(OUTPUT ${kernels}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${PACELINE_NVCC} -std=c++17 -O3 --fmad=false
            -c -fatbin -Xfatbin --compress-all ${codes}
            -o ${kernels} ${PROJECT_SOURCE_DIR}/src/device/cuda/reduce.cu
    DEPENDS ${PROJECT_SOURCE_DIR}/src/device/cuda/reduce.cu
            ${PROJECT_SOURCE_DIR}/src/device/cuda/arithmetic.hpp
            ${PROJECT_SOURCE_DIR}/src/device/cuda/job.hpp
    COMMENT "Compiling reduce kernels for sm_${PACELINE_CUDA_ARCHS}" VERBATIM)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/device/cuda/image.cpp PROPERTIES
    COMPILE_DEFINITIONS "PACELINE_FATBIN=\"${kernels}\"" OBJECT_DEPENDS ${kernels}
    SKIP_PRECOMPILE_HEADERS ON)
endif()
