# For the archive, which runs on distributions other than the one it was built on: other libraries than the C library,
# libstdc++ and llama.cpp's are linked in, and no path of this machine stays in what is built.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Debian has no libfmt.a. This is it, made of the package's headers.
find_path(fmt_headers fmt/format-inl.h REQUIRED)
add_library(rowtide_fmt STATIC cmake/portable_fmt.cc)
target_include_directories(rowtide_fmt SYSTEM PUBLIC ${fmt_headers})
add_library(fmt::fmt ALIAS rowtide_fmt)

include(cmake/portable_icu.cmake)
