# hearth_man_page(TARGET COMPONENT WHATIS SEE_ALSO HELP..) -- TARGET.1 next to the program, made of what it prints with the
# arguments HELP whenever it is linked; installed with COMPONENT.
function(hearth_man_page target component whatis see_also)
  set(page ${CMAKE_CURRENT_BINARY_DIR}/${target}.1)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM BYPRODUCTS ${page}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DNAME=${target} "-DWHATIS=${whatis}"
            "-DSEE_ALSO=${see_also}" "-DHELP=${ARGN}" -DVERSION=${PROJECT_VERSION} -DOUT=${page}
            -P ${CMAKE_SOURCE_DIR}/server/cmake/MakeManPage.cmake)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()
