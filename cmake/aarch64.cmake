# Toolchain file: builds for Arm, 64 bits, with Debian's cross-compiler and the libraries that scripts/arm_setup.sh
# fetches. What was built runs here under QEMU's emulation of a user's process.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

if(NOT ROWTIDE_SYSROOT)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../scripts/arm_setup.sh where OUTPUT_VARIABLE sysroot
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(ROWTIDE_SYSROOT ${sysroot} CACHE PATH "Root of an Arm machine: C library, other libraries, headers")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ROWTIDE_SYSROOT)
if(NOT EXISTS ${ROWTIDE_SYSROOT}/usr/include)
  message(FATAL_ERROR "no arm64 libraries in ${ROWTIDE_SYSROOT}: run scripts/setup.sh arm")
endif()

set(CMAKE_SYSROOT ${ROWTIDE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ROWTIDE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${ROWTIDE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ROWTIDE_SYSROOT}/usr/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${ROWTIDE_SYSROOT})
