/*
 * cmd_trace_text.c -- what was found of a trace or span, for people.
 *
 * Spans stand below their parents, as far as stored spans tell them, with samples or without. Beside each is what its own
 * samples are (self), and what they are with those of the spans below it (total).
 */
#include "hearth/base/clock.h"

#include "cli_messages.h"
#include "cmd_trace.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_SPANS = 30,   /* printed; --limit */
    MAX_SPAN_IDS = 8, /* in a command to go on with */
    MAX_INDENT = 40,
    MIN_LABELS = 12, /* columns: in fewer, labels of profiles say nothing */
};

#define NO_NODE SIZE_MAX

static void append_words(struct hearth_buf *out, const char *text)
{
    cli_fit(hearth_str_c(text), INT_MAX, false, out);
}

/* In columns of the terminal, which cli_fit would print. */
static int width_of(const char *text)
{
    int n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        n += ((unsigned char)*p & 0xC0) != 0x80;
    }
    return n;
}

static const char *kind_of_id(enum cli_id_of of)
{
    static const char *const words[] = {"trace", "span", "local root", "service and time"};
    return words[of];
}

/* ---- head, types, profiles ---- */

static void print_found_head(const struct cli_found *found, struct hearth_buf *out)
{
    const Hearth__V1__Lookup *lookup = found->lookup;

    hearth_buf_cstr(out, kind_of_id(found->of));
    hearth_buf_cstr(out, found->of == CLI_OF_WINDOW ? "" : " ");
    append_words(out, found->of == CLI_OF_WINDOW ? "" : lookup->id);
    switch (lookup->certainty) {
    case HEARTH__V1__CERTAINTY__CERTAINTY_EXACT:
        hearth_buf_cstr(out, ": exact, its samples carry the id\n");
        break;
    case HEARTH__V1__CERTAINTY__CERTAINTY_WINDOW:
        hearth_buf_cstr(out, ": window, whole profiles that were being taken meanwhile\n");
        break;
    default:
        hearth_buf_cstr(out, ": nothing\n");
    }
    if (lookup->reason[0] != '\0') {
        hearth_buf_cstr(out, "reason: ");
        append_words(out, lookup->reason);
        hearth_buf_byte(out, '\n');
    }
    if (lookup->certainty != HEARTH__V1__CERTAINTY__CERTAINTY_EXACT &&
        lookup->searched[0] != '\0') {
        cli_say("searched", lookup->searched);
    }
}

static void print_types(const Hearth__V1__Lookup *lookup, struct hearth_buf *out)
{
    if (lookup->n_types > 0) {
        hearth_buf_printf(out, "\n%10s %9s  %s\n", "total", "profiles", "type");
    }
    for (size_t i = 0; i < lookup->n_types; i++) {
        const Hearth__V1__FoundType *type = lookup->types[i];
        char total[48], count[32];
        cli_value((double)type->total, hearth_str_c(type->unit), total);
        cli_count(type->profile_count, count);
        hearth_buf_printf(out, "%*s %9s  ", hearth_human_width(total, 10), total, count);
        append_words(out, type->profile_type);
        hearth_buf_byte(out, '\n');
    }
}

/* Without those that every series has, and the service, which has a column; cut at the edge of the terminal. */
static void append_profile_labels(const Hearth__V1__FoundProfile *profile, int room,
                                  struct hearth_buf *out)
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < profile->n_labels; i++) {
        const Types__V1__LabelPair *label = profile->labels[i];
        if (strncmp(label->name, "__", 2) == 0 || strcmp(label->name, "service_name") == 0) {
            continue;
        }
        hearth_buf_printf(&text, "%s%s=", text.n > 0 ? ", " : "", label->name);
        hearth_buf_cstr(&text, label->value);
    }
    hearth_buf_cstr(out, text.n > 0 ? "  " : "");
    cli_fit(hearth_buf_view(&text), room, false, out);
    hearth_buf_release(&text);
}

static void print_profiles(const struct cli *cli, const Hearth__V1__Lookup *lookup,
                           struct hearth_buf *out)
{
    int width = (int)strlen("service");

    for (size_t i = 0; i < lookup->n_profiles; i++) {
        int here = width_of(lookup->profiles[i]->service);
        width = here > width ? here : width;
    }
    width = width > 40 ? 40 : width;
    int room = cli->width - 77 - width; /* for labels, behind all others */
    bool has_room = room >= MIN_LABELS;
    if (lookup->n_profiles > 0) {
        hearth_buf_printf(out, "\n%-24s  %8s  %-*s  %-36s%s\n", "profile of", "taken in", width,
                          "service", "id", has_room ? "  labels" : "");
    }
    for (size_t i = 0; i < lookup->n_profiles; i++) {
        const Hearth__V1__FoundProfile *profile = lookup->profiles[i];
        char at[32], length[48];
        hearth_clock_format(profile->time_ns, at);
        cli_value((double)profile->duration_ns, HEARTH_STR("nanoseconds"), length);
        hearth_buf_printf(out, "%-24s  %*s  ", at, hearth_human_width(length, 8), length);
        cli_fit(hearth_str_c(profile->service), width, true, out);
        hearth_buf_printf(out, "  %-36s", profile->profile_id);
        if (has_room) {
            append_profile_labels(profile, room, out);
        }
        hearth_buf_byte(out, '\n');
    }
    if (lookup->profile_count > (int64_t)lookup->n_profiles) {
        char shown[32], all[64];
        cli_count((int64_t)lookup->n_profiles, shown);
        cli_number(lookup->profile_count, "profile", "profiles", all);
        hearth_buf_printf(out, "%s of %s shown; --limit shows more\n", shown, all);
    }
}

/* ---- spans ---- */

/* A span with samples, one that is stored, or both. Indexes into the nodes; NO_NODE: none. */
struct node {
    const Hearth__V1__FoundSpan *found; /* NULL: no samples carry it */
    const Hearth__V1__StoredSpan *span; /* NULL: not stored */
    const char *id, *service;
    int64_t self, total;
    bool has_samples; /* it, or a span below */
    size_t parent, first, next;
    size_t depth;
    bool is_shown;
};

struct tree {
    struct node *nodes;
    size_t n, n_shown;
    size_t root; /* the first one; siblings follow */
};

static int64_t value_of(const Hearth__V1__FoundSpan *span, const char *type)
{
    int64_t value = 0;
    for (size_t i = 0; i < span->n_types; i++) {
        if (strcmp(span->types[i]->profile_type, type) == 0) {
            value += span->types[i]->total;
        }
    }
    return value;
}

static int by_span_id(const void *a, const void *b)
{
    const struct node *const *x = a, *const *y = b;
    return strcmp((*x)->id, (*y)->id);
}

static int is_span(const void *id, const void *node)
{
    const struct node *const *x = node;
    return strcmp(id, (*x)->id);
}

/* Unless it is known that they are not: ids of spans are unique within their trace. */
static bool are_of_one_trace(const struct node *a, const struct node *b)
{
    return a->span == NULL || b->span == NULL || strcmp(a->span->trace_id, b->span->trace_id) == 0;
}

static void find_parents(struct tree *tree, struct node **sorted)
{
    for (size_t i = 0; i < tree->n; i++) {
        sorted[i] = &tree->nodes[i];
    }
    qsort(sorted, tree->n, sizeof(struct node *), by_span_id);
    for (size_t i = 0; i < tree->n; i++) {
        const Hearth__V1__StoredSpan *span = tree->nodes[i].span;
        struct node **parent =
            span == NULL || span->parent_id[0] == '\0'
                ? NULL
                : bsearch(span->parent_id, sorted, tree->n, sizeof *sorted, is_span);
        tree->nodes[i].parent = parent == NULL || !are_of_one_trace(&tree->nodes[i], *parent)
                                    ? NO_NODE
                                    : (size_t)(*parent - tree->nodes);
    }

    /* Who is its own ancestor becomes a root: spans say what they like. */
    for (size_t i = 0; i < tree->n; i++) {
        size_t depth = 0;
        for (size_t at = tree->nodes[i].parent; at != NO_NODE; at = tree->nodes[at].parent) {
            if (++depth > tree->n) {
                tree->nodes[i].parent = NO_NODE;
                depth = 0;
                break;
            }
        }
        tree->nodes[i].depth = depth;
    }
}

/* By start; those that are not stored behind, in the order of the answer. */
static int by_start(const void *a, const void *b)
{
    const struct node *const *x = a, *const *y = b;
    const Hearth__V1__StoredSpan *s = (*x)->span, *t = (*y)->span;
    if (s != NULL && t != NULL && s->start_ns != t->start_ns) {
        return s->start_ns < t->start_ns ? -1 : 1;
    }
    if ((s == NULL) != (t == NULL)) {
        return s == NULL ? 1 : -1;
    }
    return *x < *y ? -1 : *x > *y;
}

/* Totals and what is shown go up to the roots. */
static void link_nodes(struct tree *tree, struct node **sorted, size_t n_wanted)
{
    qsort(sorted, tree->n, sizeof(struct node *), by_start);
    for (size_t i = tree->n; i-- > 0;) {
        struct node *node = sorted[i];
        size_t *head = node->parent == NO_NODE ? &tree->root : &tree->nodes[node->parent].first;
        node->next = *head;
        *head = (size_t)(node - tree->nodes);
    }
    for (size_t i = 0; i < tree->n; i++) {
        for (size_t at = i; at != NO_NODE; at = tree->nodes[at].parent) {
            tree->nodes[at].total += tree->nodes[i].self;
            tree->nodes[at].has_samples |= tree->nodes[i].found != NULL;
            tree->n_shown += i < n_wanted && !tree->nodes[at].is_shown;
            tree->nodes[at].is_shown = tree->nodes[at].is_shown || i < n_wanted;
        }
    }
}

/* What there is to say of the spans of an answer. */
enum layout {
    COSTS, /* none is stored: who belongs below whom, names and times are not known */
    TREE,
    TIMES, /* none has samples */
};

static enum layout layout_of(const Hearth__V1__Lookup *lookup)
{
    if (lookup->certainty != HEARTH__V1__CERTAINTY__CERTAINTY_EXACT) {
        return TIMES;
    }
    for (size_t i = 0; i < lookup->n_spans; i++) {
        if (lookup->spans[i]->span != NULL) {
            return TREE;
        }
    }
    return lookup->n_stored > 0 ? TREE : COSTS;
}

static void put_span_head(enum layout layout, const char *type, struct hearth_buf *out)
{
    hearth_buf_cstr(out, layout == TIMES ? "\nspans" : "\nspans, by ");
    append_words(out, layout == TIMES ? "" : type);
    hearth_buf_byte(out, '\n');
    if (layout != TIMES) {
        hearth_buf_printf(out, "%10s ", "self");
    }
    if (layout == TREE) {
        hearth_buf_printf(out, "%10s ", "total");
    }
    if (layout != COSTS) {
        hearth_buf_printf(out, "%10s ", "took");
    }
    hearth_buf_printf(out, " %-16s  %s\n", "span", layout == COSTS ? "service" : "name");
}

/* "└ name  service, kind, error" */
static void put_name(const struct cli *cli, const struct node *node, struct hearth_buf *out)
{
    const Hearth__V1__StoredSpan *span = node->span;
    int indent = node->depth > MAX_INDENT / 2 ? MAX_INDENT : (int)node->depth * 2;
    hearth_buf_printf(out, "%*s%s", indent > 2 ? indent - 2 : 0, "", indent > 0 ? "└ " : "");
    const char *name = span == NULL || span->name[0] == '\0' ? "(not stored)" : span->name;
    int room = cli->width - 62 - indent;
    cli_fit(hearth_str_c(name), room > 24 ? room : 24, false, out);
    hearth_buf_cstr(out, "  ");
    append_words(out, node->service);
    if (span != NULL && span->kind[0] != '\0' && strcmp(span->kind, "local") != 0) {
        hearth_buf_printf(out, ", %s", span->kind);
    }
    hearth_buf_cstr(out, span != NULL && strcmp(span->status, "error") == 0 ? ", error" : "");
}

static void put_span(const struct cli *cli, const struct node *node, enum layout layout,
                     const char *unit, struct hearth_buf *out)
{
    const Hearth__V1__StoredSpan *span = node->span;
    char self[48] = "-", total[48] = "-", took[48] = "-";

    if (node->found != NULL) {
        cli_value((double)node->self, hearth_str_c(unit), self);
    }
    if (node->has_samples) {
        cli_value((double)node->total, hearth_str_c(unit), total);
    }
    if (span != NULL) {
        cli_value((double)(span->end_ns - span->start_ns), HEARTH_STR("nanoseconds"), took);
    }
    if (layout != TIMES) {
        hearth_buf_printf(out, "%*s ", hearth_human_width(self, 10), self);
    }
    if (layout == TREE) {
        hearth_buf_printf(out, "%*s ", hearth_human_width(total, 10), total);
    }
    if (layout != COSTS) {
        hearth_buf_printf(out, "%*s ", hearth_human_width(took, 10), took);
    }
    hearth_buf_printf(out, " %-16s  ", node->id);
    if (layout == COSTS) {
        append_words(out, node->service);
    } else {
        put_name(cli, node, out);
    }
    hearth_buf_byte(out, '\n');
}

static const char *unit_of(const Hearth__V1__Lookup *lookup, const char *type)
{
    for (size_t i = 0; i < lookup->n_types; i++) {
        if (strcmp(lookup->types[i]->profile_type, type) == 0) {
            return lookup->types[i]->unit;
        }
    }
    return "";
}

static int by_id_and_trace(const void *a, const void *b)
{
    const Hearth__V1__StoredSpan *const *x = a, *const *y = b;
    int order = strcmp((*x)->span_id, (*y)->span_id);
    return order != 0 ? order : strcmp((*x)->trace_id, (*y)->trace_id);
}

/* Spans with samples, the largest first, then those that are stored without, by start. */
static enum hearth_status take_nodes(struct cli *cli, const Hearth__V1__Lookup *lookup,
                                     const char *type, struct tree *tree)
{
    const Hearth__V1__StoredSpan **known =
        hearth_arena_calloc(&cli->arena, lookup->n_spans, sizeof *known);
    size_t n_known = 0;

    tree->nodes =
        hearth_arena_calloc(&cli->arena, lookup->n_spans + lookup->n_stored, sizeof *tree->nodes);
    if (tree->nodes == NULL || known == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < lookup->n_spans; i++) {
        const Hearth__V1__FoundSpan *found = lookup->spans[i];
        tree->nodes[tree->n++] = (struct node){.found = found->n_types > 0 ? found : NULL,
                                               .span = found->span,
                                               .id = found->span_id,
                                               .service = found->service,
                                               .self = value_of(found, type)};
        if (found->span != NULL) {
            known[n_known++] = found->span;
        }
    }
    qsort(known, n_known, sizeof *known, by_id_and_trace);
    for (size_t i = 0; i < lookup->n_stored; i++) {
        const Hearth__V1__StoredSpan *span = lookup->stored[i];
        if (bsearch(&span, known, n_known, sizeof *known, by_id_and_trace) == NULL) {
            tree->nodes[tree->n++] =
                (struct node){.span = span, .id = span->span_id, .service = span->service};
        }
    }
    for (size_t i = 0; i < tree->n; i++) {
        tree->nodes[i].first = tree->nodes[i].next = NO_NODE;
    }

    return HEARTH_OK;
}

static enum hearth_status make_tree(struct cli *cli, const Hearth__V1__Lookup *lookup,
                                    const char *type, struct tree *tree)
{
    *tree = (struct tree){.root = NO_NODE};
    HEARTH_TRY(take_nodes(cli, lookup, type, tree));
    struct node **sorted = hearth_arena_calloc(&cli->arena, tree->n, sizeof(struct node *));
    if (sorted == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    int64_t wanted = cli->has_limit ? cli->limit : MAX_SPANS;
    find_parents(tree, sorted);
    link_nodes(tree, sorted, (uint64_t)wanted < tree->n ? (size_t)wanted : tree->n);
    return HEARTH_OK;
}

static enum hearth_status print_spans(struct cli *cli, const Hearth__V1__Lookup *lookup,
                                      const char *type, struct hearth_buf *out)
{
    struct tree tree;
    enum layout layout = layout_of(lookup);
    const char *unit = unit_of(lookup, type);

    HEARTH_TRY(make_tree(cli, lookup, type, &tree));
    put_span_head(layout, type, out);
    for (size_t at = tree.root; at != NO_NODE;) {
        const struct node *node = &tree.nodes[at];
        if (node->is_shown) {
            put_span(cli, node, layout, unit, out);
        }
        if (node->first != NO_NODE) {
            at = node->first;
            continue;
        }
        while (at != NO_NODE && tree.nodes[at].next == NO_NODE) {
            at = tree.nodes[at].parent;
        }
        at = at == NO_NODE ? NO_NODE : tree.nodes[at].next;
    }
    if (tree.n_shown < tree.n) {
        hearth_buf_printf(out, "%zu of %zu spans shown; --limit shows more\n", tree.n_shown,
                          tree.n);
    }

    return HEARTH_OK;
}

/* ---- how to go on ---- */

static void put_option(const char *flag, const char *value, struct hearth_buf *out)
{
    hearth_buf_printf(out, " %s ", flag);
    cli_shell_word(value, out);
}

/* What was given on the command line and must be again. */
static void put_server(const struct cli *cli, struct hearth_buf *out)
{
    const struct {
        const char *flag, *variable, *value;
    } options[] = {
        {"--url", "HEARTH_URL", cli->url},
        {"--tenant", "HEARTH_TENANT", cli->tenant},
        {"--ca-file", "HEARTH_CA_FILE", cli->ca_file},
        {"--cert-file", "HEARTH_CERT_FILE", cli->cert_file},
        {"--key-file", "HEARTH_KEY_FILE", cli->key_file},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(options); i++) {
        const char *set = getenv(options[i].variable);
        if (options[i].value != NULL && (set == NULL || strcmp(options[i].value, set) != 0)) {
            put_option(options[i].flag, options[i].value, out);
        }
    }
    if (cli->skip_verify) {
        hearth_buf_cstr(out, " --insecure-skip-verify");
    }
}

/* A token itself is not repeated: it is a secret. */
static void put_token_file(const struct cli *cli, struct hearth_buf *out)
{
    if (cli->token_file != NULL) {
        put_option("--token-file", cli->token_file, out);
    }
}

static void print_further(const struct cli *cli, const struct cli_found *found, const char *type,
                          struct hearth_buf *out)
{
    const Hearth__V1__Lookup *lookup = found->lookup;
    bool is_exact = lookup->certainty == HEARTH__V1__CERTAINTY__CERTAINTY_EXACT;
    bool by_trace =
        found->of == CLI_OF_TRACE && lookup->n_trace_ids > 0 && lookup->n_trace_ids <= MAX_SPAN_IDS;
    char from[32], to[32];

    if (is_exact && found->of != CLI_OF_WINDOW) {
        hearth_buf_cstr(out, "\nhearth trace ");
        cli_shell_word(lookup->id, out);
        hearth_buf_cstr(out, cli->trace.trace  ? " --trace"
                             : cli->trace.span ? " --span"
                             : cli->trace.root ? " --root"
                                               : "");
        hearth_buf_cstr(out, " --flame");
        put_option("--type", type, out);
        put_server(cli, out);
        put_token_file(cli, out);
    }
    hearth_buf_byte(out, '\n');
    if (is_exact && !by_trace && (lookup->n_span_ids == 0 || lookup->n_span_ids > MAX_SPAN_IDS)) {
        return;
    }
    hearth_clock_format(lookup->start * HEARTH_NS_PER_MS, from);
    hearth_clock_format(lookup->end * HEARTH_NS_PER_MS, to);
    hearth_buf_cstr(out, "hearth flame ");
    cli_shell_word(lookup->label_selector, out);
    put_option("--type", type, out);
    put_option("--from", from, out);
    put_option("--to", to, out);
    size_t n = !is_exact ? 0 : by_trace ? lookup->n_trace_ids : lookup->n_span_ids;
    for (size_t i = 0; i < n; i++) {
        put_option(by_trace ? "--trace-id" : "--span-id",
                   by_trace ? lookup->trace_ids[i] : lookup->span_ids[i], out);
    }
    put_server(cli, out);
    put_token_file(cli, out);
    hearth_buf_byte(out, '\n');
}

enum hearth_status cli_trace_print(struct cli *cli, const struct cli_found *found,
                                   struct hearth_buf *out)
{
    size_t n_types;
    const char *type = cli_trace_type(cli, found, 1, &n_types);

    print_found_head(found, out);
    print_types(found->lookup, out);
    if (found->of == CLI_OF_ROOT && found->lookup->n_types > 0) {
        hearth_buf_cstr(out,
                        "these are its own samples; --flame has those of the spans below, too\n");
    }
    print_profiles(cli, found->lookup, out);
    if (found->lookup->n_spans + found->lookup->n_stored > 0) {
        HEARTH_TRY(print_spans(cli, found->lookup, type, out));
    }
    if (type[0] != '\0' && found->lookup->n_types > 0) {
        print_further(cli, found, type, out);
    }

    return HEARTH_OK;
}
