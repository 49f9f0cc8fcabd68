# The drop-in library, once for every MPI that PACELINE_MPICC has named: build/preload/<its name>/.
#
# Two files each. The stub is preloaded into every process and needs no MPI; what serves its calls
# is compiled with that MPI's mpi.h, and finds its functions in the process that loads it.

# Says why there is no drop-in library for this compiler: an error where it was asked for now. One
# of an earlier time is left out, and asked again by the next build while the file is there: Intel's
# works in some environments only.
function(paceline_lacks_preload mpicc why)
  if(mpicc IN_LIST asked)
    message(FATAL_ERROR "--mpicc ${mpicc}: ${why}")
  endif()
  message(STATUS "No drop-in library for ${mpicc}, which an earlier --mpicc has named: ${why}")
endfunction()

# What `mpicc -show` answers says which MPI it belongs to: `paceline preload` compares it. An empty
# name: there is none.
# `has`: which families of calls it declares, as macros for the stub.
function(paceline_ask_mpicc mpicc shown flags name has)
  set(${name} "" PARENT_SCOPE)
  if(NOT EXISTS ${mpicc})
    paceline_lacks_preload(${mpicc} "there is no such file")
    return()
  endif()
  execute_process(COMMAND ${mpicc} -show OUTPUT_VARIABLE answer RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET TIMEOUT 60)
  if(NOT status EQUAL 0)
    paceline_lacks_preload(${mpicc} "`mpicc -show` fails (${status})")
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${answer}")
  list(FILTER words INCLUDE REGEX "^-[ID]")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/preload-ask.c
       "#include <mpi.h>\n#if defined(OPEN_MPI)\n"
       "mpi openmpi OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION\n"
       "#elif defined(I_MPI_VERSION)\nmpi impi I_MPI_VERSION\n"
       "#else\nmpi mpich MPICH_VERSION\n#endif\n")
  execute_process(COMMAND ${CMAKE_C_COMPILER} -E -P ${words} preload-ask.c
                  WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
                  OUTPUT_VARIABLE text RESULT_VARIABLE status ERROR_QUIET)
  if(NOT status EQUAL 0)
    paceline_lacks_preload(${mpicc} "`mpicc -show` names no folder with mpi.h (Intel's wants \
I_MPI_ROOT to be set): ${answer}")
    return()
  endif()
  if(NOT "${text}" MATCHES "mpi (openmpi|impi|mpich) ([0-9. \"a-z]+)")
    paceline_lacks_preload(${mpicc} "its mpi.h names none of the versions that are known")
    return()
  endif()
  set(family ${CMAKE_MATCH_1})
  string(REGEX REPLACE "[ \"]" "" version "${CMAKE_MATCH_2}")
  string(SHA256 hash "${answer}")
  string(SUBSTRING ${hash} 0 6 hash)  # two MPIs of one version may be there
  set(${shown} "${answer}" PARENT_SCOPE)
  set(${flags} "${words}" PARENT_SCOPE)
  set(${name} ${family}-${version}-${hash} PARENT_SCOPE)
  set(found)
  if(text MATCHES "MPI_Gather_c *[(]")
    list(APPEND found PACELINE_MPI_HAS_LONG_COUNTS)
  endif()
  if(text MATCHES "MPI_Gather_init *[(]")
    list(APPEND found PACELINE_MPI_HAS_PERSISTENT)
  endif()
  set(${has} ${found} PARENT_SCOPE)
endfunction()

function(paceline_hide target map)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE -Wl,--version-script=${map})
endfunction()

function(paceline_add_preload mpicc)
  paceline_ask_mpicc(${mpicc} shown flags name has)
  if(name STREQUAL "" OR TARGET paceline_mpi_${name})
    return()
  endif()
  set(here ${PROJECT_SOURCE_DIR}/src/preload)
  set(folder ${PROJECT_SOURCE_DIR}/build/preload/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${here}/*.cpp)
  add_library(paceline_mpi_calls_${name} SHARED ${sources})
  target_compile_options(paceline_mpi_calls_${name} PRIVATE ${flags})
  target_compile_definitions(paceline_mpi_calls_${name} PRIVATE ${has})
  target_link_libraries(paceline_mpi_calls_${name} PRIVATE paceline_core)
  paceline_precompile(paceline_mpi_calls_${name} library)
  add_library(paceline_mpi_${name} SHARED ${here}/stub.c ${here}/narrow.c
              ${here}/static_program.c)
  target_compile_definitions(paceline_mpi_${name} PRIVATE ${has})
  target_link_libraries(paceline_mpi_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  paceline_hide(paceline_mpi_calls_${name} ${here}/calls.map)
  paceline_hide(paceline_mpi_${name} ${here}/stub.map)
  foreach(part paceline_mpi_calls paceline_mpi)
    paceline_warnings(${part}_${name})
    set_target_properties(${part}_${name} PROPERTIES OUTPUT_NAME ${part}
                          LIBRARY_OUTPUT_DIRECTORY ${folder})
  endforeach()
  file(WRITE ${folder}/mpicc.txt "${shown}\n")
endfunction()

# `-DPACELINE_MPICC=path` adds one, and must find it; those of earlier times stay while they can. It
# is forgotten before it can fail: a later build does not ask for it again.
set(asked ${PACELINE_MPICC})
unset(PACELINE_MPICC CACHE)
set(all ${PACELINE_MPICC_ALL} ${asked})
list(REMOVE_DUPLICATES all)
set(left)
foreach(mpicc ${all})
  paceline_add_preload(${mpicc})
  if(EXISTS ${mpicc})
    list(APPEND left ${mpicc})
  endif()
endforeach()
set(PACELINE_MPICC_ALL "${left}" CACHE INTERNAL "Compilers of the MPIs that have a drop-in library")
