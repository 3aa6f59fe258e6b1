/*
 * symbol_parts.c -- takes names of functions apart, by language (symbol_language.h).
 *
 * Names are hostile: every function is a scan within bounds, and a name that fits no rule has no
 * parts.
 */
#include "hearth/model/symbol_parts.h"

#include "profile/symbol_language.h"

#include <assert.h>

/* A copy of s in room, with each `from` replaced. */
static struct hearth_str replace_char(struct hearth_str s, char from, char to, char *room)
{
    for (size_t i = 0; i < s.n; i++) {
        room[i] = s.p[i] == from ? to : s.p[i];
    }
    return hearth_str_n(room, s.n);
}

/* ---- Go: path/pkg.F, pkg.T.M, pkg.(*T[...]).M, pkg.F.func1 ---- */

/* "a/b.T" of "type:.eq.a/b.T", which compares values of a type; .p is NULL for others. */
static struct hearth_str find_go_type(struct hearth_str name)
{
    static const char *const makers[] = {"type:.eq.", "type:.hash.", "type..eq.", "type..hash."};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(makers); i++) {
        if (starts_with(name, makers[i])) {
            return cut_tail(name, strlen(makers[i]));
        }
    }
    return (struct hearth_str){0};
}

static struct hearth_str find_go_package(struct hearth_str name)
{
    struct hearth_str of_type = find_go_type(name);
    name = of_type.p != NULL ? of_type : name;

    size_t from = 0;
    for (size_t i = 0; i < name.n && name.p[i] != '[' && name.p[i] != '('; i++) {
        from = name.p[i] == '/' ? i + 1 : from;
    }
    size_t dot = hearth_str_find(name, '.', from);
    return dot < name.n ? cut_head(name, dot) : no_part();
}

static struct hearth_str make_go_class(struct hearth_str name, char *room)
{
    struct hearth_str package = find_go_package(name), of_type = find_go_type(name);

    if (package.n == 0) {
        return no_part();
    }

    if (of_type.p != NULL) {
        return cut_head(of_type, hearth_str_find(of_type, '[', 0));
    }

    /* The type is a receiver "(*T)", or the part before a method that is no closure. */
    struct hearth_str rest = cut_tail(name, package.n + 1), type = no_part();
    if (starts_with(rest, "(*")) {
        size_t end = 2;
        while (end < rest.n && rest.p[end] != ')' && rest.p[end] != '[') {
            end++;
        }
        type = cut_tail(cut_head(rest, end), 2);
    } else {
        size_t end = 0, depth = 0, at = 0;
        for (; at < rest.n && (depth > 0 || rest.p[at] != '.'); at++) {
            depth += rest.p[at] == '[';
            depth -= rest.p[at] == ']' && depth > 0;
            end = depth == 0 && rest.p[at] != ']' ? at + 1 : end;
        }

        struct hearth_str method = cut_tail(rest, at + 1);
        method = cut_head(method, hearth_str_find(method, '.', 0));
        if (!hearth_go_is_closure(method)) {
            type = cut_head(rest, end);
        }
    }

    if (type.n == 0) {
        return no_part();
    }

    /* The class is package and type. */
    memcpy(room, package.p, package.n);
    room[package.n] = '.';
    memcpy(room + package.n + 1, type.p, type.n);

    return hearth_str_n(room, package.n + 1 + type.n);
}

/* ---- JVM and .NET: a.b.C.m, a/b/C.m, a!b.C.m ---- */

/* Remove a module or class loader, which ends with a slash: "java.base/", "app//". */
static struct hearth_str strip_java_module(struct hearth_str name)
{
    size_t slash = find_last_char(name, '/');

    if (slash == NOWHERE || starts_with(cut_tail(name, slash), "/0x")) {
        return name;
    }

    struct hearth_str head = cut_head(name, slash);
    return find_char(head, '.') != NOWHERE || find_char(head, '@') != NOWHERE ||
                   ends_with(head, "/")
               ? cut_tail(name, slash + 1)
               : name;
}

/* Remove type arguments and what follows: "C" of "C<T>" and "C`1[[T, a.b]]". */
static struct hearth_str cut_type_arguments(struct hearth_str name)
{
    for (size_t i = 1; i < name.n; i++) {
        bool follows = name.p[i - 1] != '.' && name.p[i - 1] != '+' && name.p[i - 1] != '/';
        if (name.p[i] == '[' || (name.p[i] == '<' && follows)) {
            return cut_head(name, i);
        }
    }
    return name;
}

/* Remove the type arguments of a method at the end: "C.m" of "C.m[[T, a.b]]" and "C.m<T>". */
static struct hearth_str cut_method_arguments(struct hearth_str name)
{
    char close = name.n > 0 ? name.p[name.n - 1] : 0;
    char open = close == ']' ? '[' : '<';
    size_t depth = 0, i = name.n;

    while ((close == ']' || close == '>') && i > 0) {
        i--;
        depth += name.p[i] == close;
        depth -= name.p[i] == open;
        if (depth == 0) {
            bool is_name = i == 0 || name.p[i - 1] == '.' || name.p[i - 1] == '+'; /* "C.<init>" */
            return is_name ? name : cut_head(name, i);
        }
    }
    return name;
}

/* The class, with the separators of the name. */
static struct hearth_str find_dotted_class(struct hearth_str name)
{
    /* Remove the assembly, the result and the arguments. */
    size_t bang = find_char(cut_head(name, find_char(name, '(')), '!');

    name = bang == NOWHERE ? name : cut_tail(name, bang + 1);
    name = hearth_symbol_strip_result(name);
    size_t descriptor = find_text(name, ";::"); /* "La/b/C;::m" */
    if (descriptor != NOWHERE && starts_with(name, "L")) {
        return cut_tail(cut_head(name, descriptor), 1);
    }

    size_t arguments = find_char(name, '(');
    name = cut_method_arguments(strip_java_module(cut_head(name, arguments)));
    size_t lambda = find_text(name, "$$Lambda");
    if (lambda != NOWHERE) {
        return cut_head(name, lambda);
    }

    /* The class ends at the method; hidden classes have a suffix. */
    size_t hidden = find_text(name, "/0x");
    size_t dot = find_last_char(name, '.');
    if (dot != NOWHERE && dot > 0 && name.p[dot - 1] == '.') { /* "C..ctor" */
        dot--;
    }

    if (dot == NOWHERE) {
        return no_part();
    }

    struct hearth_str class_name = cut_type_arguments(cut_head(name, hidden < dot ? hidden : dot));
    return ends_with(class_name, ":") ? cut_head(class_name, class_name.n - 1) : class_name;
}

static struct hearth_str make_dotted_package(struct hearth_str name, char *room)
{
    size_t bang = find_char(cut_head(name, find_char(name, '(')), '!');
    if (bang != NOWHERE) {
        return cut_head(name, bang);
    }
    struct hearth_str class_name = replace_char(find_dotted_class(name), '/', '.', room);
    size_t dot = find_last_char(class_name, '.');
    return dot == NOWHERE ? no_part() : cut_head(class_name, dot);
}

/* ---- C++ and Rust: a::b::m ---- */

/* The parts of a name with brackets, as positions outside of brackets. */
struct qualified_path {
    size_t begin, end;   /* without the return type before and the arguments after it */
    size_t last, before; /* positions of the last two "::", or NOWHERE */
};

static bool is_word(struct hearth_str s, size_t at, const char *word)
{
    return starts_with(cut_tail(s, at), word) &&
           (at == 0 || s.p[at - 1] == ' ' || s.p[at - 1] == ':');
}

static struct qualified_path parse_path(struct hearth_str s)
{
    static const char anonymous[] = "(anonymous namespace)";
    struct qualified_path path = {0, s.n, NOWHERE, NOWHERE};
    size_t depth = 0;

    /* A scan with a bracket depth; only characters at depth 0 have a meaning. */
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
        } else if (c == '(' || is_word(s, i, "operator") || starts_with(cut_tail(s, i), " [")) {
            path.end = c == 'o' ? s.n : i;
            break;
        } else if (c == ' ') {
            path = (struct qualified_path){i + 1, s.n, NOWHERE, NOWHERE};
        } else if (c == ':' && i + 1 < s.n && s.p[i + 1] == ':') {
            path.before = path.last;
            path.last = i++;
        }
    }

    return path;
}

/* Remove all text between '<' and '>', and a "::" at the end. */
static struct hearth_str strip_arguments(struct hearth_str s, char *room)
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

static struct hearth_str find_cpp_class(struct hearth_str name, char *room)
{
    struct qualified_path path = parse_path(name);

    if (path.last == NOWHERE) {
        return no_part();
    }

    /* The method and the nearest scope before it. */
    struct hearth_str method = cut_tail(cut_head(name, path.end), path.last + 2);
    struct hearth_str qualifier = cut_tail(cut_head(name, path.last), path.begin);
    struct hearth_str nearest =
        path.before == NOWHERE ? qualifier : cut_tail(cut_head(name, path.last), path.before + 2);
    method = starts_with(method, "~") ? cut_tail(method, 1) : method;
    struct hearth_str bare = cut_head(nearest, hearth_str_find(nearest, '<', 0));

    /* A single lower-case name before a function is more often a namespace than a class. */
    bool is_class = path.before != NOWHERE || is_upper(nearest) || bare.n < nearest.n ||
                    hearth_str_eq(bare, cut_head(method, hearth_str_find(method, '<', 0)));
    bool is_inner = hearth_str_eq_c(nearest, "internal") || hearth_str_eq_c(nearest, "detail");
    if (!is_class || is_inner || starts_with(nearest, "(anonymous") || starts_with(nearest, "{")) {
        return no_part();
    }

    return strip_arguments(qualifier, room);
}

/* Remove "::h0123456789abcdef" and closures. */
static struct hearth_str strip_rust_name(struct hearth_str name)
{
    size_t at = find_last_text(name, "::");
    uint64_t hash;

    if (at != NOWHERE && name.n - at == 19 && name.p[at + 2] == 'h' &&
        hearth_str_hex_to_u64(cut_tail(name, at + 3), &hash)) {
        name = cut_head(name, at);
    }

    while ((at = find_last_text(name, "::")) != NOWHERE &&
           starts_with(cut_tail(name, at + 2), "{")) {
        name = cut_head(name, at);
    }

    return starts_with(name, "_<") ? cut_tail(name, 1) : name;
}

/* T and X of "<T as X>::m"; X is empty for "<T>::m". */
static bool parse_rust_impl(struct hearth_str name, struct hearth_str *type,
                            struct hearth_str *trait)
{
    if (!starts_with(name, "<")) {
        return false;
    }

    /* Find the closing bracket, and " as " at depth 1. */
    size_t depth = 0, end = 0, as = NOWHERE;
    for (; end < name.n; end++) {
        depth += name.p[end] == '<';
        depth -= name.p[end] == '>' && name.p[end - 1] != '-';
        if (depth == 0) {
            break;
        }
        if (depth == 1 && as == NOWHERE && starts_with(cut_tail(name, end), " as ")) {
            as = end;
        }
    }

    *type = cut_tail(cut_head(name, as < end ? as : end), 1);
    *trait = as < end ? cut_tail(cut_head(name, end), as + 4) : no_part();
    /* Remove references and pointers from the type. */
    static const char *const signs[] = {"&", "mut ", "dyn ", "*const ", "*"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(signs); i++) {
        *type = starts_with(*type, signs[i]) ? cut_tail(*type, strlen(signs[i])) : *type;
    }

    return true;
}

static struct hearth_str find_rust_class(struct hearth_str name, char *room)
{
    struct hearth_str type, trait;

    name = strip_rust_name(name);
    if (parse_rust_impl(name, &type, &trait)) {
        return strip_arguments(type, room);
    }

    name = strip_arguments(name, room);
    size_t method = find_last_text(name, "::");
    if (method == NOWHERE) {
        return no_part();
    }

    while (method > 0 && name.p[method - 1] == ':') { /* "T::<X>::m" */
        method--;
    }

    struct hearth_str qualifier = cut_head(name, method);
    size_t nearest = find_last_text(qualifier, "::");

    return is_upper(nearest == NOWHERE ? qualifier : cut_tail(qualifier, nearest + 2)) ? qualifier
                                                                                       : no_part();
}

static struct hearth_str find_rust_package(struct hearth_str name)
{
    struct hearth_str type, trait;
    name = strip_rust_name(name);
    if (parse_rust_impl(name, &type, &trait)) {
        name = find_text(cut_head(type, hearth_str_find(type, '<', 0)), "::") == NOWHERE ? trait
                                                                                         : type;
    }
    size_t at = find_text(name, "::");
    return at == NOWHERE ? no_part() : cut_head(name, at);
}

/* ---- scripts ---- */

/* "C" in C.m and C#m. */
static struct hearth_str find_script_class(struct hearth_str name)
{
    size_t at = find_last_char(name, '#');
    at = at == NOWHERE ? find_last_char(name, '.') : at;
    if (at == NOWHERE || at == 0) {
        return no_part();
    }
    struct hearth_str class_name = cut_head(name, at);
    return ends_with(class_name, ">") ? no_part() : class_name; /* "f.<locals>" */
}

static struct hearth_str find_ruby_class(struct hearth_str name)
{
    size_t block = find_last_text(name, " in "); /* "block in C#m" */
    return find_script_class(block == NOWHERE ? name : cut_tail(name, block + 4));
}

static struct hearth_str find_js_class(struct hearth_str name)
{
    name = cut_head(name, find_text(name, " [as "));
    size_t verb = find_last_char(name, ' '); /* "async C.m" */
    return find_script_class(verb == NOWHERE ? name : cut_tail(name, verb + 1));
}

/* The dotted name of a module: its path below the directory that holds modules. */
static struct hearth_str make_python_package(struct hearth_str file, char *room)
{
    if (starts_with(file, "<frozen ") && ends_with(file, ">")) {
        return cut_tail(cut_head(file, file.n - 1), sizeof "<frozen " - 1);
    }

    if (starts_with(file, "<")) {
        return no_part();
    }

    /* Find that directory: of packages, or of the standard library. */
    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
    size_t from = 0;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(roots) && from == 0; i++) {
        size_t at = find_last_text(file, roots[i]);
        from = at == NOWHERE ? 0 : at + strlen(roots[i]);
    }

    size_t library = find_last_text(file, "/lib/python");
    if (from == 0 && library != NOWHERE) {
        size_t slash = hearth_str_find(file, '/', library + sizeof "/lib/python" - 1);
        from = slash < file.n ? slash + 1 : 0;
    }

    /* Remove the ending, and the file of a package. */
    struct hearth_str module = cut_tail(file, from);
    module = starts_with(module, "/") ? cut_tail(module, 1) : module;
    size_t dot = find_last_char(module, '.');
    module = dot == NOWHERE ? module : cut_head(module, dot);
    if (ends_with(module, "/__init__")) {
        module = cut_head(module, module.n - (sizeof "/__init__" - 1));
    }

    return replace_char(module, '/', '.', room);
}

/* "rack" in .../gems/rack-2.2.3/lib/rack.rb */
static struct hearth_str find_ruby_package(struct hearth_str file)
{
    size_t at = find_last_text(file, "/gems/");

    if (at == NOWHERE) {
        return no_part();
    }

    struct hearth_str gem = cut_tail(file, at + sizeof "/gems/" - 1);
    gem = cut_head(gem, hearth_str_find(gem, '/', 0));
    for (size_t i = 0; i + 1 < gem.n; i++) {
        if (gem.p[i] == '-' && is_digit(gem.p[i + 1])) {
            return cut_head(gem, i);
        }
    }

    return gem;
}

static struct hearth_str find_js_package(struct hearth_str file)
{
    if (starts_with(file, "node:")) {
        return file;
    }

    static const char modules[] = "node_modules/";
    size_t at = find_last_text(file, modules);
    if (at == NOWHERE) {
        return no_part();
    }

    struct hearth_str package = cut_tail(file, at + sizeof modules - 1);
    size_t end = hearth_str_find(package, '/', 0);

    return cut_head(package,
                    starts_with(package, "@") ? hearth_str_find(package, '/', end + 1) : end);
}

static struct hearth_str find_php_class(struct hearth_str name)
{
    size_t bar = find_char(name, '|');
    name = bar == NOWHERE ? name : cut_tail(name, bar + 1);
    size_t at = find_text(name, "::");
    return cut_head(name, at == NOWHERE ? 0 : at);
}

static struct hearth_str find_php_package(struct hearth_str name)
{
    size_t bar = find_char(name, '|'); /* "standard|strlen": the extension */
    if (bar != NOWHERE) {
        return cut_head(name, bar);
    }

    struct hearth_str scope = find_text(name, "::") == NOWHERE ? name : find_php_class(name);
    size_t at = find_last_char(scope, '\\');
    return at == NOWHERE ? no_part() : cut_head(scope, at);
}

/* Removes the marks of profilers from a name, and returns the language of the function. */
static enum hearth_language strip_language(struct hearth_str *name, struct hearth_str file)
{
    enum hearth_language marked;

    *name = hearth_symbol_strip_marks(*name, &marked);

    return marked != HEARTH_LANGUAGE_UNKNOWN ? marked : hearth_symbol_language(*name, file);
}

/* ---- public functions ---- */

struct hearth_str hearth_symbol_class(struct hearth_str name, struct hearth_str file, char *room)
{
    assert(room != NULL);

    switch (strip_language(&name, file)) {
    case HEARTH_LANGUAGE_UNKNOWN:
    case HEARTH_LANGUAGE_NONE:
        break;
    case HEARTH_LANGUAGE_GO:
        return make_go_class(name, room);
    case HEARTH_LANGUAGE_JVM:
    case HEARTH_LANGUAGE_DOTNET:
        return replace_char(find_dotted_class(name), '/', '.', room);
    case HEARTH_LANGUAGE_CPP:
        return find_cpp_class(name, room);
    case HEARTH_LANGUAGE_RUST:
        return find_rust_class(name, room);
    case HEARTH_LANGUAGE_PYTHON:
        return find_script_class(name);
    case HEARTH_LANGUAGE_RUBY:
        return find_ruby_class(name);
    case HEARTH_LANGUAGE_PHP:
        return find_php_class(name);
    case HEARTH_LANGUAGE_JAVASCRIPT:
        return find_js_class(name);
    }

    return no_part();
}

struct hearth_str hearth_symbol_package(struct hearth_str name, struct hearth_str file, char *room)
{
    assert(room != NULL);

    switch (strip_language(&name, file)) {
    case HEARTH_LANGUAGE_UNKNOWN:
    case HEARTH_LANGUAGE_NONE:
    case HEARTH_LANGUAGE_CPP:
        break;
    case HEARTH_LANGUAGE_GO:
        return find_go_package(name);
    case HEARTH_LANGUAGE_JVM:
    case HEARTH_LANGUAGE_DOTNET:
        return make_dotted_package(name, room);
    case HEARTH_LANGUAGE_RUST:
        return find_rust_package(name);
    case HEARTH_LANGUAGE_PYTHON:
        return make_python_package(file, room);
    case HEARTH_LANGUAGE_RUBY:
        return find_ruby_package(file);
    case HEARTH_LANGUAGE_PHP:
        return find_php_package(name);
    case HEARTH_LANGUAGE_JAVASCRIPT:
        return find_js_package(file);
    }

    return no_part();
}

/* Whether a mapping is the kernel or one of its modules. */
static bool is_kernel_mapping(struct hearth_str file)
{
    struct hearth_str base = cut_base_name(file);
    return starts_with(file, "[kernel") || starts_with(file, "[guest.kernel") ||
           starts_with(base, "vmlinux") || ends_with(base, ".ko") || ends_with(base, ".ko.xz") ||
           ends_with(base, ".ko.zst");
}

struct hearth_str hearth_symbol_kind(struct hearth_str name, struct hearth_str file,
                                     struct hearth_str mapping_file)
{
    if (is_kernel_mapping(mapping_file) || ends_with(name, "_[k]")) {
        return HEARTH_STR("kernel");
    }

    switch (strip_language(&name, file)) {
    case HEARTH_LANGUAGE_GO:
        return HEARTH_STR("go");
    case HEARTH_LANGUAGE_JVM:
        return HEARTH_STR("jvm");
    case HEARTH_LANGUAGE_DOTNET:
        return HEARTH_STR("dotnet");
    case HEARTH_LANGUAGE_CPP:
        return HEARTH_STR("native");
    case HEARTH_LANGUAGE_RUST:
        return HEARTH_STR("rust");
    case HEARTH_LANGUAGE_PYTHON:
        return HEARTH_STR("cpython");
    case HEARTH_LANGUAGE_RUBY:
        return HEARTH_STR("ruby");
    case HEARTH_LANGUAGE_PHP:
        return HEARTH_STR("php");
    case HEARTH_LANGUAGE_JAVASCRIPT:
        return HEARTH_STR("v8js");
    case HEARTH_LANGUAGE_UNKNOWN:
    case HEARTH_LANGUAGE_NONE:
        break;
    }

    bool is_native = mapping_file.n > 0 || ends_with(file, ".c") || ends_with(file, ".s") ||
                     ends_with(file, ".S");
    return is_native ? HEARTH_STR("native") : no_part();
}

struct hearth_str hearth_symbol_directory(struct hearth_str file)
{
    size_t n = file.n - cut_base_name(file).n;
    return cut_head(file, n > 1 ? n - 1 : n);
}

struct hearth_str hearth_symbol_library(struct hearth_str mapping_file)
{
    return cut_base_name(mapping_file);
}
