/*
 * stack_filter.c -- which nodes of a name tree are leaves of stacks that pass a filter.
 *
 * The verdict on a name is found once per name; the flags of a node follow from its parent's in one
 * pass. Arrays that a filter does not need are not made.
 */
#include "select/stack_filter.h"

#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/model/frame_name.h"
#include "hearth/model/go_stacks.h"
#include "hearth/selector/pattern.h"

#include "select/row_rules.h"

#include <assert.h>

#define MAX_ALL_FUNCTIONS 64u

/* Flags of a name, and of the path to a node. */
enum {
    WANTED = 1 << 0,  /* one of `functions`, if one is enough */
    MATCHED = 1 << 1, /* `regex` matches it */
    BARRED = 1 << 2,  /* one of `without`, or `without_regex` matches it */
    KNOWN = 1 << 3,   /* names only: the flags are set */
    BEGUN = 1 << 4,   /* paths only: all of call_site is matched */
};

#define OFF UINT32_MAX /* n_matched of a path that does not begin with the call site */

/* What the filter says about one of its names. */
struct name_rule {
    uint8_t flags;
    uint64_t functions; /* with all_functions: bit i is functions[i] */
};

struct stack_matcher {
    const struct hearth_stack_filter *filter;
    struct hearth_pattern *regex, *without_regex;
    struct hearth_idmap by_name; /* name -> index of rules */
    struct name_rule *rules;
    size_t n_rules, cap_rules;
    bool each;        /* all_functions with more than one function */
    uint64_t all;     /* the bits of all functions; see struct name_rule */
    uint8_t required; /* flags that the path of a passing stack has */
};

static void release_matcher(struct stack_matcher *m)
{
    hearth_pattern_free(m->regex);
    hearth_pattern_free(m->without_regex);
    hearth_idmap_release(&m->by_name);
    hearth_mem_free(m->rules);
}

static struct hearth_hash128 make_name_key(struct hearth_str name)
{
    return hearth_hash128(name.p, name.n, hearth_hash_process_seed());
}

/* Finds or makes the rule of a name of the filter. NULL: memory was refused. */
static struct name_rule *make_name_rule(struct stack_matcher *m, struct hearth_str name)
{
    bool inserted;

    name = hearth_frame_shown(name);
    uint32_t i =
        hearth_idmap_intern(&m->by_name, make_name_key(name), (uint32_t)m->n_rules, &inserted);
    if (i == HEARTH_IDMAP_NONE ||
        (inserted &&
         !hearth_mem_grow(&m->rules, &m->cap_rules, m->n_rules + 1, sizeof m->rules[0]))) {
        return NULL;
    }

    if (inserted) {
        m->rules[m->n_rules++] = (struct name_rule){0};
    }

    return &m->rules[i];
}

static enum hearth_status add_filter_names(struct stack_matcher *m, struct hearth_err *err)
{
    const struct hearth_stack_filter *filter = m->filter;
    bool refused = false;

    for (size_t i = 0; i < filter->n_functions && !refused; i++) {
        struct name_rule *rule = make_name_rule(m, filter->functions[i]);
        refused = rule == NULL;
        if (rule != NULL && m->each) {
            rule->functions |= UINT64_C(1) << i;
            m->all |= UINT64_C(1) << i;
        } else if (rule != NULL) {
            rule->flags |= WANTED;
            m->required |= WANTED;
        }
    }

    for (size_t i = 0; i < filter->n_without && !refused; i++) {
        struct name_rule *rule = make_name_rule(m, filter->without[i]);
        refused = rule == NULL;
        if (rule != NULL) {
            rule->flags |= BARRED;
        }
    }

    return refused ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a filter of stacks")
                   : HEARTH_OK;
}

/* Prepares a filter. Release the matcher in any case. */
static enum hearth_status init_matcher(struct stack_matcher *m,
                                       const struct hearth_stack_filter *filter,
                                       struct hearth_err *err)
{
    *m = (struct stack_matcher){.filter = filter};
    m->each = filter->all_functions && filter->n_functions > 1;
    if (m->each && filter->n_functions > MAX_ALL_FUNCTIONS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "stacks.functions: %zu names, at most %u with all_functions",
                           filter->n_functions, MAX_ALL_FUNCTIONS);
    }

    if (filter->regex.n > 0) {
        HEARTH_TRY(hearth_pattern_new(filter->regex, "stacks.regex", &m->regex, err));
        m->required |= MATCHED;
    }

    if (filter->without_regex.n > 0) {
        HEARTH_TRY(hearth_pattern_new(filter->without_regex, "stacks.without_regex",
                                      &m->without_regex, err));
    }

    m->required |= filter->n_call_site > 0 ? BEGUN : 0;
    return add_filter_names(m, err);
}

/* What is found out about the names and nodes of a tree. */
struct tree_marks {
    uint8_t *of_name, *of_node; /* flags */
    uint32_t
        *rule_of_name;   /* with `each`: HEARTH_IDMAP_NONE if the filter does not have the name */
    uint64_t *functions; /* per node, with `each`: bits of the functions on its path */
    uint32_t *n_matched; /* per node, with a call site: number of its matched frames, or OFF */
    const struct hearth_name_tree *tree;
    struct hearth_arena *scratch;
};

/* False: memory was refused. */
static bool init_marks(struct tree_marks *marks, const struct stack_matcher *m,
                       const struct hearth_name_tree *tree, uint32_t n_nodes,
                       struct hearth_arena *scratch)
{
    uint32_t n_names = hearth_name_tree_n_names(tree);
    *marks = (struct tree_marks){
        .tree = tree,
        .scratch = scratch,
        .of_name = hearth_arena_calloc(scratch, n_names, 1),
        .of_node = hearth_arena_array(scratch, n_nodes, 1),
    };

    if (m->each) {
        marks->rule_of_name = hearth_arena_array(scratch, n_names, sizeof marks->rule_of_name[0]);
        marks->functions = hearth_arena_array(scratch, n_nodes, sizeof marks->functions[0]);
    }

    if (m->filter->n_call_site > 0) {
        marks->n_matched = hearth_arena_array(scratch, n_nodes, sizeof marks->n_matched[0]);
    }

    return !scratch->refused;
}

/* The name that a generic function of Go has in a repaired flame graph; .p is NULL for others. */
static struct hearth_str shorten_go_name(struct tree_marks *marks, struct hearth_str name)
{
    size_t n = 0;
    char *text =
        hearth_go_name_is_generic(name) ? hearth_arena_alloc(marks->scratch, name.n) : NULL;
    return text != NULL && hearth_go_name_shorten(name, text, &n) ? hearth_str_n(text, n)
                                                                  : (struct hearth_str){0};
}

static uint8_t match_name_patterns(const struct stack_matcher *m, struct hearth_str text)
{
    bool matched = m->regex != NULL && hearth_pattern_occurs(m->regex, text);
    bool barred = m->without_regex != NULL && hearth_pattern_occurs(m->without_regex, text);
    return (uint8_t)((matched ? MATCHED : 0) | (barred ? BARRED : 0));
}

/* Finds the flags of a name, by its stored and its shown form. */
static uint8_t mark_tree_name(const struct stack_matcher *m, struct tree_marks *marks,
                              uint32_t name)
{
    uint8_t *flags = &marks->of_name[name];
    if (*flags & KNOWN) {
        return *flags;
    }

    struct hearth_str text = hearth_frame_shown(hearth_name_tree_name(marks->tree, name));
    struct hearth_str shown = shorten_go_name(marks, text);
    uint32_t rule = hearth_idmap_find(&m->by_name, make_name_key(text));
    if (rule == HEARTH_IDMAP_NONE && shown.p != NULL) {
        rule = hearth_idmap_find(&m->by_name, make_name_key(shown));
    }

    *flags = KNOWN | match_name_patterns(m, text);
    if (shown.p != NULL) {
        *flags |= match_name_patterns(m, shown);
    }

    if (rule != HEARTH_IDMAP_NONE) {
        *flags |= m->rules[rule].flags;
    }

    if (m->each) {
        marks->rule_of_name[name] = rule;
    }

    return *flags;
}

/* The number of frames of the call site that the path to a node has matched, or OFF. */
static uint32_t match_node_call_site(const struct stack_matcher *m, struct tree_marks *marks,
                                     struct hearth_name_node node)
{
    uint32_t n = marks->n_matched[node.parent];
    if (n == OFF || n == m->filter->n_call_site) {
        return n;
    }

    struct hearth_str name = hearth_frame_shown(hearth_name_tree_name(marks->tree, node.name));
    struct hearth_str wanted = hearth_frame_shown(m->filter->call_site[n]);
    if (hearth_str_eq(name, wanted)) {
        return n + 1;
    }

    /* A wanted name may be the short form of a generic function. */
    return memmem(wanted.p, wanted.n, "[...]", strlen("[...]")) != NULL &&
                   hearth_str_eq(shorten_go_name(marks, name), wanted)
               ? n + 1
               : OFF;
}

static bool check_node_passes(const struct stack_matcher *m, const struct tree_marks *marks,
                              uint32_t node)
/* Whether a stack that ends at the node check_node_passes. */
{
    uint8_t wanted = m->required | BARRED;
    return (marks->of_node[node] & wanted) == m->required &&
           (!m->each || marks->functions[node] == m->all);
}

/* Parents precede their children: each node adds the flags of its name to its parent's. */
static void mark_tree_nodes(const struct stack_matcher *m, struct tree_marks *marks,
                            uint32_t n_nodes, bool *inside)
{
    marks->of_node[0] = 0;
    assert(n_nodes > 0);
    if (m->each) {
        marks->functions[0] = 0;
    }

    if (marks->n_matched != NULL) {
        marks->n_matched[0] = 0;
    }

    inside[0] = check_node_passes(m, marks, 0);

    /* Parents precede their children: a node adds the flags of its name to its parent's. */
    for (uint32_t i = 1; i < n_nodes; i++) {
        struct hearth_name_node node = hearth_name_tree_node(marks->tree, i);
        marks->of_node[i] = marks->of_node[node.parent] | mark_tree_name(m, marks, node.name);
        if (m->each) {
            uint32_t rule = marks->rule_of_name[node.name];
            marks->functions[i] = marks->functions[node.parent] |
                                  (rule == HEARTH_IDMAP_NONE ? 0 : m->rules[rule].functions);
        }
        if (marks->n_matched != NULL) {
            marks->n_matched[i] = match_node_call_site(m, marks, node);
            if (marks->n_matched[i] == m->filter->n_call_site) {
                marks->of_node[i] |= BEGUN;
            }
        }
        inside[i] = check_node_passes(m, marks, i);
    }
}

/* Checks the conditions on rows by preparing them. */
static enum hearth_status check_row_filters(const struct hearth_stack_filter *filter,
                                            const struct hearth_arena *like, struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;

    for (int of_threads = 0; of_threads < 2 && status == HEARTH_OK; of_threads++) {
        struct hearth_row_rules rules;
        status = hearth_row_rules_init(&rules, filter, of_threads == 1, like, err);
        hearth_row_rules_release(&rules);
    }

    return status;
}

enum hearth_status hearth_stack_filter_check(const struct hearth_stack_filter *filter,
                                             const struct hearth_arena *like,
                                             struct hearth_err *err)
{
    assert(filter != NULL);

    if (hearth_stack_filter_has_names(filter)) {
        struct stack_matcher m;
        enum hearth_status status = init_matcher(&m, filter, err);
        release_matcher(&m);
        HEARTH_TRY(status);
    }

    return filter->n_rows == 0 ? HEARTH_OK : check_row_filters(filter, like, err);
}

enum hearth_status hearth_stack_filter_nodes(const struct hearth_stack_filter *filter,
                                             const struct hearth_name_tree *tree, uint32_t n_nodes,
                                             struct hearth_arena *arena, bool **ret_inside,
                                             struct hearth_err *err)
{
    assert(filter != NULL && tree != NULL && arena != NULL && ret_inside != NULL);

    *ret_inside = NULL;
    if (!hearth_stack_filter_has_names(filter)) {
        return HEARTH_OK;
    }

    struct hearth_arena scratch;
    struct stack_matcher m;
    struct tree_marks marks;
    bool *inside = hearth_arena_array(arena, n_nodes, sizeof inside[0]);
    if (inside == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    hearth_arena_init_like(&scratch, arena);
    enum hearth_status status = init_matcher(&m, filter, err);
    if (status == HEARTH_OK && !init_marks(&marks, &m, tree, n_nodes, &scratch)) {
        status = HEARTH_FAIL_ARENA(err, &scratch);
    }

    if (status == HEARTH_OK) {
        mark_tree_nodes(&m, &marks, n_nodes, inside);
        status = scratch.refused ? HEARTH_FAIL_ARENA(err, &scratch) : HEARTH_OK;
    }

    if (status == HEARTH_OK) {
        *ret_inside = inside;
    }

    release_matcher(&m);
    hearth_arena_release(&scratch);
    return status;
}

void hearth_stack_mask_init(struct hearth_stack_mask *mask,
                            const struct hearth_stack_filter *filter,
                            const struct hearth_arena *like)
{
    *mask = (struct hearth_stack_mask){.filter = filter};
    hearth_arena_init_like(&mask->arena, like);
}

void hearth_stack_mask_release(struct hearth_stack_mask *mask)
{
    hearth_name_tree_unref(mask->tree);
    hearth_arena_release(&mask->arena);
    *mask = (struct hearth_stack_mask){0};
}

enum hearth_status hearth_stack_mask_of(struct hearth_stack_mask *mask,
                                        struct hearth_name_tree *tree, const bool **ret_inside,
                                        struct hearth_err *err)
{
    uint32_t size = hearth_name_tree_size(tree);
    if (mask->tree != tree || mask->n_nodes < size) {
        hearth_name_tree_unref(mask->tree);
        mask->tree = hearth_name_tree_ref(tree);
        mask->n_nodes = 0;
        hearth_arena_reset(&mask->arena);
        HEARTH_TRY(
            hearth_stack_filter_nodes(mask->filter, tree, size, &mask->arena, &mask->inside, err));
        mask->n_nodes = size;
    }

    *ret_inside = mask->inside;
    return HEARTH_OK;
}
