/*
 * demangle.c -- libiberty's demanglers with a limit on what they print.
 *
 * A few hundred bytes can stand for gigabytes of text, because parts of a name refer to earlier
 * ones. The demanglers cannot be told to stop, but those that print to a callback hold no memory
 * outside the stack: the callback leaves them by longjmp.
 */
#include "hearth/codec/demangle.h"

#include <assert.h>
#include <libiberty/demangle.h>
#include <setjmp.h>

/* The readable name while it is printed. */
struct demangled {
    char text[HEARTH_DEMANGLE_MAX_OUT];
    size_t n;
    jmp_buf too_long;
};

static const char *const g_demangle_names[] = {"none", "simple", "full"};

bool hearth_demangle_parse(const char *name, enum hearth_demangle *ret)
{
    assert(name != NULL && ret != NULL);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_demangle_names); i++) {
        if (strcmp(name, g_demangle_names[i]) == 0) {
            *ret = (enum hearth_demangle)i;
            return true;
        }
    }

    return false;
}

static void append_demangled(const char *text, size_t n, void *context)
{
    struct demangled *out = context;

    if (n == 0) {
        return;
    }
    if (n > sizeof out->text - out->n) {
        longjmp(out->too_long, 1);
    }

    memcpy(out->text + out->n, text, n);
    out->n += n;
}

/* Prints a whole name; false if it is not mangled, or too long. */
static bool print_demangled(const char *name, int options, struct demangled *out)
{
    if (setjmp(out->too_long) != 0) {
        return false;
    }

    /* Names of Rust's legacy scheme are names of C++, too. */
    out->n = 0;
    if (rust_demangle_callback(name, options, append_demangled, out) != 0) {
        return true;
    }

    out->n = 0;
    return cplus_demangle_v3_callback(name, options, append_demangled, out) != 0;
}

/* The readable name is out->text; false if there is none. */
static bool demangle_symbol(const char *name, enum hearth_demangle how, struct demangled *out)
{
    /* Without parameters the demangler ignores the end of a name, even if it is no mangled one. */
    if (!print_demangled(name, DMGL_PARAMS | DMGL_ANSI, out)) {
        return false;
    }
    if (how == HEARTH_DEMANGLE_SIMPLE && !print_demangled(name, DMGL_NO_OPTS, out)) {
        return false;
    }

    const struct hearth_str text = {out->text, out->n};

    return text.n > 0 && hearth_str_utf8_valid(text) && memchr(text.p, 0, text.n) == NULL;
}

bool hearth_demangle(struct hearth_str name, enum hearth_demangle how, struct hearth_arena *arena,
                     struct hearth_str *ret)
{
    assert(arena != NULL && ret != NULL);

    *ret = name;
    if (how == HEARTH_DEMANGLE_NONE || !hearth_demangle_applies(name) ||
        name.n > HEARTH_DEMANGLE_MAX_BYTES || memchr(name.p, 0, name.n) != NULL) {
        return true;
    }

    /* The symbol without the second underscore in front and the version behind. */
    size_t skip = name.p[1] == '_' ? 1 : 0;
    const char *at = memchr(name.p, '@', name.n);
    size_t n = at == NULL ? name.n : (size_t)(at - name.p);
    char symbol[HEARTH_DEMANGLE_MAX_BYTES + 1];
    memcpy(symbol, name.p + skip, n - skip);
    symbol[n - skip] = '\0';

    struct demangled out;
    if (!demangle_symbol(symbol, how, &out)) {
        return true;
    }

    char *text = hearth_arena_alloc(arena, out.n + name.n - n);
    if (text == NULL) {
        return false;
    }

    memcpy(text, out.text, out.n);
    memcpy(text + out.n, name.p + n, name.n - n);
    *ret = hearth_str_n(text, out.n + name.n - n);

    return true;
}
