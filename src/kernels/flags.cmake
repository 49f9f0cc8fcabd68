# Compiler flags of the kernel files. Include it in the CMakeLists.txt that adds these sources to a
# target: source properties are visible only in the directory that sets them.
#
# -ffp-contract=off keeps a * b + c two roundings everywhere, so that all targets give equal bits.
# -O3 also in debug builds: the tests run millions of elements through these files.
set(paceline_kernel_flags -O3 -ffp-contract=off)
if(PACELINE_SANITIZE)
  # A check before every access makes these files long: half a minute of compiling each at -O3.
  set(paceline_kernel_flags -Og -ffp-contract=off)
  if(PACELINE_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The checks are called, not written out, which halves the rest; they find the same.
    list(APPEND paceline_kernel_flags --param=asan-instrumentation-with-call-threshold=0)
  endif()
endif()
set(paceline_avx2_flags "")
set(paceline_avx512_flags "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(paceline_avx2_flags -mavx2 -mfma -mf16c)
  set(paceline_avx512_flags
      -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)
endif()

set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/kernels/reduce_portable.cpp
  PROPERTIES COMPILE_OPTIONS "${paceline_kernel_flags}")
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/kernels/reduce_avx2.cpp
  PROPERTIES COMPILE_OPTIONS "${paceline_kernel_flags};${paceline_avx2_flags}")
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/kernels/reduce_avx512.cpp
  PROPERTIES COMPILE_OPTIONS "${paceline_kernel_flags};${paceline_avx512_flags}")

# Their one source means something else in each of the three files, and a shared precompiled header
# would have been built without their flags.
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/kernels/reduce_portable.cpp
  ${CMAKE_SOURCE_DIR}/src/kernels/reduce_avx2.cpp
  ${CMAKE_SOURCE_DIR}/src/kernels/reduce_avx512.cpp
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
