/*
 * symbol_parts.c -- names of functions taken apart, by language.
 *
 * Which language: the ending of the file; without a telling one the shape of the name. Names are
 * strangers' texts: everything here is a scan within bounds, and what does not fit a rule has no
 * part.
 */
#include "hearth/model/symbol_parts.h"

enum language {
    UNKNOWN,
    GO,
    JVM,
    DOTNET,
    CPP,
    RUST,
    PYTHON,
    RUBY,
    PHP,
    JAVASCRIPT,
};

static const struct {
    const char *ending;
    enum language language;
} g_endings[] = {
    {".go", GO},          {".java", JVM},       {".kt", JVM},        {".kts", JVM},
    {".scala", JVM},      {".groovy", JVM},     {".clj", JVM},       {".cs", DOTNET},
    {".fs", DOTNET},      {".vb", DOTNET},      {".cc", CPP},        {".cpp", CPP},
    {".cxx", CPP},        {".c++", CPP},        {".h", CPP},         {".hh", CPP},
    {".hpp", CPP},        {".hxx", CPP},        {".inl", CPP},       {".tcc", CPP},
    {".rs", RUST},        {".py", PYTHON},      {".pyx", PYTHON},    {".rb", RUBY},
    {".rake", RUBY},      {".erb", RUBY},       {".php", PHP},       {".js", JAVASCRIPT},
    {".mjs", JAVASCRIPT}, {".cjs", JAVASCRIPT}, {".ts", JAVASCRIPT}, {".tsx", JAVASCRIPT},
    {".jsx", JAVASCRIPT},
};

/* ---- texts ---- */

#define NOWHERE SIZE_MAX

static struct hearth_str head(struct hearth_str s, size_t n)
{
    return hearth_str_n(s.p, n < s.n ? n : s.n);
}

static struct hearth_str tail(struct hearth_str s, size_t from)
{
    return from < s.n ? hearth_str_n(s.p + from, s.n - from) : hearth_str_n("", 0);
}

static size_t last_of(struct hearth_str s, char c)
{
    size_t i = s.n;
    while (i > 0 && s.p[i - 1] != c) {
        i--;
    }
    return i == 0 ? NOWHERE : i - 1;
}

static size_t first_of(struct hearth_str s, char c)
{
    size_t at = hearth_str_find(s, c, 0);
    return at == s.n ? NOWHERE : at;
}

/* Where a piece of text begins. */
static size_t find(struct hearth_str s, const char *what)
{
    const char *at = s.n == 0 ? NULL : memmem(s.p, s.n, what, strlen(what));
    return at == NULL ? NOWHERE : (size_t)(at - s.p);
}

static size_t find_last(struct hearth_str s, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = s.n; i >= n; i--) {
        if (memcmp(s.p + i - n, what, n) == 0) {
            return i - n;
        }
    }
    return NOWHERE;
}

static bool starts(struct hearth_str s, const char *prefix)
{
    return hearth_str_starts(s, hearth_str_c(prefix));
}

static bool ends(struct hearth_str s, const char *suffix)
{
    return hearth_str_ends(s, hearth_str_c(suffix));
}

static bool is_upper(struct hearth_str s)
{
    return s.n > 0 && s.p[0] >= 'A' && s.p[0] <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct hearth_str none(void)
{
    return hearth_str_n("", 0);
}

/* A copy of s in room, with `from` replaced. */
static struct hearth_str replaced(struct hearth_str s, char from, char to, char *room)
{
    for (size_t i = 0; i < s.n; i++) {
        room[i] = s.p[i] == from ? to : s.p[i];
    }
    return hearth_str_n(room, s.n);
}

static struct hearth_str base_name(struct hearth_str path)
{
    size_t i = path.n;
    while (i > 0 && path.p[i - 1] != '/' && path.p[i - 1] != '\\') {
        i--;
    }
    return tail(path, i);
}

/* ---- Go: path/pkg.F, pkg.T.M, pkg.(*T[...]).M, pkg.F.func1 ---- */

static struct hearth_str go_package(struct hearth_str name)
{
    size_t from = 0;
    for (size_t i = 0; i < name.n && name.p[i] != '[' && name.p[i] != '('; i++) {
        from = name.p[i] == '/' ? i + 1 : from;
    }
    size_t dot = hearth_str_find(name, '.', from);
    return dot < name.n ? head(name, dot) : none();
}

/* The compiler's names for closures and wrappers: func1, 2, gowrap1, deferwrap1. */
static bool is_go_closure(struct hearth_str segment)
{
    static const char *const words[] = {"func", "gowrap", "deferwrap", ""};

    for (size_t w = 0; w < HEARTH_ARRAY_LEN(words); w++) {
        size_t at = strlen(words[w]);
        if (starts(segment, words[w]) && segment.n > at && is_digit(segment.p[at])) {
            return true;
        }
    }

    return segment.n == 0;
}

static struct hearth_str go_class(struct hearth_str name, char *room)
{
    struct hearth_str package = go_package(name);

    if (package.n == 0) {
        return none();
    }

    struct hearth_str rest = tail(name, package.n + 1), type = none();
    if (starts(rest, "(*")) {
        size_t end = 2;
        while (end < rest.n && rest.p[end] != ')' && rest.p[end] != '[') {
            end++;
        }
        type = tail(head(rest, end), 2);
    } else {
        size_t end = 0, depth = 0, at = 0;
        for (; at < rest.n && (depth > 0 || rest.p[at] != '.'); at++) {
            depth += rest.p[at] == '[';
            depth -= rest.p[at] == ']' && depth > 0;
            end = depth == 0 && rest.p[at] != ']' ? at + 1 : end;
        }
        struct hearth_str method = tail(rest, at + 1);
        method = head(method, hearth_str_find(method, '.', 0));
        if (!is_go_closure(method)) {
            type = head(rest, end);
        }
    }

    if (type.n == 0) {
        return none();
    }

    memcpy(room, package.p, package.n);
    room[package.n] = '.';
    memcpy(room + package.n + 1, type.p, type.n);

    return hearth_str_n(room, package.n + 1 + type.n);
}

/* ---- JVM and .NET: a.b.C.m, a/b/C.m, a!b.C.m ---- */

/* The class with the separators of the name. */
static struct hearth_str dotted_class(struct hearth_str name)
{
    size_t bang = first_of(name, '!');

    name = bang == NOWHERE ? name : tail(name, bang + 1);
    size_t arguments = first_of(name, '(');
    name = head(name, arguments);
    size_t lambda = find(name, "$$Lambda");
    if (lambda != NOWHERE) {
        return head(name, lambda);
    }

    size_t hidden = find(name, "/0x"); /* classes without a name of their own */
    size_t dot = last_of(name, '.');
    if (dot != NOWHERE && dot > 0 && name.p[dot - 1] == '.') { /* "C..ctor" */
        dot--;
    }

    return dot == NOWHERE ? none() : head(name, hidden < dot ? hidden : dot);
}

static struct hearth_str dotted_package(struct hearth_str name, char *room)
{
    size_t bang = first_of(name, '!');
    if (bang != NOWHERE) {
        return head(name, bang);
    }
    struct hearth_str class_name = replaced(dotted_class(name), '/', '.', room);
    size_t dot = last_of(class_name, '.');
    return dot == NOWHERE ? none() : head(class_name, dot);
}

/* ---- C++ and Rust: a::b::m ---- */

/* A name with brackets, taken apart outside of them. */
struct path {
    size_t begin, end;   /* without the type before and the arguments behind */
    size_t last, before; /* where the last two "::" are; NOWHERE */
};

static bool is_word(struct hearth_str s, size_t at, const char *word)
{
    return starts(tail(s, at), word) && (at == 0 || s.p[at - 1] == ' ' || s.p[at - 1] == ':');
}

static struct path path_of(struct hearth_str s)
{
    static const char anonymous[] = "(anonymous namespace)";
    struct path path = {0, s.n, NOWHERE, NOWHERE};
    size_t depth = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '<' || c == '[' || c == '{' || (c == '(' && depth > 0)) {
            depth++;
        } else if ((c == '>' && (i == 0 || s.p[i - 1] != '-')) || c == ']' || c == '}' ||
                   (c == ')' && depth > 0)) {
            depth -= depth > 0;
        } else if (depth > 0) {
            continue;
        } else if (is_word(s, i, anonymous)) {
            i += sizeof anonymous - 2;
        } else if (is_word(s, i, "decltype(")) {
            i += sizeof "decltype" - 1;
            depth++;
        } else if (c == '(' || is_word(s, i, "operator") || starts(tail(s, i), " [")) {
            path.end = c == 'o' ? s.n : i;
            break;
        } else if (c == ' ') {
            path = (struct path){i + 1, s.n, NOWHERE, NOWHERE};
        } else if (c == ':' && i + 1 < s.n && s.p[i + 1] == ':') {
            path.before = path.last;
            path.last = i++;
        }
    }

    return path;
}

/* Without what is between '<' and '>', and without empty parts at its end. */
static struct hearth_str without_arguments(struct hearth_str s, char *room)
{
    size_t n = 0, depth = 0;

    for (size_t i = 0; i < s.n; i++) {
        depth += s.p[i] == '<';
        if (depth == 0) {
            room[n++] = s.p[i];
        }
        depth -= s.p[i] == '>' && depth > 0 && (i == 0 || s.p[i - 1] != '-');
    }

    while (n > 0 && room[n - 1] == ':') {
        n--;
    }

    return hearth_str_n(room, n);
}

static struct hearth_str cpp_class(struct hearth_str name, char *room)
{
    struct path path = path_of(name);

    if (path.last == NOWHERE) {
        return none();
    }

    struct hearth_str method = tail(head(name, path.end), path.last + 2);
    struct hearth_str qualifier = tail(head(name, path.last), path.begin);
    struct hearth_str nearest =
        path.before == NOWHERE ? qualifier : tail(head(name, path.last), path.before + 2);
    method = starts(method, "~") ? tail(method, 1) : method;
    struct hearth_str bare = head(nearest, hearth_str_find(nearest, '<', 0));
    /* One lower-case name before a function is more often a namespace. */
    bool is_class = path.before != NOWHERE || is_upper(nearest) || bare.n < nearest.n ||
                    hearth_str_eq(bare, head(method, hearth_str_find(method, '<', 0)));
    if (!is_class || starts(nearest, "(anonymous") || starts(nearest, "{")) {
        return none();
    }

    return without_arguments(qualifier, room);
}

/* Without "::h0123456789abcdef" and closures. */
static struct hearth_str rust_name(struct hearth_str name)
{
    size_t at = find_last(name, "::");
    uint64_t hash;

    if (at != NOWHERE && name.n - at == 19 && name.p[at + 2] == 'h' &&
        hearth_str_hex_to_u64(tail(name, at + 3), &hash)) {
        name = head(name, at);
    }

    while ((at = find_last(name, "::")) != NOWHERE && starts(tail(name, at + 2), "{")) {
        name = head(name, at);
    }

    return starts(name, "_<") ? tail(name, 1) : name;
}

/* T and X of "<T as X>::m"; X is empty for "<T>::m". */
static bool rust_impl(struct hearth_str name, struct hearth_str *type, struct hearth_str *trait)
{
    if (!starts(name, "<")) {
        return false;
    }

    size_t depth = 0, end = 0, as = NOWHERE;
    for (; end < name.n; end++) {
        depth += name.p[end] == '<';
        depth -= name.p[end] == '>' && name.p[end - 1] != '-';
        if (depth == 0) {
            break;
        }
        if (depth == 1 && as == NOWHERE && starts(tail(name, end), " as ")) {
            as = end;
        }
    }

    *type = tail(head(name, as < end ? as : end), 1);
    *trait = as < end ? tail(head(name, end), as + 4) : none();
    static const char *const signs[] = {"&", "mut ", "dyn ", "*const ", "*"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(signs); i++) {
        *type = starts(*type, signs[i]) ? tail(*type, strlen(signs[i])) : *type;
    }

    return true;
}

static struct hearth_str rust_class(struct hearth_str name, char *room)
{
    struct hearth_str type, trait;

    name = rust_name(name);
    if (rust_impl(name, &type, &trait)) {
        return without_arguments(type, room);
    }

    name = without_arguments(name, room);
    size_t method = find_last(name, "::");
    if (method == NOWHERE) {
        return none();
    }

    while (method > 0 && name.p[method - 1] == ':') { /* "T::<X>::m" */
        method--;
    }

    struct hearth_str qualifier = head(name, method);
    size_t nearest = find_last(qualifier, "::");

    return is_upper(nearest == NOWHERE ? qualifier : tail(qualifier, nearest + 2)) ? qualifier
                                                                                   : none();
}

static struct hearth_str rust_package(struct hearth_str name)
{
    struct hearth_str type, trait;
    name = rust_name(name);
    if (rust_impl(name, &type, &trait)) {
        name = find(head(type, hearth_str_find(type, '<', 0)), "::") == NOWHERE ? trait : type;
    }
    size_t at = find(name, "::");
    return at == NOWHERE ? none() : head(name, at);
}

/* ---- scripts ---- */

/* "C" of C.m and C#m. */
static struct hearth_str script_class(struct hearth_str name)
{
    size_t at = last_of(name, '#');
    at = at == NOWHERE ? last_of(name, '.') : at;
    if (at == NOWHERE || at == 0) {
        return none();
    }
    struct hearth_str class_name = head(name, at);
    return ends(class_name, ">") ? none() : class_name; /* "f.<locals>" */
}

static struct hearth_str ruby_class(struct hearth_str name)
{
    size_t block = find_last(name, " in "); /* "block in C#m" */
    return script_class(block == NOWHERE ? name : tail(name, block + 4));
}

static struct hearth_str js_class(struct hearth_str name)
{
    name = head(name, find(name, " [as "));
    size_t verb = last_of(name, ' '); /* "async C.m" */
    return script_class(verb == NOWHERE ? name : tail(name, verb + 1));
}

/* The dotted name of a module: its path below where modules lie. */
static struct hearth_str python_package(struct hearth_str file, char *room)
{
    if (starts(file, "<frozen ") && ends(file, ">")) {
        return tail(head(file, file.n - 1), sizeof "<frozen " - 1);
    }

    if (starts(file, "<")) {
        return none();
    }

    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
    size_t from = 0;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(roots) && from == 0; i++) {
        size_t at = find_last(file, roots[i]);
        from = at == NOWHERE ? 0 : at + strlen(roots[i]);
    }

    size_t library = find_last(file, "/lib/python");
    if (from == 0 && library != NOWHERE) {
        size_t slash = hearth_str_find(file, '/', library + sizeof "/lib/python" - 1);
        from = slash < file.n ? slash + 1 : 0;
    }

    struct hearth_str module = tail(file, from);
    module = starts(module, "/") ? tail(module, 1) : module;
    size_t dot = last_of(module, '.');
    module = dot == NOWHERE ? module : head(module, dot);
    if (ends(module, "/__init__")) {
        module = head(module, module.n - (sizeof "/__init__" - 1));
    }

    return replaced(module, '/', '.', room);
}

/* "rack" of .../gems/rack-2.2.3/lib/rack.rb */
static struct hearth_str ruby_package(struct hearth_str file)
{
    size_t at = find_last(file, "/gems/");

    if (at == NOWHERE) {
        return none();
    }

    struct hearth_str gem = tail(file, at + sizeof "/gems/" - 1);
    gem = head(gem, hearth_str_find(gem, '/', 0));
    for (size_t i = 0; i + 1 < gem.n; i++) {
        if (gem.p[i] == '-' && is_digit(gem.p[i + 1])) {
            return head(gem, i);
        }
    }

    return gem;
}

static struct hearth_str js_package(struct hearth_str file)
{
    if (starts(file, "node:")) {
        return file;
    }

    static const char modules[] = "node_modules/";
    size_t at = find_last(file, modules);
    if (at == NOWHERE) {
        return none();
    }

    struct hearth_str package = tail(file, at + sizeof modules - 1);
    size_t end = hearth_str_find(package, '/', 0);

    return head(package, starts(package, "@") ? hearth_str_find(package, '/', end + 1) : end);
}

static struct hearth_str php_class(struct hearth_str name)
{
    return head(name, find(name, "::") == NOWHERE ? 0 : find(name, "::"));
}

static struct hearth_str php_package(struct hearth_str name)
{
    struct hearth_str scope = find(name, "::") == NOWHERE ? name : php_class(name);
    size_t at = last_of(scope, '\\');
    return at == NOWHERE ? none() : head(scope, at);
}

/* ---- which language ---- */

/*
 * Names with dots and slashes and no telling file. The class of the JVM begins with a capital, the
 * package of Go does not; and a Go name has dots behind its last slash only.
 */
static enum language language_of_dotted(struct hearth_str name)
{
    if (find(name, ".(*") != NOWHERE || first_of(name, '[') != NOWHERE) {
        return GO;
    }

    struct hearth_str plain = head(name, first_of(name, '('));
    size_t last = last_of(plain, '.');
    if (last == NOWHERE) {
        return UNKNOWN;
    }

    if (find(plain, "$$Lambda") != NOWHERE || find(plain, "/0x") != NOWHERE) {
        return JVM;
    }

    struct hearth_str above = base_name(head(plain, last));
    size_t n_dots = 0;
    for (size_t i = 0; i < above.n; i++) {
        n_dots += above.p[i] == '.';
    }

    size_t before = last_of(above, '.');
    bool capital = is_upper(before == NOWHERE ? above : tail(above, before + 1));
    if (is_go_closure(tail(plain, last + 1))) {
        return GO;
    }

    return capital || (n_dots > 1 && above.n == last) ? JVM : GO;
}

static enum language language_of(struct hearth_str name, struct hearth_str file)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_endings); i++) {
        if (ends(file, g_endings[i].ending)) {
            return g_endings[i].language;
        }
    }

    if (starts(file, "<frozen ")) {
        return PYTHON;
    }

    if (starts(file, "node:")) {
        return JAVASCRIPT;
    }

    if (first_of(name, '#') != NOWHERE && first_of(name, '{') == NOWHERE) {
        return RUBY;
    }

    if (find(name, "::") != NOWHERE) {
        size_t hash = find_last(name, "::h");
        bool rust = (hash != NOWHERE && name.n - hash == 19) ||
                    find(name, "{{closure}}") != NOWHERE || find(name, "{closure#") != NOWHERE ||
                    find(name, " as ") != NOWHERE;
        return rust ? RUST : first_of(name, '\\') != NOWHERE ? PHP : CPP;
    }

    if (first_of(name, '\\') != NOWHERE) {
        return PHP;
    }

    size_t bang = first_of(name, '!');
    if (bang != NOWHERE && first_of(tail(name, bang), '.') != NOWHERE) {
        return DOTNET;
    }

    return starts(name, "0x") ? UNKNOWN : language_of_dotted(name);
}

/* ---- the answers ---- */

struct hearth_str hearth_symbol_class(struct hearth_str name, struct hearth_str file, char *room)
{
    switch (language_of(name, file)) {
    case UNKNOWN:
        break;
    case GO:
        return go_class(name, room);
    case JVM:
    case DOTNET:
        return replaced(dotted_class(name), '/', '.', room);
    case CPP:
        return cpp_class(name, room);
    case RUST:
        return rust_class(name, room);
    case PYTHON:
        return script_class(name);
    case RUBY:
        return ruby_class(name);
    case PHP:
        return php_class(name);
    case JAVASCRIPT:
        return js_class(name);
    }

    return none();
}

struct hearth_str hearth_symbol_package(struct hearth_str name, struct hearth_str file, char *room)
{
    switch (language_of(name, file)) {
    case UNKNOWN:
    case CPP:
        break;
    case GO:
        return go_package(name);
    case JVM:
    case DOTNET:
        return dotted_package(name, room);
    case RUST:
        return rust_package(name);
    case PYTHON:
        return python_package(file, room);
    case RUBY:
        return ruby_package(file);
    case PHP:
        return php_package(name);
    case JAVASCRIPT:
        return js_package(file);
    }

    return none();
}

struct hearth_str hearth_symbol_directory(struct hearth_str file)
{
    size_t n = file.n - base_name(file).n;
    return head(file, n > 1 ? n - 1 : n);
}

struct hearth_str hearth_symbol_library(struct hearth_str mapping_file)
{
    return base_name(mapping_file);
}
