# The strict set, for our own sources only (generated code sets its own flags).
set(HEARTH_C_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes
    -Wmissing-prototypes -Wold-style-definition -Wvla -Wundef -Wcast-qual -Wwrite-strings
    -Wpointer-arith -Wformat=2 -Wimplicit-fallthrough -Wdouble-promotion -Wdate-time -fno-common)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND HEARTH_C_WARNINGS
       -Werror -Wcast-align=strict -Wformat-signedness -Wduplicated-cond -Wduplicated-branches -Wlogical-op
       -Wjump-misses-init -Walloca -Wtrampolines -Wbad-function-cast)
else()
  # Warnings of clang are no errors: it builds what only tests run, and what a release of gcc lets pass must not
  # keep anybody from fuzzing.
  list(APPEND HEARTH_C_WARNINGS
       -Wcomma -Wassign-enum -Wunreachable-code-aggressive -Wloop-analysis
       -Wmissing-variable-declarations)
endif()
# Files that are compiled as one redefine each other's macros, and other builds warn of all else.
if(HEARTH_UNITY)
  set(HEARTH_C_WARNINGS -w)
endif()
add_compile_definitions(_GNU_SOURCE)
