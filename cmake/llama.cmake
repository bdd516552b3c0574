# Finds llama.cpp and gives imported targets:
#   llama::headers                             llama.h, ggml*.h and ggml-backend-impl.h (all the plug-in needs)
#   llama::llama, llama::ggml, llama::ggml-base  the libraries, for programs that run a model
# ROWTIDE_LLAMA_DIR is a folder {src,bin} as scripts/llama_setup.sh makes it, or a llama.cpp source tree with its
# build folder inside. Without any, everything that needs no llama.cpp still builds.
set(ROWTIDE_LLAMA_DIR "" CACHE PATH "llama.cpp to build against; empty: the one that set-up unpacked, if it is there")
set(ROWTIDE_LLAMA_BIN "" CACHE PATH "its libraries and programs; empty: looked for inside ROWTIDE_LLAMA_DIR")

if(NOT ROWTIDE_LLAMA)
  return()
endif()

set(llama_dir ${ROWTIDE_LLAMA_DIR})
if(NOT llama_dir)
  set(kind)
  if(CMAKE_CROSSCOMPILING)
    set(kind arm)
  endif()
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/llama_setup.sh where ${kind} OUTPUT_VARIABLE llama_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

find_path(llama_source ggml/src/ggml-backend-impl.h PATHS ${llama_dir}/src ${llama_dir} NO_DEFAULT_PATH NO_CACHE
  NO_CMAKE_FIND_ROOT_PATH)
if(NOT llama_source)
  if(ROWTIDE_LLAMA_DIR)
    message(FATAL_ERROR "ROWTIDE_LLAMA_DIR=${ROWTIDE_LLAMA_DIR} holds no llama.cpp source tree "
      "(looked for ggml/src/ggml-backend-impl.h in it and in its src/)")
  endif()
  message(STATUS "llama.cpp: not set up, so neither the plug-in nor `generate` is built")
  return()
endif()

add_library(llama::headers INTERFACE IMPORTED GLOBAL)
target_include_directories(llama::headers INTERFACE
  ${llama_source}/include ${llama_source}/ggml/include ${llama_source}/ggml/src)

# Prebuilt libraries are called libllama.v0.5.0.so, a build's own libllama.so or libllama.so.0.
function(find_llama_library name folder)
  file(GLOB files ${folder}/lib${name}.so ${folder}/lib${name}.v*.so ${folder}/lib${name}.so.*)
  if(files)
    list(GET files 0 file)
    set(llama_library_${name} ${file} PARENT_SCOPE)
  endif()
endfunction()

foreach(folder ${ROWTIDE_LLAMA_BIN} ${llama_dir}/bin ${llama_dir}/build/bin ${llama_dir}/build)
  find_llama_library(llama ${folder})
  find_llama_library(ggml ${folder})
  find_llama_library(ggml-base ${folder})
  if(llama_library_llama AND llama_library_ggml AND llama_library_ggml-base)
    set(llama_bin ${folder})
    break()
  endif()
endforeach()
if(NOT llama_bin)
  message(STATUS "llama.cpp: headers of ${llama_source}, no libraries, so `generate` is not built")
  return()
endif()

foreach(name llama ggml ggml-base)
  add_library(llama::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(llama::${name} PROPERTIES IMPORTED_LOCATION ${llama_library_${name}})
  target_link_libraries(llama::${name} INTERFACE llama::headers)
endforeach()
target_link_libraries(llama::ggml INTERFACE llama::ggml-base)
target_link_libraries(llama::llama INTERFACE llama::ggml)
message(STATUS "llama.cpp: headers of ${llama_source}, libraries of ${llama_bin}")
