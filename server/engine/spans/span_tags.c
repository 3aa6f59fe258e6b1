/*
 * span_tags.c -- makes a selector from the tags of a span.
 *
 * Variables of a custom selector are covered with as many bytes that no selector contains. So the
 * parser of selectors reads the text around them, and its positions stay true: ${__tags} becomes a
 * matcher whose name is such bytes, any other variable a run of them inside a string. The values of
 * variables are put into the parsed matchers, never into text. So no value of a span can end a
 * string, add a matcher or act as a regular expression.
 *
 * Source: Grafana's documented "Trace to profiles": tags, renames, variables of the custom query.
 */
#include "hearth/engine/span_profiles.h"
#include "hearth/model/labels.h"
#include "hearth/selector/matcher.h"
#include "hearth/selector/selector.h"

#include <assert.h>

#define TAGS_VARIABLE "${__tags}"
#define TAG_PREFIX    "${__span.tags"
/* Covers the bytes of a variable; a custom selector that contains it is refused. */
#define COVER         '\x01'
#define MAX_VARIABLES 200
#define MAX_BYTES     ((size_t)64 * 1024) /* of a custom selector, as of any selector */

static const char *const DEFAULTS[] = {"cluster", "hostname",     "namespace",
                                       "pod",     "service.name", "service.namespace"};

enum meaning {
    MEANS_TAGS, /* a list of matchers; the other variables are texts */
    MEANS_TAG,
    MEANS_SPAN_ID,
    MEANS_TRACE_ID,
    MEANS_NAME,
};

/* Variables with a fixed text. */
static const struct {
    const char *text, *what;
    enum meaning meaning;
} FIXED[] = {
    {TAGS_VARIABLE, "tags", MEANS_TAGS},
    {"${__span.spanId}", "the id of the span", MEANS_SPAN_ID},
    {"${__span.traceId}", "the trace of the span", MEANS_TRACE_ID},
    {"${__trace.traceId}", "the trace of the span", MEANS_TRACE_ID},
    {"${__span.name}", "the name of the span", MEANS_NAME},
};

struct variable {
    size_t at, n; /* its position in the query */
    enum meaning meaning;
    struct hearth_str name; /* name of the tag; otherwise a description */
};

struct tag_mapper {
    const struct hearth_tag_rules *rules;
    const struct hearth_known_span *span;
    struct hearth_arena *arena;
    struct hearth_err *err;
    struct variable *variables; /* [MAX_VARIABLES], in the order of the query */
    size_t n_variables, next;   /* next: the next variable expected in the parsed matchers */
    struct hearth_selector out;
    const char *reason; /* why there is no selector; NULL: none so far */
};

/* ---- tags ---- */

/* Find the value of a tag. A value that labels cannot have counts as absent. */
static struct hearth_str find_tag_value(const struct tag_mapper *m, struct hearth_str name)
{
    for (size_t i = 0; i < m->span->n_tags; i++) {
        const struct hearth_span_tag *tag = &m->span->tags[i];
        if (hearth_str_eq(tag->key, name) && tag->value.n > 0 &&
            hearth_str_utf8_valid(tag->value)) {
            return tag->value;
        }
    }

    bool is_service = hearth_str_eq_c(name, "service.name");

    return is_service && hearth_str_utf8_valid(m->span->service) ? m->span->service
                                                                 : (struct hearth_str){0};
}

static enum hearth_status
choose_label(struct tag_mapper *m, const struct hearth_tag_mapping *mapping, struct hearth_str *ret)
{
    /* A given label is used as it is. */
    if (mapping->tag.n == 0) {
        return HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT, "a tag mapping names no tag");
    }

    if (mapping->label.n > 0) {
        *ret = mapping->label;
        return HEARTH_OK;
    }

    /* Otherwise, replace the characters that labels cannot have. */
    bool digit_first = mapping->tag.p[0] >= '0' && mapping->tag.p[0] <= '9';
    char *name = hearth_arena_alloc(m->arena, mapping->tag.n + 1);
    if (name == NULL) {
        return HEARTH_FAIL_ARENA(m->err, m->arena);
    }

    size_t n = 0;
    if (digit_first) {
        name[n++] = '_';
    }

    for (size_t i = 0; i < mapping->tag.n; i++) {
        char c = mapping->tag.p[i];
        bool is_valid =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        name[n++] = is_valid ? c : '_';
    }

    *ret = hearth_str_n(name, n);

    return HEARTH_OK;
}

/* Add a matcher, unless one of the matchers from `from` on has its label. */
static enum hearth_status add_matcher_once(struct tag_mapper *m, size_t from,
                                           struct hearth_str label, struct hearth_str value)
{
    for (size_t i = from; i < m->out.n; i++) {
        if (hearth_str_eq(m->out.matchers[i].name, label)) {
            return HEARTH_OK;
        }
    }

    return hearth_selector_add(&m->out, label, HEARTH_MATCH_EQ, value, m->arena, m->err);
}

static enum hearth_status add_mapped_tag(struct tag_mapper *m, size_t from,
                                         const struct hearth_tag_mapping *mapping)
{
    struct hearth_str label;
    HEARTH_TRY(choose_label(m, mapping, &label));

    struct hearth_str value = find_tag_value(m, mapping->tag);
    return value.n > 0 ? add_matcher_once(m, from, label, value) : HEARTH_OK;
}

/* Add the matchers of ${__tags}. */
static enum hearth_status add_tag_matchers(struct tag_mapper *m)
{
    size_t from = m->out.n;

    /* The given mappings, or the defaults. */
    for (size_t i = 0; i < m->rules->n_mappings; i++) {
        HEARTH_TRY(add_mapped_tag(m, from, &m->rules->mappings[i]));
    }

    for (size_t i = 0; m->rules->n_mappings == 0 && i < HEARTH_ARRAY_LEN(DEFAULTS); i++) {
        const struct hearth_tag_mapping mapping = {.tag = hearth_str_c(DEFAULTS[i])};
        HEARTH_TRY(add_mapped_tag(m, from, &mapping));
    }

    /* The service, unless a tag set it. */
    if (m->span->service.n == 0 || !hearth_str_utf8_valid(m->span->service)) {
        return HEARTH_OK;
    }

    return add_matcher_once(m, from, HEARTH_STR(HEARTH_LABEL_SERVICE), m->span->service);
}

/* ---- variables of a query ---- */

static enum hearth_status fail_unknown_variable(struct tag_mapper *m, struct hearth_str query,
                                                size_t at)
{
    size_t end = hearth_str_find(query, '}', at);
    struct hearth_str text = hearth_str_n(query.p + at, end - at + (end < query.n));

    return HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT,
                       "unknown variable %.*s in the query, at offset %zu: there are ${__tags}, "
                       "${__span.tags.NAME}, also ${__span.tags[\"NAME\"]}, ${__span.spanId}, "
                       "${__span.traceId}, ${__trace.traceId} and ${__span.name}",
                       text.n > 64 ? 64 : (int)text.n, text.p, at);
}

/* Read the variable at `at`, which begins with "${". */
static enum hearth_status read_variable(struct tag_mapper *m, struct hearth_str query, size_t at,
                                        struct variable *ret)
{
    assert(at <= query.n);

    struct hearth_str rest = hearth_str_n(query.p + at, query.n - at);

    /* Fixed variables. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(FIXED); i++) {
        if (hearth_str_starts(rest, hearth_str_c(FIXED[i].text))) {
            *ret = (struct variable){at, strlen(FIXED[i].text), FIXED[i].meaning,
                                     hearth_str_c(FIXED[i].what)};
            return HEARTH_OK;
        }
    }

    /* Tags: ${__span.tags.NAME} or ${__span.tags["NAME"]}. */
    size_t from = sizeof TAG_PREFIX - 1;
    if (!hearth_str_starts(rest, HEARTH_STR(TAG_PREFIX)) || from + 1 >= rest.n) {
        return fail_unknown_variable(m, query, at);
    }

    bool bracket = rest.p[from] == '[' && (rest.p[from + 1] == '"' || rest.p[from + 1] == '\'');
    if (!bracket && rest.p[from] != '.') {
        return fail_unknown_variable(m, query, at);
    }

    /* Find its end. */
    char close = bracket ? rest.p[from + 1] : '}';
    from += bracket ? 2 : 1;
    size_t to = hearth_str_find(rest, close, from);
    size_t end = bracket ? to + 3 : to + 1; /* after "] and } */
    if (to == from || end > rest.n ||
        (bracket && (rest.p[to + 1] != ']' || rest.p[to + 2] != '}'))) {
        return fail_unknown_variable(m, query, at);
    }

    *ret = (struct variable){at, end, MEANS_TAG, hearth_str_n(rest.p + from, to - from)};

    return HEARTH_OK;
}

/*
 * The quote that the byte at *at is in, after it; 0: none. Errors in quoting are left to the
 * parser.
 */
static char step_quote(char quote, struct hearth_str query, size_t *at)
{
    char c = query.p[*at];

    if (quote == 0) {
        return c == '"' || c == '\'' || c == '`' ? c : (char)0;
    }

    if (c == '\\' && quote != '`' && *at + 1 < query.n) {
        (*at)++;
        return quote;
    }

    return c == quote ? (char)0 : quote;
}

static enum hearth_status cover_variable(struct tag_mapper *m, struct hearth_str query, char quote,
                                         size_t at, char *text)
{
    assert(at < query.n);

    if (m->n_variables == MAX_VARIABLES) {
        return HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT,
                           "more than %d variables in the query, at offset %zu", MAX_VARIABLES, at);
    }

    /* Only ${__tags} stands outside of quotes. */
    struct variable *variable = &m->variables[m->n_variables];
    HEARTH_TRY(read_variable(m, query, at, variable));
    if ((quote == 0) != (variable->meaning == MEANS_TAGS)) {
        return HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT,
                           variable->meaning == MEANS_TAGS
                               ? "${__tags} stands in quotes, at offset %zu of the query: it is a "
                                 "list of matchers"
                               : "a text of the span stands outside of quotes, at offset %zu of "
                                 "the query",
                           at);
    }

    /* Cover it. */
    m->n_variables++;
    memset(text + at, COVER, variable->n);
    if (variable->meaning == MEANS_TAGS) {
        static const char equals_nothing[] = "\"=\"\""; /* after a name, closing its quote */
        text[at] = '"';
        memcpy(text + at + variable->n - (sizeof equals_nothing - 1), equals_nothing,
               sizeof equals_nothing - 1);
    }

    return HEARTH_OK;
}

/* Cover the variables of the query. */
static enum hearth_status cover_variables(struct tag_mapper *m, struct hearth_str query,
                                          struct hearth_str *ret)
{
    char *text = hearth_arena_strndup(m->arena, query.p, query.n);

    m->variables = hearth_arena_array(m->arena, MAX_VARIABLES, sizeof m->variables[0]);
    if (text == NULL || m->variables == NULL) {
        return HEARTH_FAIL_ARENA(m->err, m->arena);
    }

    char quote = 0;
    for (size_t at = 0; at < query.n;) {
        if (query.p[at] == COVER) {
            return HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT,
                               "a control character in the query, at offset %zu", at);
        }

        if (query.p[at] == '$' && at + 1 < query.n && query.p[at + 1] == '{') {
            HEARTH_TRY(cover_variable(m, query, quote, at, text));
            at += m->variables[m->n_variables - 1].n;
            continue;
        }

        quote = step_quote(quote, query, &at);
        at++;
    }

    *ret = hearth_str_n(text, query.n);

    return HEARTH_OK;
}

/* ---- matchers of the answer ---- */

static enum hearth_status fail_misplaced_variable(struct tag_mapper *m)
{
    return HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT,
                       "a variable of the query stands where it means nothing: ${__tags} belongs "
                       "among the matchers, a text of the span into the string after a label");
}

static void append_variable_value(struct hearth_buf *out, struct hearth_str value, bool is_regex)
{
    for (size_t i = 0; i < value.n; i++) {
        if (is_regex && strchr("\\.+*?()|[]{}^$", value.p[i]) != NULL) {
            hearth_buf_byte(out, '\\');
        }
        hearth_buf_byte(out, (unsigned char)value.p[i]);
    }
}

/* The text of a variable; empty, with m->reason set: it is unknown. */
static enum hearth_status find_variable_text(struct tag_mapper *m, const struct variable *variable,
                                             struct hearth_str *ret)
{
    const struct hearth_known_span *span = m->span;
    bool is_tag = variable->meaning == MEANS_TAG;
    struct hearth_str text = is_tag ? find_tag_value(m, variable->name)
                             : variable->meaning == MEANS_SPAN_ID  ? span->span_id
                             : variable->meaning == MEANS_TRACE_ID ? span->trace_id
                                                                   : span->name;

    /* An unknown text ends the search for a selector, with a reason. */
    *ret = hearth_str_utf8_valid(text) ? text : (struct hearth_str){0};
    if (ret->n == 0 && m->reason == NULL) {
        m->reason = hearth_arena_printf(m->arena, "%s%.*s%s, which the query names",
                                        is_tag ? "the span has no tag " : "",
                                        variable->name.n > 256 ? 256 : (int)variable->name.n,
                                        variable->name.p, is_tag ? "" : " is not known");
    }

    return ret->n == 0 && m->reason == NULL ? HEARTH_FAIL_ARENA(m->err, m->arena) : HEARTH_OK;
}

/*
 * Whether a backslash or \Q precedes position `at` of a regular expression, so that escaped bytes
 * there would have another meaning.
 */
static bool is_after_escape(struct hearth_str value, size_t at)
{
    bool in_quote = false;

    for (size_t i = 0; i < at; i++) {
        if (value.p[i] != '\\') {
            continue;
        }
        bool is_end = i + 1 < at && value.p[i + 1] == 'E';
        if (in_quote) {
            in_quote = !is_end;
            continue;
        }
        if (++i == at) {
            return true;
        }
        in_quote = value.p[i] == 'Q';
    }

    return in_quote;
}

/* Fill the variables into a string of the query. */
static enum hearth_status fill_matcher_value(struct tag_mapper *m,
                                             const struct hearth_matcher *matcher,
                                             struct hearth_buf *out)
{
    struct hearth_str value = matcher->value;
    bool is_regex = matcher->op == HEARTH_MATCH_RE || matcher->op == HEARTH_MATCH_NRE;

    for (size_t i = 0; i < value.n;) {
        if (value.p[i] != COVER) {
            hearth_buf_byte(out, (unsigned char)value.p[i++]);
            continue;
        }

        /* Each run of covering bytes is the next variable. */
        const struct variable *variable = &m->variables[m->next];
        struct hearth_str text;
        if (m->next == m->n_variables || variable->meaning == MEANS_TAGS ||
            i + variable->n > value.n) {
            return fail_misplaced_variable(m);
        }

        if (is_regex && is_after_escape(value, i)) {
            return HEARTH_FAIL(
                m->err, HEARTH_INVALID_ARGUMENT,
                "a backslash or \\Q of a regular expression stands before the variable "
                "at offset %zu of the query",
                variable->at);
        }
        m->next++;
        HEARTH_TRY(find_variable_text(m, variable, &text));
        append_variable_value(out, text, is_regex);
        i += variable->n;
    }

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT,
                             "the selector would be longer than %zu bytes", MAX_BYTES)
               : HEARTH_OK;
}

static enum hearth_status fill_matcher(struct tag_mapper *m, const struct hearth_matcher *matcher)
{
    /* The covered ${__tags}. */
    if (memchr(matcher->name.p, COVER, matcher->name.n) != NULL) {
        /* Only the covered ${__tags} has a name of these bytes alone, and an empty value. */
        if (m->next == m->n_variables || m->variables[m->next].meaning != MEANS_TAGS ||
            matcher->value.n > 0) {
            return fail_misplaced_variable(m);
        }
        m->next++;
        return add_tag_matchers(m);
    }

    /* A value without variables. */
    if (memchr(matcher->value.p != NULL ? matcher->value.p : "", COVER, matcher->value.n) == NULL) {
        return hearth_selector_add(&m->out, matcher->name, matcher->op, matcher->value, m->arena,
                                   m->err);
    }

    /* A value with variables. */
    struct hearth_buf value;
    hearth_buf_init(&value, MAX_BYTES);
    enum hearth_status status = fill_matcher_value(m, matcher, &value);
    if (status == HEARTH_OK && m->reason == NULL) {
        status = hearth_selector_add(&m->out, matcher->name, matcher->op, hearth_buf_view(&value),
                                     m->arena, m->err);
    }

    hearth_buf_release(&value);

    return status;
}

static enum hearth_status fill_custom_selector(struct tag_mapper *m, struct hearth_str query)
{
    struct hearth_str covered;
    struct hearth_selector parsed;

    if (query.n > MAX_BYTES) {
        return HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT, "the query is longer than %zu bytes",
                           MAX_BYTES);
    }

    /* Parse the covered query. */
    HEARTH_TRY(cover_variables(m, query, &covered));
    hearth_selector_init(&parsed);
    enum hearth_status status = hearth_selector_parse(&parsed, covered, m->arena, NULL, m->err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(m->err, "query");
    }

    /* Fill in the variables. */
    for (size_t i = 0; status == HEARTH_OK && i < parsed.n; i++) {
        status = fill_matcher(m, &parsed.matchers[i]);
    }

    hearth_selector_release(&parsed);

    return status == HEARTH_OK && m->next < m->n_variables ? fail_misplaced_variable(m) : status;
}

static enum hearth_status write_selector(struct tag_mapper *m, struct hearth_str *ret)
{
    struct hearth_buf text;

    hearth_buf_init(&text, MAX_BYTES);
    hearth_selector_format(&m->out, &text);
    enum hearth_status status = HEARTH_OK;
    if (hearth_buf_failed(&text)) {
        status = HEARTH_FAIL(m->err, HEARTH_INVALID_ARGUMENT,
                             "the selector would be longer than %zu bytes", MAX_BYTES);
    } else {
        *ret = hearth_arena_str(m->arena, hearth_buf_view(&text));
        status = ret->p == NULL ? HEARTH_FAIL_ARENA(m->err, m->arena) : HEARTH_OK;
    }

    hearth_buf_release(&text);

    return status;
}

enum hearth_status hearth_span_selector(const struct hearth_tag_rules *rules,
                                        const struct hearth_known_span *span,
                                        struct hearth_arena *arena, struct hearth_str *ret_selector,
                                        struct hearth_str *ret_reason, struct hearth_err *err)
{
    struct tag_mapper m = {.rules = rules, .span = span, .arena = arena, .err = err};

    assert(ret_selector != NULL && ret_reason != NULL);

    *ret_selector = *ret_reason = (struct hearth_str){0};

    /* Make the matchers, then the text. */
    hearth_selector_init(&m.out);
    enum hearth_status status =
        rules->query.n > 0 ? fill_custom_selector(&m, rules->query) : add_tag_matchers(&m);
    if (status == HEARTH_OK && m.reason == NULL && m.out.n == 0) {
        m.reason = "nothing is known of the span that could select profiles: neither its service "
                   "nor any of the tags that become labels";
    }

    if (status == HEARTH_OK && m.reason == NULL) {
        status = write_selector(&m, ret_selector);
    }

    *ret_reason = hearth_str_c(m.reason);
    hearth_selector_release(&m.out);

    return status;
}
