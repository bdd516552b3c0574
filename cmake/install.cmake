# What `cmake --install` puts where. Nothing installed knows its prefix, so the whole may be moved. Three components:
#   program  bin/rowtide, llama.cpp's libraries in lib/rowtide/, the plug-in lib/librowtide-ggml.so
#   c        the C interface: rowtide.h, the shared library that exports only its functions, and rowtide.pc
#   cxx      the C++ interface: all headers, the static library, and the CMake package
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# --- program ---
install(TARGETS rowtide_program RUNTIME COMPONENT program)
if(TARGET rowtide_ggml_plugin)
  install(TARGETS rowtide_ggml_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program)
endif()
if(TARGET llama::llama)
  # The CPU back ends are found beside libggml. Symbolic links are kept, with what they lead to.
  file(RELATIVE_PATH to_llama ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/rowtide)
  set_target_properties(rowtide_program PROPERTIES INSTALL_RPATH "$ORIGIN/${to_llama}")
  install(CODE "
    file(GLOB libraries ${llama_bin}/libllama.* ${llama_bin}/libggml.* ${llama_bin}/libggml-*)
    list(FILTER libraries INCLUDE REGEX [[\\.so(\\.|$)]])
    file(INSTALL \${libraries} DESTINATION \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/rowtide
      USE_SOURCE_PERMISSIONS FOLLOW_SYMLINK_CHAIN)" COMPONENT program)
endif()

# --- c ---
# Its C++ stays inside: a C program needs no C++ compiler, and one in C++ may have its own fmt or libstdc++.
set(exports ${PROJECT_SOURCE_DIR}/cmake/c_exports.map)
add_library(rowtide_c SHARED $<TARGET_OBJECTS:rowtide>)
set_target_properties(rowtide_c PROPERTIES OUTPUT_NAME rowtide EXPORT_NAME c VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${exports})
target_link_libraries(rowtide_c PRIVATE $<TARGET_PROPERTY:rowtide,LINK_LIBRARIES>)
target_link_options(rowtide_c PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)

# What a program needs that links the static library: libraries by name, and pkg-config's modules for the CMake package.
set(libs_private -lfmt)
set(find_modules "")
get_target_property(links rowtide LINK_LIBRARIES)
foreach(link ${links})
  if(link MATCHES "^PkgConfig::(.*)$")
    set(module ${CMAKE_MATCH_1})
    list(TRANSFORM ${module}_LIBRARIES PREPEND -l OUTPUT_VARIABLE libraries)
    list(APPEND libs_private ${libraries})
    string(APPEND find_modules "rowtide_find(${module} ${${module}_MODULE_NAME})\n")
  endif()
endforeach()
list(JOIN libs_private " " libs_private)
string(APPEND libs_private " -lstdc++ -lm -pthread")
if(ROWTIDE_PORTABLE)
  set(libs_private "")
endif()
file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/rowtide.pc.in rowtide.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rowtide.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT c)
install(FILES include/rowtide/rowtide.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rowtide COMPONENT c)

install(TARGETS rowtide_c EXPORT rowtide LIBRARY COMPONENT c INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

if(ROWTIDE_PORTABLE)
  # In the archive, these stand alone: whatever loads them may bring another libstdc++, or none. A static C++ library
  # would be of use with the compiler and the libraries of this machine only.
  foreach(target rowtide_c rowtide_ggml_plugin)
    if(TARGET ${target})
      # Without collection of what is not called, libstdc++.a of Debian 12 asks for a C library of 2022 (arc4random).
      target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--gc-sections)
    endif()
  endforeach()
  return()
endif()

# --- cxx ---
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rowtide)
install(TARGETS rowtide EXPORT rowtide ARCHIVE COMPONENT cxx INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/rowtide DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cxx)
install(EXPORT rowtide NAMESPACE rowtide:: FILE rowtide-targets.cmake DESTINATION ${package_dir} COMPONENT cxx)
configure_package_config_file(cmake/rowtide-config.cmake.in rowtide-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(rowtide-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rowtide-config.cmake ${PROJECT_BINARY_DIR}/rowtide-config-version.cmake
  DESTINATION ${package_dir} COMPONENT cxx)
