# Code generators: protobuf-c, re2c, Lemon, and files embedded as C arrays. All output goes to the build
# tree, is never edited and never committed.
find_program(PROTOC protoc REQUIRED)
find_program(PROTOC_C protoc-c REQUIRED)
find_program(RE2C re2c REQUIRED)
find_program(LEMON lemon REQUIRED)

# hearth_proto_library(TARGET file.proto...) -- paths below proto/. Headers are included as
# "hearth/pb/<path>.pb-c.h".
function(hearth_proto_library target)
  set(out ${CMAKE_BINARY_DIR}/generated/hearth/pb)
  file(MAKE_DIRECTORY ${out})
  set(sources "")
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" base ${proto})
    add_custom_command(
      OUTPUT ${out}/${base}.pb-c.c ${out}/${base}.pb-c.h
      COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/proto --c_out=${out} ${proto}
      DEPENDS ${CMAKE_SOURCE_DIR}/proto/${proto}
      VERBATIM)
    list(APPEND sources ${out}/${base}.pb-c.c)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY HEARTH_PROTOS ${ARGN})
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated ${out})
  target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUF_C)
  # Tables, and functions of one line that call Debian's libprotobuf-c: a sanitizer has nothing to find in them, and takes
  # two thirds of the time in which gcc compiles them.
  if(HEARTH_SANITIZE AND NOT HEARTH_FUZZ)
    target_compile_options(${target} PRIVATE -O0 -fno-sanitize=all)
  endif()
endfunction()

# hearth_descriptors(OUT): all of these as one file, a FileDescriptorSet with what they import.
function(hearth_descriptors out)
  get_property(protos GLOBAL PROPERTY HEARTH_PROTOS)
  set(file ${CMAKE_BINARY_DIR}/generated/descriptors.pb)
  list(TRANSFORM protos PREPEND ${CMAKE_SOURCE_DIR}/proto/ OUTPUT_VARIABLE inputs)
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${PROTOC} --proto_path=${CMAKE_SOURCE_DIR}/proto --include_imports
            --descriptor_set_out=${file} ${protos}
    DEPENDS ${inputs} VERBATIM)
  set(${out} ${file} PARENT_SCOPE)
endfunction()

# hearth_re2c(OUT input.re) and hearth_lemon(OUT input.y): sets OUT to the generated .c file.
function(hearth_re2c out input)
  get_filename_component(base ${input} NAME_WE)
  set(c ${CMAKE_BINARY_DIR}/generated/grammar/${base}.c)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/grammar)
  add_custom_command(
    OUTPUT ${c}
    COMMAND ${RE2C} -W -Werror --no-debug-info --no-generation-date -o ${c} ${input}
    DEPENDS ${input} VERBATIM)
  set(${out} ${c} PARENT_SCOPE)
endfunction()

function(hearth_lemon out input)
  get_filename_component(base ${input} NAME_WE)
  set(dir ${CMAKE_BINARY_DIR}/generated/grammar)
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(
    OUTPUT ${dir}/${base}.c ${dir}/${base}.h
    COMMAND ${LEMON} -q -l -d${dir} ${input}
    DEPENDS ${input} VERBATIM)
  set_source_files_properties(${dir}/${base}.c PROPERTIES COMPILE_OPTIONS
                              "-Wno-unused-parameter;-Wno-unused-variable")
  set(${out} ${dir}/${base}.c PARENT_SCOPE)
endfunction()

# hearth_embed(OUT SYMBOL file...): a .c file with `const struct hearth_embedded SYMBOL[]` (name, bytes,
# size; ends with a NULL name), see include/hearth/base/embedded.h.
function(hearth_embed out symbol)
  set(c ${CMAKE_BINARY_DIR}/generated/embed_${symbol}.c)
  add_custom_command(
    OUTPUT ${c}
    COMMAND ${CMAKE_COMMAND} -DOUT=${c} -DSYMBOL=${symbol} "-DFILES=${ARGN}"
            -P ${CMAKE_SOURCE_DIR}/server/cmake/EmbedFiles.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/server/cmake/EmbedFiles.cmake VERBATIM)
  set(${out} ${c} PARENT_SCOPE)
endfunction()

# hearth_embed_queries(OUT file...): a .c file with the constants that server/store/pg/queries.h declares.
function(hearth_embed_queries out)
  set(c ${CMAKE_BINARY_DIR}/generated/embed_queries.c)
  add_custom_command(
    OUTPUT ${c}
    COMMAND ${CMAKE_COMMAND} -DOUT=${c} "-DFILES=${ARGN}" -P ${CMAKE_SOURCE_DIR}/server/cmake/EmbedQueries.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/server/cmake/EmbedQueries.cmake VERBATIM)
  set(${out} ${c} PARENT_SCOPE)
endfunction()
