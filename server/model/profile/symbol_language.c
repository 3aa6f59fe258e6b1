/*
 * symbol_language.c -- recognises the language of a function.
 *
 * The ending of the file decides; without one the name is guessed from its separators.
 */
#include "profile/symbol_language.h"

#include "hearth/model/frame_name.h"

static const struct {
    const char *ending;
    enum hearth_language language;
} g_endings[] = {
    {".go", HEARTH_LANGUAGE_GO},          {".java", HEARTH_LANGUAGE_JVM},
    {".kt", HEARTH_LANGUAGE_JVM},         {".kts", HEARTH_LANGUAGE_JVM},
    {".scala", HEARTH_LANGUAGE_JVM},      {".groovy", HEARTH_LANGUAGE_JVM},
    {".clj", HEARTH_LANGUAGE_JVM},        {".cs", HEARTH_LANGUAGE_DOTNET},
    {".fs", HEARTH_LANGUAGE_DOTNET},      {".vb", HEARTH_LANGUAGE_DOTNET},
    {".cc", HEARTH_LANGUAGE_CPP},         {".cpp", HEARTH_LANGUAGE_CPP},
    {".cxx", HEARTH_LANGUAGE_CPP},        {".c++", HEARTH_LANGUAGE_CPP},
    {".h", HEARTH_LANGUAGE_CPP},          {".hh", HEARTH_LANGUAGE_CPP},
    {".hpp", HEARTH_LANGUAGE_CPP},        {".hxx", HEARTH_LANGUAGE_CPP},
    {".inl", HEARTH_LANGUAGE_CPP},        {".tcc", HEARTH_LANGUAGE_CPP},
    {".rs", HEARTH_LANGUAGE_RUST},        {".py", HEARTH_LANGUAGE_PYTHON},
    {".pyx", HEARTH_LANGUAGE_PYTHON},     {".rb", HEARTH_LANGUAGE_RUBY},
    {".rake", HEARTH_LANGUAGE_RUBY},      {".erb", HEARTH_LANGUAGE_RUBY},
    {".php", HEARTH_LANGUAGE_PHP},        {".js", HEARTH_LANGUAGE_JAVASCRIPT},
    {".mjs", HEARTH_LANGUAGE_JAVASCRIPT}, {".cjs", HEARTH_LANGUAGE_JAVASCRIPT},
    {".ts", HEARTH_LANGUAGE_JAVASCRIPT},  {".tsx", HEARTH_LANGUAGE_JAVASCRIPT},
    {".jsx", HEARTH_LANGUAGE_JAVASCRIPT}, {".jl", HEARTH_LANGUAGE_NONE},
};

bool hearth_go_is_closure(struct hearth_str segment)
{
    static const char *const words[] = {"func", "gowrap", "deferwrap", ""};

    for (size_t w = 0; w < HEARTH_ARRAY_LEN(words); w++) {
        size_t at = strlen(words[w]);
        if (starts_with(segment, words[w]) && segment.n > at && is_digit(segment.p[at])) {
            return true;
        }
    }

    return segment.n == 0;
}

/*
 * Guess the language of a name with dots and slashes, without a telling file. A class of the JVM
 * begins with a capital, a package of Go does not; and a Go name has dots only after its last
 * slash.
 */
static enum hearth_language guess_dotted_language(struct hearth_str name)
{
    struct hearth_str plain = cut_head(name, find_char(name, '('));

    if (find_text(name, ".(*") != NOWHERE || find_char(plain, '[') != NOWHERE) {
        return HEARTH_LANGUAGE_GO;
    }

    size_t last = find_last_char(plain, '.');
    if (last == NOWHERE) {
        return HEARTH_LANGUAGE_UNKNOWN;
    }

    if (find_text(plain, "$$Lambda") != NOWHERE || find_text(plain, "/0x") != NOWHERE) {
        return HEARTH_LANGUAGE_JVM;
    }

    /* Look at the part before the last dot. */
    struct hearth_str above = cut_base_name(cut_head(plain, last));
    size_t n_dots = 0;
    for (size_t i = 0; i < above.n; i++) {
        n_dots += above.p[i] == '.';
    }

    size_t before = find_last_char(above, '.');
    bool capital = is_upper(before == NOWHERE ? above : cut_tail(above, before + 1));
    if (hearth_go_is_closure(cut_tail(plain, last + 1))) {
        return HEARTH_LANGUAGE_GO;
    }

    return capital || (n_dots > 1 && above.n == last) ? HEARTH_LANGUAGE_JVM : HEARTH_LANGUAGE_GO;
}

/* A function of an extension of PHP: "standard|strlen". */
static bool has_php_extension(struct hearth_str name)
{
    size_t bar = find_char(name, '|');
    for (size_t i = 0; bar != NOWHERE && i < name.n; i++) {
        char c = name.p[i];
        if (i != bar && c != '_' && c != ':' && c != '\\' && !is_digit(c) &&
            !((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
            return false;
        }
    }
    return bar != NOWHERE && bar > 0;
}

/* Parts of functions that a compiler of C split or cloned: f.constprop.0, f.part.3, f.cold. */
static bool has_compiler_suffix(struct hearth_str name)
{
    static const char *const suffixes[] = {".constprop.", ".isra.", ".part.", ".llvm.",
                                           ".lto_priv."};
    size_t dot = find_char(name, '.');

    if (dot == NOWHERE) {
        return false;
    }

    struct hearth_str rest = cut_tail(name, dot);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (starts_with(rest, suffixes[i]) && rest.n > n && is_digit(rest.p[n])) {
            return true;
        }
    }

    return hearth_str_eq_c(rest, ".cold");
}

struct hearth_str hearth_symbol_strip_result(struct hearth_str name)
{
    size_t depth = 0, from = 0;

    for (size_t i = 0; i < name.n && (depth > 0 || name.p[i] != '('); i++) {
        char c = name.p[i];
        depth += c == '<' || c == '[' || c == '{' || c == '(';
        depth -= depth > 0 && (c == '>' || c == ']' || c == '}' || c == ')');
        from = depth == 0 && c == ' ' ? i + 1 : from;
    }

    /* A space may also be part of a name; then no qualified name follows it. */
    struct hearth_str rest = cut_tail(name, from);
    return find_char(cut_head(rest, find_char(rest, '(')), '.') == NOWHERE ? name : rest;
}

struct hearth_str hearth_symbol_strip_marks(struct hearth_str name, enum hearth_language *ret)
{
    static const char *const of_v8[] = {"LazyCompile:", "Function:", "Script:", "Eval:", "JS:"};
    static const char *const stubs[] = {
        "Builtin:", "BytecodeHandler:", "Handler:", "RegExp:", "Stub:", "Alloc: "};

    /* async-profiler and scripts for perf append the kind of code: _[j], _[i], _[k]. */
    *ret = HEARTH_LANGUAGE_UNKNOWN;
    if (name.n > 4 && name.p[name.n - 1] == ']' && name.p[name.n - 3] == '[' &&
        name.p[name.n - 4] == '_') {
        char kind = name.p[name.n - 2];
        *ret = kind == 'k'                                                ? HEARTH_LANGUAGE_NONE
               : kind == 'j' || kind == 'i' || kind == '0' || kind == '1' ? HEARTH_LANGUAGE_JVM
                                                                          : *ret;
        return cut_head(name, name.n - 4);
    }

    /* V8 writes what it compiled, a sign for how, the name and its place. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(of_v8); i++) {
        if (starts_with(name, of_v8[i])) {
            struct hearth_str rest = cut_tail(name, strlen(of_v8[i]));
            bool sign = rest.n > 0 && memchr("*~^+", rest.p[0], 4) != NULL;
            *ret = HEARTH_LANGUAGE_JAVASCRIPT;
            rest = cut_tail(rest, sign);
            return cut_head(rest, hearth_str_find(rest, ' ', 0));
        }
    }

    /* Names that are not functions: stubs of V8, objects in Julia's profiles of allocations. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(stubs); i++) {
        if (starts_with(name, stubs[i])) {
            *ret = HEARTH_LANGUAGE_NONE;
        }
    }

    return name;
}

enum hearth_language hearth_symbol_language(struct hearth_str name, struct hearth_str file)
{
    /* The ending of the file decides if it is known. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_endings); i++) {
        if (ends_with(file, g_endings[i].ending)) {
            return g_endings[i].language;
        }
    }

    if (starts_with(file, "<frozen ")) {
        return HEARTH_LANGUAGE_PYTHON;
    }

    if (starts_with(file, "node:")) {
        return HEARTH_LANGUAGE_JAVASCRIPT;
    }

    /* Otherwise separators in the name. */
    if (starts_with(name, "L") && find_text(name, ";::") != NOWHERE) {
        return HEARTH_LANGUAGE_JVM;
    }

    if (has_php_extension(name)) {
        return HEARTH_LANGUAGE_PHP;
    }

    if (find_char(name, '#') != NOWHERE && find_char(name, '{') == NOWHERE) {
        return HEARTH_LANGUAGE_RUBY;
    }

    if (find_text(name, "::") != NOWHERE) {
        size_t hash = find_last_text(name, "::h");
        bool rust = (hash != NOWHERE && name.n - hash == 19) ||
                    find_text(name, "{{closure}}") != NOWHERE ||
                    find_text(name, "{closure#") != NOWHERE || find_text(name, " as ") != NOWHERE;
        return rust                               ? HEARTH_LANGUAGE_RUST
               : find_char(name, '\\') != NOWHERE ? HEARTH_LANGUAGE_PHP
                                                  : HEARTH_LANGUAGE_CPP;
    }

    if (find_char(name, '\\') != NOWHERE) {
        return HEARTH_LANGUAGE_PHP;
    }

    /* What remains are names with dots, and names of files that stand for a function. */
    if (hearth_frame_name_is_address(name) || starts_with(name, "/") || starts_with(name, "./")) {
        return HEARTH_LANGUAGE_UNKNOWN;
    }

    size_t bang = find_char(cut_head(name, find_char(name, '(')), '!');
    if (bang != NOWHERE && find_char(cut_tail(name, bang), '.') != NOWHERE) {
        return HEARTH_LANGUAGE_DOTNET;
    }

    size_t generic = find_char(name, '`'); /* "C`1": the number of type arguments */
    if (generic != NOWHERE && generic + 1 < name.n && is_digit(name.p[generic + 1])) {
        return HEARTH_LANGUAGE_DOTNET;
    }

    name = hearth_symbol_strip_result(name);
    return has_compiler_suffix(name) ? HEARTH_LANGUAGE_UNKNOWN : guess_dotted_language(name);
}
