/*
 * symbol_language.h -- the language of a function (private to the model).
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_SYMBOL_LANGUAGE_H
#define HEARTH_MODEL_SYMBOL_LANGUAGE_H

#include "profile/symbol_text.h"

enum hearth_language {
    HEARTH_LANGUAGE_UNKNOWN,
    HEARTH_LANGUAGE_NONE, /* known, but its names have no parts: Julia, the kernel, stubs */
    HEARTH_LANGUAGE_GO,
    HEARTH_LANGUAGE_JVM,
    HEARTH_LANGUAGE_DOTNET,
    HEARTH_LANGUAGE_CPP,
    HEARTH_LANGUAGE_RUST,
    HEARTH_LANGUAGE_PYTHON,
    HEARTH_LANGUAGE_RUBY,
    HEARTH_LANGUAGE_PHP,
    HEARTH_LANGUAGE_JAVASCRIPT,
};

/* The language by the ending of the file, or otherwise by the form of the name. */
enum hearth_language hearth_symbol_language(struct hearth_str name, struct hearth_str file);
/*
 * The name without what profilers put around it: "_[j]", "LazyCompile:*f a.js:1". *ret is the
 * language that these marks tell, UNKNOWN if none.
 */
struct hearth_str hearth_symbol_strip_marks(struct hearth_str name, enum hearth_language *ret);
/* The name without the type of its result before it: "a.b.C.m(int)" of "void a.b.C.m(int)". */
struct hearth_str hearth_symbol_strip_result(struct hearth_str name);
/* Whether Go's compiler gave a closure or wrapper this name: func1, 2, gowrap1, deferwrap1. */
bool hearth_go_is_closure(struct hearth_str segment);

#endif
