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
#include <stdlib.h>

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

/* Parts that a name may be made of, with those that it refers to again counted each time. */
#define MAX_PARTS 65536u
#define MAX_DEPTH 512u

/* Counts the parts below a part. False if there are more than MAX_PARTS, or they are too deep. */
static bool count_parts(const struct demangle_component *part, unsigned depth, size_t *n)
{
    if (part == NULL) {
        return true;
    }
    if (++*n > MAX_PARTS || depth > MAX_DEPTH) {
        return false;
    }

    switch (part->type) {
    case DEMANGLE_COMPONENT_NAME:
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_SUB_STD:
    case DEMANGLE_COMPONENT_CHARACTER:
    case DEMANGLE_COMPONENT_NUMBER:
    case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
    case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
    case DEMANGLE_COMPONENT_FIXED_TYPE:
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
    case DEMANGLE_COMPONENT_LAMBDA:
        return true; /* no parts, or one that is a small type */
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
        return count_parts(part->u.s_extended_operator.name, depth + 1, n);
    case DEMANGLE_COMPONENT_CTOR:
        return count_parts(part->u.s_ctor.name, depth + 1, n);
    case DEMANGLE_COMPONENT_DTOR:
        return count_parts(part->u.s_dtor.name, depth + 1, n);
    default:
        return count_parts(part->u.s_binary.left, depth + 1, n) &&
               count_parts(part->u.s_binary.right, depth + 1, n);
    }
}

/*
 * For the expansion of a pack, libiberty walks through all parts of the pattern and prints nothing
 * meanwhile: 250 bytes that refer to earlier parts keep it busy for years.
 */
static bool ends_soon(const char *name)
{
    if (strstr(name, "Dp") == NULL && strstr(name, "sp") == NULL) {
        return true;
    }

    void *memory = NULL;
    size_t n = 0;
    const struct demangle_component *tree =
        cplus_demangle_v3_components(name, DMGL_PARAMS | DMGL_ANSI, &memory);
    bool ends = tree != NULL ? count_parts(tree, 0, &n) : strncmp(name, "_Z", 2) != 0;
    free(memory); /* libiberty's */

    return ends;
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
    if (!ends_soon(name) || !print_demangled(name, DMGL_PARAMS | DMGL_ANSI, out)) {
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
