# Runs within cpack, when the components are installed below its temporary directory and nothing is packed yet: adds what
# only packages have, moves debug symbols into a package of their own, compresses. Times come from SOURCE_DATE_EPOCH.
cmake_minimum_required(VERSION 3.25)
if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  message(FATAL_ERROR "SOURCE_DATE_EPOCH is not set; `./dev package` sets it")
endif()
set(here ${CPACK_HEARTH_SOURCE}/server/package)
set(stage ${CPACK_TEMPORARY_DIRECTORY})
list(GET CPACK_HEARTH_TOOLS 0 OBJCOPY)
list(GET CPACK_HEARTH_TOOLS 1 STRIP)
list(GET CPACK_HEARTH_TOOLS 2 READELF)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

# Configuration.
configure_file(${here}/hearthd.default ${stage}/hearthd/etc/default/hearthd COPYONLY)
configure_file(${here}/hearthd.yaml ${stage}/hearthd/etc/hearth/hearthd.yaml COPYONLY)

# Symbols: /usr/lib/debug/.build-id/xx/yyyy.debug.
file(GLOB programs ${stage}/*/usr/bin/* ${stage}/libhearth/usr/lib/*/*.so.*)
foreach(program IN LISTS programs)
  if(IS_SYMLINK ${program})
    continue()
  endif()
  execute_process(COMMAND ${READELF} -n ${program} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
  if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
    message(FATAL_ERROR "${program} has no build id")
  endif()
  set(folder ${stage}/hearth-dbgsym/usr/lib/debug/.build-id/${CMAKE_MATCH_1})
  file(MAKE_DIRECTORY ${folder})
  run(${OBJCOPY} --only-keep-debug --compress-debug-sections ${program} ${folder}/${CMAKE_MATCH_2}.debug)
  run(chmod 644 ${folder}/${CMAKE_MATCH_2}.debug)
  run(${STRIP} --remove-section=.comment --remove-section=.note ${program})
endforeach()
file(GLOB archives ${stage}/libhearth-dev/usr/lib/*/*.a)
foreach(archive IN LISTS archives)
  run(${STRIP} --strip-debug --enable-deterministic-archives ${archive})
endforeach()
file(GLOB libraries ${stage}/libhearth/usr/lib/*/*.so.*)
run(chmod 644 ${libraries}) # as Debian has them

# Documents of each package: copyright, changelog, compressed manual pages.
string(TIMESTAMP YEAR %Y UTC)
string(TIMESTAMP DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} key)
  set(doc ${stage}/${component}/usr/share/doc/${CPACK_DEBIAN_${key}_PACKAGE_NAME})
  configure_file(${here}/copyright.in ${doc}/copyright @ONLY)
  configure_file(${here}/changelog.in ${doc}/changelog @ONLY)
  run(chmod 644 ${doc}/copyright ${doc}/changelog)
  if(EXISTS ${here}/${component}.overrides)
    configure_file(${here}/${component}.overrides
                   ${stage}/${component}/usr/share/lintian/overrides/${CPACK_DEBIAN_${key}_PACKAGE_NAME} COPYONLY)
  endif()
  file(GLOB pages ${stage}/${component}/usr/share/man/man1/*.1)
  run(gzip -9nf ${doc}/changelog ${pages})
endforeach()
