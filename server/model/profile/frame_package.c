/* frame_package.c -- packages by the names of functions (contract: frame_package.h). */
#include "hearth/model/frame_package.h"

#include "hearth/model/frame_name.h"

#include <assert.h>
#include <string.h>

/* Only the beginning of a longer name is read; in units of UTF-16, as the page counts. */
#define MOST_UNITS 1000

/* Return the place of the first `part`, or text.n if the text does not contain it. */
static size_t find_first(struct hearth_str text, struct hearth_str part)
{
    for (size_t i = 0; i + part.n <= text.n; i++) {
        if (memcmp(text.p + i, part.p, part.n) == 0) {
            return i;
        }
    }
    return text.n;
}

/* Return the place of the last `part`, or text.n if the text does not contain it. */
static size_t find_last(struct hearth_str text, struct hearth_str part)
{
    for (size_t i = text.n < part.n ? 0 : text.n - part.n + 1; i-- > 0;) {
        if (memcmp(text.p + i, part.p, part.n) == 0) {
            return i;
        }
    }
    return text.n;
}

static struct hearth_str cut_name(struct hearth_str name)
{
    size_t units = 0;

    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool is_first = (c & 0xc0) != 0x80;
        units += !is_first ? 0 : c >= 0xf0 ? 2 : 1;
        if (units > MOST_UNITS) {
            return hearth_str_n(name.p, i);
        }
    }
    return name;
}

/* The name without type arguments and parameters, which hold dots and colons of their own. */
static struct hearth_str bare_name(struct hearth_str name, char *room)
{
    size_t depth = 0, n = 0;
    bool has_brackets = false;

    for (size_t i = 0; i < name.n; i++) {
        has_brackets = has_brackets || strchr("<([", name.p[i]) != NULL;
    }
    name = cut_name(name);
    if (!has_brackets) {
        return name;
    }

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == '<' || c == '[') {
            depth++;
        } else if ((c == '>' || c == ']') && depth > 0) {
            depth--;
        } else if (depth == 0) {
            room[n++] = c;
        }
    }

    /* Go's receivers "pkg.(*T).Method" are not parameters. */
    struct hearth_str bare = hearth_str_n(room, n);
    size_t open = n > 1 ? hearth_str_find(bare, '(', 1) : n;
    return open < n && room[open - 1] != '.' ? hearth_str_n(room, open) : bare;
}

static struct hearth_str strip_digits(struct hearth_str name)
{
    for (;;) {
        size_t n = name.n;
        while (n > 0 && name.p[n - 1] >= '0' && name.p[n - 1] <= '9') {
            n--;
        }
        if (n == name.n || n == 0 || name.p[n - 1] != '.') {
            return name;
        }
        name.n = n - 1;
    }
}

/* Without what compilers append to the names of functions that they split or copied. */
static struct hearth_str strip_copies(struct hearth_str name)
{
    static const char *const copies[] = {".isra",     ".part", ".constprop", ".cold",
                                         ".lto_priv", ".llvm", ".clone"};

    for (;;) {
        struct hearth_str head = strip_digits(name);
        size_t n = head.n;
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(copies); i++) {
            size_t ending = strlen(copies[i]);
            if (head.n >= ending && memcmp(head.p + head.n - ending, copies[i], ending) == 0) {
                n = head.n - ending;
            }
        }
        if (n == head.n) {
            return name;
        }
        name.n = n;
    }
}

static bool has_capital_at(struct hearth_str text, size_t at)
{
    return at < text.n && text.p[at] >= 'A' && text.p[at] <= 'Z';
}

/* Of "a.b.C.m" all before the class, as Java and C# name them; of "pkg.f" all before the dot. */
static struct hearth_str before_class(struct hearth_str name, size_t dot)
{
    for (size_t at = dot + 1; at <= name.n && !has_capital_at(name, 0);) {
        if (has_capital_at(name, at)) {
            return hearth_str_n(name.p, at - 1);
        }
        at = hearth_str_find(name, '.', at) + 1;
    }
    return hearth_str_n(name.p, dot);
}

struct hearth_str hearth_frame_package(struct hearth_str name, char *room)
{
    assert(room != NULL);

    if (name.n == 0 || hearth_str_eq(name, HEARTH_FRAME_UNKNOWN)) {
        return HEARTH_FRAME_UNKNOWN;
    }
    if (name.p[0] == '[') {
        size_t end = hearth_str_find(name, ']', 0);
        return end < name.n ? hearth_str_n(name.p, end + 1) : name;
    }
    size_t offset = find_last(name, HEARTH_STR("+0x"));
    if (offset > 0 && offset < name.n) {
        return hearth_str_n(name.p, offset);
    }

    /* "void a::b" is of a. */
    struct hearth_str bare = strip_copies(bare_name(name, room));
    size_t colons = find_first(bare, HEARTH_STR("::"));
    if (colons > 0 && colons < bare.n) {
        struct hearth_str head = hearth_str_n(bare.p, colons);
        size_t space = find_last(head, HEARTH_STR(" "));
        return space < head.n ? hearth_str_n(head.p + space + 1, head.n - space - 1) : head;
    }

    /* "java/util/HashMap.put" has the class after the slash, "net/http.Serve" the package. */
    size_t slash = find_last(bare, HEARTH_STR("/"));
    if (slash < bare.n) {
        struct hearth_str last = hearth_str_n(bare.p + slash + 1, bare.n - slash - 1);
        size_t dot = hearth_str_find(last, '.', 0);
        bool is_class = has_capital_at(last, 0) || dot == last.n;
        return hearth_str_n(bare.p, is_class ? slash : slash + 1 + dot);
    }
    size_t dot = hearth_str_find(bare, '.', 0);

    return dot == 0 || dot == bare.n ? hearth_str_n("", 0) : before_class(bare, dot);
}
