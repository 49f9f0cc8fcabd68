# libpaceline.so: the C interface by itself, with its header and a pkg-config file.
include(GNUInstallDirs)

# The header is where its users look: its numbers are the ones that count.
set(capi_header ${PROJECT_SOURCE_DIR}/include/paceline/paceline.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${capi_header})
file(READ ${capi_header} capi_text)
string(REGEX MATCH "define PACELINE_VERSION \"([^\"]*)\"" matched "${capi_text}")
if(NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "paceline.h says version '${CMAKE_MATCH_1}', CMakeLists.txt "
                      "'${PROJECT_VERSION}'; make them equal")
endif()
string(REGEX MATCH "define PACELINE_ABI ([0-9]+)" matched "${capi_text}")
set(capi_abi ${CMAKE_MATCH_1})

file(GLOB capi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/capi/*.cpp)
add_library(paceline SHARED ${capi_sources})
target_link_libraries(paceline PRIVATE paceline_core)
target_include_directories(paceline INTERFACE include)
paceline_warnings(paceline)
paceline_precompile(paceline library)
set(capi_exports ${PROJECT_SOURCE_DIR}/src/capi/exports.map)
set_target_properties(paceline PROPERTIES
  VERSION ${capi_abi} SOVERSION ${capi_abi} LINK_DEPENDS ${capi_exports}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_link_options(paceline PRIVATE -Wl,--version-script=${capi_exports})
if(NOT PACELINE_SANITIZE)  # a sanitizer's functions come with the program
  target_link_options(paceline PRIVATE -Wl,--no-undefined)
endif()

install(TARGETS paceline LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT capi)
install(FILES ${capi_header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline COMPONENT capi)
# Found from where the file lies, so that the whole may be moved.
function(paceline_pkgconfig file libdir includedir)
  file(RELATIVE_PATH prefix /${libdir}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/src/capi/paceline.pc.in ${file} @ONLY)
endfunction()
paceline_pkgconfig(paceline.pc ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/paceline.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT capi)
