# Files of a wheel beside the Python module: the C library, and the sources of the drop-in library
# that `paceline preload` makes for an MPI. Used by pip and ./dev wheel only.
set(native paceline/native)
set(to_wheel COMPONENT wheel EXCLUDE_FROM_ALL)

# A wheel has no links: the name that a linker looks for is a script for it.
file(WRITE ${PROJECT_BINARY_DIR}/wheel/libpaceline.so "INPUT(libpaceline.so.${capi_abi})\n")
paceline_pkgconfig(${PROJECT_BINARY_DIR}/wheel/paceline.pc lib include)
install(FILES ${capi_header} DESTINATION ${native}/include/paceline ${to_wheel})
install(FILES $<TARGET_FILE:paceline> ${PROJECT_BINARY_DIR}/wheel/libpaceline.so
        DESTINATION ${native}/lib ${to_wheel})
install(FILES ${PROJECT_BINARY_DIR}/wheel/paceline.pc DESTINATION ${native}/lib/pkgconfig
        ${to_wheel})

install(TARGETS paceline_core ARCHIVE DESTINATION ${native}/drop_in ${to_wheel})
install(DIRECTORY src DESTINATION ${native}/drop_in ${to_wheel} FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY src/preload DESTINATION ${native}/drop_in/src ${to_wheel}
        FILES_MATCHING REGEX "\\.(cpp|c|h|def|map)$")
