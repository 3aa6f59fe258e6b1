# hearth_layer(NAME [DEPENDS layer...] [LIBS target...]) -- a static library hearth_NAME of server/NAME/*.c,
# allowed to see what server/LAYERS names (the linker repeats those arrows).
function(hearth_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*/*.c)
  if(NOT sources AND NOT ARG_SOURCES)
    return()
  endif()
  add_library(hearth_${name} STATIC ${sources} ${ARG_SOURCES})
  target_include_directories(hearth_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include)
  target_include_directories(hearth_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(hearth_${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:${HEARTH_C_WARNINGS}>)
  # Instrumented, gcc takes 2.5 times as long to optimise a file, and tests spend their processor time in other layers.
  # What it says of formats it says in the plain build, and gcc 12 crashes over it without optimisation.
  if((HEARTH_SANITIZE OR HEARTH_COVERAGE) AND NOT HEARTH_FUZZ AND name MATCHES "^(store|engine|front|app)$")
    target_compile_options(hearth_${name} PRIVATE -O0 -Wno-format-overflow -Wno-format-truncation)
  endif()
  foreach(dep IN LISTS ARG_DEPENDS)
    target_link_libraries(hearth_${name} PUBLIC hearth_${dep})
  endforeach()
  target_link_libraries(hearth_${name} PRIVATE ${ARG_LIBS} PUBLIC Threads::Threads)
endfunction()
