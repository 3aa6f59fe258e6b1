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
    {".jsx", HEARTH_LANGUAGE_JAVASCRIPT},
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
    if (find_text(name, ".(*") != NOWHERE || find_char(name, '[') != NOWHERE) {
        return HEARTH_LANGUAGE_GO;
    }

    struct hearth_str plain = cut_head(name, find_char(name, '('));
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

    size_t bang = find_char(name, '!');
    if (bang != NOWHERE && find_char(cut_tail(name, bang), '.') != NOWHERE) {
        return HEARTH_LANGUAGE_DOTNET;
    }

    return hearth_frame_name_is_address(name) ? HEARTH_LANGUAGE_UNKNOWN
                                              : guess_dotted_language(name);
}
