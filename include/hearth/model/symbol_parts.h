/*
 * symbol_parts.h -- what the name of a function and the path of its file say about where it belongs: class,
 * package, directory, library.
 *
 * Rules by the ending of the file, and without one by the shape of the name; each is a line of the table in
 * server/model/symbol_parts.c's test. "" means that nothing is said. Nothing is looked up: two functions of the
 * same name and file belong to the same class.
 *
 *   language    class                                   package
 *   Go          "pkg.T" of pkg.T.M and pkg.(*T).M       import path
 *   JVM, .NET   "a.b.C" of a.b.C.m, a/b/C.m, a!b.C.m    "a.b"; .NET: the assembly before '!'
 *   C++         "ns::C" of ns::C::m, without <...>      -
 *   Rust        "a::T" of a::T::m and <a::T as X>::m    crate
 *   Python      "C" of C.m, C#m                         module by its file: "a.b.c"
 *   Ruby        "A::B" of A::B#m and A::B.m             gem by its file
 *   PHP         "A\B" of A\B::m                         "A"
 *   JavaScript  "C" of C.m                              package below node_modules; "node:fs"
 *
 * Threads: pure.
 * Source:  names as the profilers of these languages write them.
 */
#ifndef HEARTH_MODEL_SYMBOL_PARTS_H
#define HEARTH_MODEL_SYMBOL_PARTS_H

#include "hearth/base/str.h"

/* Room that an answer may need. */
#define HEARTH_SYMBOL_PART_BYTES(name, file) ((name).n + (file).n + 1)

/* Answers borrow from name, file or room. */
struct hearth_str hearth_symbol_class(struct hearth_str name, struct hearth_str file, char *room);
struct hearth_str hearth_symbol_package(struct hearth_str name, struct hearth_str file, char *room);
/* The path before the last '/' or '\'; "/" for files in the root. */
struct hearth_str hearth_symbol_directory(struct hearth_str file);
/* The file of a mapping without its path. */
struct hearth_str hearth_symbol_library(struct hearth_str mapping_file);

#endif
