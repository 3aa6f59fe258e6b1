# Debian packages of the installation, made by `./dev package`: server/package/README.md says what each holds.
set(package ${CMAKE_SOURCE_DIR}/server/package)
set(HEARTH_PACKAGE_VERSION ${PROJECT_VERSION} CACHE STRING "Version of the Debian packages")
set(HEARTH_MAINTAINER "Hearth developers <hearth@hearth.invalid>" CACHE STRING "Maintainer of the Debian packages")

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL hearthd hearth-cli libhearth libhearth-dev hearth-dbgsym)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${package}/StagePackages.cmake)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_HEARTH_SOURCE ${CMAKE_SOURCE_DIR}) # for the script
set(CPACK_HEARTH_TOOLS ${CMAKE_OBJCOPY} ${CMAKE_STRIP} ${CMAKE_READELF})

# Fields of all packages.
set(CPACK_PACKAGE_VERSION ${HEARTH_PACKAGE_VERSION})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${HEARTH_MAINTAINER})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_HEARTHD_PACKAGE_NAME hearthd)
set(CPACK_DEBIAN_HEARTHD_PACKAGE_SECTION database)
set(CPACK_DEBIAN_HEARTHD_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_HEARTHD_PACKAGE_RECOMMENDS "postgresql-15 | postgresql (>= 15), hearth-cli")
set(CPACK_DEBIAN_HEARTHD_DESCRIPTION "continuous-profiling server over PostgreSQL
Hearth stores profiles of running programs and answers, exactly, where
their time went: flame graphs, function tables and totals over time, for any
range and any labels. It speaks the protocols of Grafana Pyroscope,
OpenTelemetry, SkyWalking's agents and Datadog's profilers.
.
The profiles are kept in a PostgreSQL database, yours or one that hearthd
runs for itself.")
set(CPACK_DEBIAN_HEARTHD_PACKAGE_CONTROL_EXTRA ${package}/postinst ${package}/prerm ${package}/postrm ${package}/conffiles)

set(CPACK_DEBIAN_HEARTH-CLI_PACKAGE_NAME hearth-cli)
set(CPACK_DEBIAN_HEARTH-CLI_PACKAGE_SECTION database)
set(CPACK_DEBIAN_HEARTH-CLI_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_DEBIAN_HEARTH-CLI_PACKAGE_SUGGESTS "linux-perf")
set(CPACK_DEBIAN_HEARTH-CLI_DESCRIPTION "client of the Hearth continuous-profiling server
hearth sends profiles of any profiler, shows flame graphs, function tables
and differences on a terminal, directs agents, and administers the server.
Many of its commands also work on files, without a server.")

# The library's package carries its soname, so that two versions can be installed side by side.
set(soname ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_LIBHEARTH_PACKAGE_NAME libhearth${soname})
set(CPACK_DEBIAN_LIBHEARTH_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBHEARTH_DESCRIPTION "client library of the Hearth continuous-profiling server
libhearth pushes profiles, queries, and follows profiling tasks from programs
in C.")
file(WRITE ${CMAKE_BINARY_DIR}/shlibs "libhearth ${soname} libhearth${soname} (>= ${HEARTH_PACKAGE_VERSION})\n")
set(CPACK_DEBIAN_LIBHEARTH_PACKAGE_CONTROL_EXTRA ${package}/triggers ${CMAKE_BINARY_DIR}/shlibs)

set(CPACK_DEBIAN_LIBHEARTH-DEV_PACKAGE_NAME libhearth-dev)
set(CPACK_DEBIAN_LIBHEARTH-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBHEARTH-DEV_PACKAGE_DEPENDS
    "${CPACK_DEBIAN_LIBHEARTH_PACKAGE_NAME} (= ${HEARTH_PACKAGE_VERSION}), libgrpc-dev")
set(CPACK_DEBIAN_LIBHEARTH-DEV_DESCRIPTION "development files of libhearth
The header, the static library and the pkg-config file of libhearth, with
which programs in C talk to a Hearth server.")

set(CPACK_DEBIAN_HEARTH-DBGSYM_PACKAGE_NAME hearth-dbgsym)
set(CPACK_DEBIAN_HEARTH-DBGSYM_PACKAGE_SECTION debug)
set(CPACK_DEBIAN_HEARTH-DBGSYM_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_HEARTH-DBGSYM_PACKAGE_ENHANCES "hearthd, hearth-cli, ${CPACK_DEBIAN_LIBHEARTH_PACKAGE_NAME}")
set(CPACK_DEBIAN_HEARTH-DBGSYM_DESCRIPTION "debug symbols of Hearth
Symbols of hearthd, hearth and libhearth for gdb and perf, which find them by
the build ids of the programs.")
install(CODE "" COMPONENT hearth-dbgsym) # its files are made by the script

include(CPack)
