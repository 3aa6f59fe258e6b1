/*
 * symbol_parts.h -- class, package, directory, library and kind of a function, derived from its
 * name and the paths of its files.
 *
 * The language is recognised by the ending of the file, or without one by the form of the name;
 * each rule is a line of the table in tests/unit/model/test_symbol_parts.c. An empty result means
 * unknown. The functions are pure rules without look-ups, so two functions with equal names and
 * files belong to the same class.
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
 * Marks around a name are ignored: the result before it ("void a.b.C.m(int)"), the kind of code
 * after it ("a/b/C.m_[j]"), the module of a class ("java.base/"), what V8 compiled ("LazyCompile:*m
 * a.js:1"). Functions of the kernel ("_[k]"), stubs and Julia have no parts.
 *
 * Threads: pure.
 * Source:  names as the profilers of these languages write them.
 */
#ifndef HEARTH_MODEL_SYMBOL_PARTS_H
#define HEARTH_MODEL_SYMBOL_PARTS_H

#include "hearth/base/str.h"

/* Bytes of `room` that a result may need. */
#define HEARTH_SYMBOL_PART_BYTES(name, file) ((name).n + (file).n + 1)

/* Results borrow from name, file or room. */
struct hearth_str hearth_symbol_class(struct hearth_str name, struct hearth_str file, char *room);
struct hearth_str hearth_symbol_package(struct hearth_str name, struct hearth_str file, char *room);
/* The path before the last '/' or '\'; "/" for files in the root. */
struct hearth_str hearth_symbol_directory(struct hearth_str file);
/*
 * The kind of code: "kernel", or the language by the names of OpenTelemetry's profile.frame.type:
 * go, jvm, dotnet, native (C and C++), rust, cpython, ruby, php, v8js. Code of a mapped file is
 * native if nothing else is known. A constant; empty: unknown.
 */
struct hearth_str hearth_symbol_kind(struct hearth_str name, struct hearth_str file,
                                     struct hearth_str mapping_file);
/* The file of a mapping without its path. */
struct hearth_str hearth_symbol_library(struct hearth_str mapping_file);

#endif
