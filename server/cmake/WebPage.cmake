# The web page (clients/web) as a table of files within hearthd. It is built in the build directory, of copies, so that the
# tree stays as it is. Packages are those of package-lock.json, from the registry that npm is set to; their scripts do not
# run.
option(HEARTH_UI "Build the web page into hearthd: needs Node 18 or later, npm and zopfli" ON)

# hearth_web_page(OUT): a .c file with hearth_embedded_web, which is empty without HEARTH_UI.
function(hearth_web_page out)
  set(c ${CMAKE_BINARY_DIR}/generated/embed_web.c)
  set(embed ${CMAKE_SOURCE_DIR}/server/cmake/EmbedFiles.cmake)
  set(${out} ${c} PARENT_SCOPE)
  if(NOT HEARTH_UI)
    add_custom_command(OUTPUT ${c} DEPENDS ${embed} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DOUT=${c} -DSYMBOL=hearth_embedded_web -DFILES= -P ${embed})
    return()
  endif()

  find_program(NPM npm)
  find_program(NODE NAMES node nodejs)
  find_program(ZOPFLI zopfli)
  if(NOT NPM OR NOT NODE OR NOT ZOPFLI)
    message(FATAL_ERROR "The web page is built by Node, npm and zopfli (Debian: nodejs, npm, zopfli), not all installed. "
                        "Set -DHEARTH_UI=OFF to build hearthd without the page.")
  endif()

  set(from ${CMAKE_SOURCE_DIR}/clients/web)
  set(to ${CMAKE_BINARY_DIR}/web)
  set(viewer ${CMAKE_SOURCE_DIR}/clients/viewer/viewer.html)
  set(lists package.json package-lock.json .npmrc)
  list(TRANSFORM lists PREPEND ${from}/)
  add_custom_command(OUTPUT ${to}/packages.stamp DEPENDS ${lists} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${to}
    COMMAND ${CMAKE_COMMAND} -E copy ${lists} ${to}
    COMMAND ${CMAKE_COMMAND} -E chdir ${to} ${NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
    COMMAND ${CMAKE_COMMAND} -E touch ${to}/packages.stamp
    COMMENT "Installing the packages that build the web page")

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${from}/src/* ${from}/test/*)
  set(tools ${from}/index.html ${from}/tsconfig.json ${from}/vite.config.ts ${from}/compress.mjs)
  add_custom_command(OUTPUT ${c} DEPENDS ${to}/packages.stamp ${sources} ${tools} ${viewer} ${embed} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${to}/src ${to}/test ${to}/dist
    COMMAND ${CMAKE_COMMAND} -E copy ${tools} ${to}
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${from}/src ${to}/src
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${from}/test ${to}/test
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/viewer
    COMMAND ${CMAKE_COMMAND} -E copy ${viewer} ${CMAKE_BINARY_DIR}/viewer
    COMMAND ${CMAKE_COMMAND} -E chdir ${to} ${NPM} run --silent build
    COMMAND ${CMAKE_COMMAND} -DOUT=${c} -DSYMBOL=hearth_embedded_web -DROOT=${to}/dist -P ${embed}
    COMMENT "Building the web page")

  foreach(script check test)
    add_test(NAME web_${script} COMMAND ${NPM} run --silent ${script} WORKING_DIRECTORY ${to})
    set_tests_properties(web_${script} PROPERTIES LABELS web)
  endforeach()
endfunction()
