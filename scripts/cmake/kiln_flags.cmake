# The interface target kiln_flags: language, warnings and instrumentation of Kiln's own code.
add_library(kiln_flags INTERFACE)
target_include_directories(kiln_flags INTERFACE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/include"
                           "${CMAKE_BINARY_DIR}")
# Empty, as in a file that says `#define _GNU_SOURCE` itself: the same definition twice is fine.
target_compile_definitions(kiln_flags INTERFACE _GNU_SOURCE=)
target_compile_options(kiln_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum -Wstrict-prototypes
  -Wmissing-prototypes -Wwrite-strings -Wvla
  -ffp-contract=off      # the interpreter's rounding must not depend on the compiler
  -fno-strict-overflow -fno-omit-frame-pointer
  # No machine paths in what is built.
  "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=" "-ffile-prefix-map=${CMAKE_BINARY_DIR}=.")

if(KILN_STRESS)
  target_compile_definitions(kiln_flags INTERFACE KILN_STRESS)
endif()

# Known: what `make check` was seen clean with. Others may warn about new things.
set(KILN_KNOWN_COMPILER OFF)
if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 11
    AND CMAKE_C_COMPILER_VERSION VERSION_LESS 15)
   OR (CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 14
       AND CMAKE_C_COMPILER_VERSION VERSION_LESS 20))
  set(KILN_KNOWN_COMPILER ON)
endif()
if(KILN_WERROR)
  if(KILN_KNOWN_COMPILER)
    target_compile_options(kiln_flags INTERFACE -Werror)
  else()
    message(STATUS "KILN_WERROR: ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} is not a "
                   "compiler this was checked with; warnings stay warnings")
  endif()
endif()

set(KILN_NO_UNDEFINED "-Wl,--no-undefined")
if(KILN_SANITIZE)
  set(KILN_NO_UNDEFINED "") # clang leaves the sanitizer's symbols to the executable
  target_compile_options(kiln_flags INTERFACE "-fsanitize=${KILN_SANITIZE}"
                         -fno-sanitize-recover=all)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU") # instrumented code confuses gcc's flow analysis
    target_compile_options(kiln_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  add_link_options("-fsanitize=${KILN_SANITIZE}")
endif()
if(KILN_COVERAGE)
  target_compile_options(kiln_flags INTERFACE --coverage)
  add_link_options(--coverage)
endif()
if(KILN_FUZZ)
  target_compile_options(kiln_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
