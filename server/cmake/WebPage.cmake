# The web page (clients/web) and the documents (docs, clients/site) as tables of files within hearthd. They are built in the
# build directory, of copies, so that the tree stays as it is. Packages are those of package-lock.json, from the registry that npm is set to; their scripts do not
# run.
option(HEARTH_UI "Build the web page and the documents into hearthd: needs Node 18 or later, npm and zopfli" ON)
set(HEARTH_REPOSITORY "" CACHE STRING
    "Address of the tree's files for links of the documents, such as https://example.org/hearth/blob/main")

# hearth_web_page(OUT): .c files with hearth_embedded_web and hearth_embedded_documents, which are empty without HEARTH_UI.
function(hearth_web_page out)
  set(c ${CMAKE_BINARY_DIR}/generated/embed_web.c)
  set(documents_c ${CMAKE_BINARY_DIR}/generated/embed_documents.c)
  set(embed ${CMAKE_SOURCE_DIR}/server/cmake/EmbedFiles.cmake)
  set(${out} ${c} ${documents_c} PARENT_SCOPE)
  if(NOT HEARTH_UI)
    add_custom_command(OUTPUT ${c} ${documents_c} DEPENDS ${embed} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DOUT=${c} -DSYMBOL=hearth_embedded_web -DFILES= -P ${embed}
      COMMAND ${CMAKE_COMMAND} -DOUT=${documents_c} -DSYMBOL=hearth_embedded_documents -DFILES= -P ${embed})
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
  set(tools ${from}/index.html ${from}/tsconfig.json ${from}/vite.config.ts ${from}/compress.mjs ${from}/files.mjs)
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

  file(GLOB_RECURSE texts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*)
  file(GLOB others CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/*.md ${CMAKE_SOURCE_DIR}/*/README.md)
  file(GLOB makers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/clients/site/*)
  set(shared ${from}/files.mjs ${from}/src/styles/tokens.css ${from}/src/mark.svg)
  add_custom_command(OUTPUT ${documents_c} DEPENDS ${to}/packages.stamp ${texts} ${others} ${makers} ${shared} ${embed} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${to}/site
    COMMAND ${CMAKE_COMMAND} -E copy ${makers} ${shared} ${to}/site
    COMMAND ${NODE} ${to}/site/site.mjs ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/docs ${CMAKE_BINARY_DIR}/docs-packed
            "${HEARTH_REPOSITORY}"
    COMMAND ${CMAKE_COMMAND} -DOUT=${documents_c} -DSYMBOL=hearth_embedded_documents -DROOT=${CMAKE_BINARY_DIR}/docs-packed -P ${embed}
    COMMENT "Building the documents")
  add_custom_target(documents DEPENDS ${documents_c})

  foreach(script check test)
    add_test(NAME web_${script} COMMAND ${NPM} run --silent ${script} WORKING_DIRECTORY ${to})
    set_tests_properties(web_${script} PROPERTIES LABELS web)
  endforeach()
endfunction()
