# ICU for the archive, linked in: libicuuc.a with the normalisation tables alone, 55 KB out of 31 MB of data.
find_program(icupkg icupkg REQUIRED)
find_program(genccode genccode REQUIRED)
find_library(icu_data icudata REQUIRED)
set(icu_folder ${PROJECT_BINARY_DIR}/icu)

function(run_in_icu_folder)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${icu_folder} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

execute_process(COMMAND ${CMAKE_AR} t ${icu_data} OUTPUT_VARIABLE icu_member OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT icu_member MATCHES "^(icudt[0-9]+)l_dat\\.")
  message(FATAL_ERROR "${icu_data} holds '${icu_member}', not ICU's data in little-endian order")
endif()
set(icu_name ${CMAKE_MATCH_1})
file(MAKE_DIRECTORY ${icu_folder}/all ${icu_folder}/used)
run_in_icu_folder(${CMAKE_AR} x ${icu_data} --output all)
run_in_icu_folder(${CMAKE_OBJCOPY} -O binary -j .rodata all/${icu_member} all/${icu_name}l.dat)
run_in_icu_folder(${icupkg} -d used -x nfkc.nrm all/${icu_name}l.dat)
run_in_icu_folder(${icupkg} -s used -a nfkc.nrm new used/${icu_name}l.dat)
file(RENAME ${icu_folder}/used/${icu_name}l.dat ${icu_folder}/used/${icu_name}.dat)  # names the symbol
run_in_icu_folder(${genccode} used/${icu_name}.dat)

# In the place of the library that pkg-config names.
add_library(rowtide_icudata STATIC ${icu_folder}/${icu_name}_dat.c cmake/portable_icu.c)
set(pkgcfg_lib_icu_icudata rowtide_icudata CACHE STRING "ICU's data, those that are used" FORCE)
