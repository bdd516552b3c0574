# Given to a build of the whole llama.cpp tree as CMAKE_PROJECT_INCLUDE: compiles the large targets in lumps, which takes
# half the time. The files left out clash with others in one translation unit.
function(rowtide_unity_build)
  foreach(file mtmd-helper mtmd-helper-gen mtmd-audio clip)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/tools/mtmd/${file}.cpp
      TARGET_DIRECTORY mtmd PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  set_source_files_properties(${CMAKE_SOURCE_DIR}/common/json.cpp
    TARGET_DIRECTORY llama-common PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(llama llama-common mtmd server-context llama-server-impl
    PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL rowtide_unity_build)
