# hearth_unity(TARGET) -- with HEARTH_UNITY, the C files of each folder of TARGET are compiled as one, which spares a compiler
# most of its starts and headers. Static names of one folder must differ then; files whose names do not are compiled alone.
set(HEARTH_COMPILED_ALONE
    base/status.c model/profile/totals.c front/net/peers.c
    store/build/roll_close.c store/build/rule_step.c store/build/span_fold.c store/doctor/doctor_settings.c store/tasks/agents_read.c
    store/tasks/task_stacks.c store/tenants/store_rules.c
    front/query/svc_changes.c front/query/svc_explain.c front/query/svc_heatmap.c front/query/svc_timelines.c
    cli/files/cmd_uploads.c cli/flame/flame_export_svg.c cli/query/cmd_cardinality.c cli/query/cmd_heatmap.c)
# Of the upper layers, the files in which tests of the build with clang spend seconds: optimised, and so compiled alone.
set(HEARTH_OPTIMISED
    format/pprof/pprof_decode.c format/pprof/pprof_messages.c format/pprof/pprof_packed.c format/pprof/pprof_runs.c
    format/pprof/pprof_wire.c)
function(hearth_unity target)
  if(NOT HEARTH_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^${CMAKE_SOURCE_DIR}/(server|clients)/.*\\.c$")
  foreach(alone IN LISTS HEARTH_COMPILED_ALONE)
    list(FILTER sources EXCLUDE REGEX "/${alone}$")
  endforeach()
  if(HEARTH_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
    foreach(optimised IN LISTS HEARTH_OPTIMISED)
      set(found ${sources})
      list(FILTER found INCLUDE REGEX "/${optimised}$")
      set_source_files_properties(${found} PROPERTIES COMPILE_OPTIONS -O1)
      list(FILTER sources EXCLUDE REGEX "/${optimised}$")
    endforeach()
  endif()
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

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
  if((HEARTH_SANITIZE OR HEARTH_COVERAGE) AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND name MATCHES "^(store|engine|front|app)$")
    target_compile_options(hearth_${name} PRIVATE -O0 -Wno-format-overflow -Wno-format-truncation)
  endif()
  # The two layers that all tests spend time in: clang takes 5 s longer to optimise them, tests of parsers half of their time.
  if(HEARTH_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "Clang" AND name MATCHES "^(base|codec)$")
    target_compile_options(hearth_${name} PRIVATE -O1)
  endif()
  foreach(dep IN LISTS ARG_DEPENDS)
    target_link_libraries(hearth_${name} PUBLIC hearth_${dep})
  endforeach()
  hearth_unity(hearth_${name})
  target_link_libraries(hearth_${name} PRIVATE ${ARG_LIBS} PUBLIC Threads::Threads)
endfunction()
