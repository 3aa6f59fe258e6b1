/*
 * flame_transforms.c -- --focus, --hide and the --collapse options: the transforms of the web page,
 * under its words (clients/web/src/flame/transforms.ts).
 */
#include "flame_transforms.h"

#include "hearth/model/stack_transforms.h"
#include "hearth/selector/pattern.h"

#include "ask.h"
#include "cli_messages.h"
#include "filters.h"
#include "flame_file.h"
#include "flame_output.h"
#include "page_link.h"
#include "text.h"
#include "why.h"

#include <assert.h>

static const struct {
    const char *flag;
    const char *word; /* in addresses of the page */
    enum hearth_transform_kind kind;
    bool takes_expression;
} g_transforms[] = {
    {"--focus", "focus ", HEARTH_TRANSFORM_FOCUS, true},
    {"--hide", "hide ", HEARTH_TRANSFORM_HIDE, true},
    {"--collapse-recursion", "recursion ", HEARTH_TRANSFORM_RECURSION, false},
    {"--collapse-package", "module ", HEARTH_TRANSFORM_PACKAGE, false},
};

static size_t find_transform(const char *flag)
{
    size_t i = 0;

    while (strcmp(g_transforms[i].flag, flag) != 0) {
        i++;
        assert(i < HEARTH_ARRAY_LEN(g_transforms)); /* options.def has no other flags */
    }
    return i;
}

bool cli_add_transform(struct cli *cli, const char *flag, const char *name)
{
    struct cli_transforms *list = &cli->transforms;

    if (list->n == HEARTH_ARRAY_LEN(list->v) || name[0] == '\0') {
        return false;
    }
    list->v[list->n++] = (struct cli_transform){flag, name};
    return true;
}

bool flame_put_transforms(const struct cli *cli, struct hearth_buf *link)
{
    struct hearth_buf list;
    bool ok = true;

    hearth_buf_init(&list, 0);
    for (size_t i = 0; i < cli->transforms.n; i++) {
        const struct cli_transform *transform = &cli->transforms.v[i];
        size_t at = find_transform(transform->flag);
        ok = ok && !(g_transforms[at].takes_expression && cli_is_expression(transform->name));
        page_link_entry(&list, g_transforms[at].word, transform->name);
    }
    page_link_param(link, "transforms", hearth_buf_view(&list));
    hearth_buf_release(&list);

    return ok;
}

static bool matches_pattern(const void *context, struct hearth_str name)
{
    return hearth_pattern_occurs(context, name);
}

/* Says that no frame is meant; --focus then leaves nothing. */
static enum hearth_status say_unmatched(struct cli *cli, const struct cli_transform *option,
                                        bool is_focus)
{
    const char *what = strcmp(option->flag, "--collapse-package") == 0 ? "of the package" : "named";
    struct hearth_buf name;

    hearth_buf_init(&name, 0);
    cli_fit(hearth_str_c(option->name), 100, false, &name);
    hearth_buf_byte(&name, '\0');
    const char *shown = hearth_buf_failed(&name) ? "" : name.p;
    char *text = hearth_arena_printf(&cli->arena, "%s: no frame is %s \"%s\"", option->flag,
                                     cli_is_expression(option->name) ? "matched by" : what, shown);
    hearth_buf_release(&name);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    if (is_focus) {
        return HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND, "%s", text);
    }
    cli_say("note", text);

    return HEARTH_OK;
}

static enum hearth_status apply_transform(struct cli *cli, const struct cli_transform *option,
                                          struct hearth_stacktree *tree)
{
    size_t at = find_transform(option->flag), n_frames = 0;
    struct hearth_transform transform = {.kind = g_transforms[at].kind,
                                         .name = hearth_str_c(option->name)};
    struct hearth_pattern *pattern = NULL;
    struct hearth_stacktree result;

    if (g_transforms[at].takes_expression && cli_is_expression(option->name)) {
        struct hearth_str text = hearth_str_n(option->name + 1, strlen(option->name) - 2);
        HEARTH_TRY(hearth_pattern_new(text, option->flag, &pattern, &cli->err));
        transform.is_meant = matches_pattern;
        transform.context = pattern;
    }
    enum hearth_status status =
        hearth_stacktree_transform(tree, &transform, &cli->arena, &result, &n_frames, &cli->err);
    hearth_pattern_free(pattern);
    hearth_stacktree_release(tree);
    *tree = result;
    if (status == HEARTH_OK && n_frames == 0) {
        status = say_unmatched(cli, option, transform.kind == HEARTH_TRANSFORM_FOCUS);
    }

    return status;
}

enum hearth_status flame_transform_tree(struct cli *cli, struct hearth_stacktree *tree)
{
    enum hearth_status status = HEARTH_OK;

    for (size_t i = 0; status == HEARTH_OK && i < cli->transforms.n; i++) {
        status = apply_transform(cli, &cli->transforms.v[i], tree);
    }
    return status;
}

/* ---- the query ---- */

static enum hearth_status ask_stacks(struct cli *cli, struct flame_file *ret)
{
    Hearth__V1__Selection selection;
    struct hearth_str wire;
    int64_t max_nodes = cli->max_nodes;

    HEARTH_TRY(cli_selection(cli, 0, &selection));
    ret->type = selection.profile_type;
    ret->range = flame_output_range(cli, cli->from_ms, cli->to_ms);
    ret->profile = hearth_arena_zalloc(&cli->arena, sizeof *ret->profile);
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }

    /* What --max-nodes leaves out is decided after the transforms. */
    cli->max_nodes = 0;
    enum hearth_status status = cli_ask_profile(cli, &selection, &wire, ret->profile);
    cli->max_nodes = max_nodes;

    return status != HEARTH_OK || ret->profile->n_samples > 0 ? status : cli_fail_no_data(cli);
}

enum hearth_status flame_query_open(struct cli *cli, struct flame_file *ret)
{
    *ret = (struct flame_file){0};
    hearth_buf_init(&ret->plain, 0);
    hearth_stacktree_init(&ret->tree, &cli->arena);
    if (cli->go_stacks != NULL && strcmp(cli->go_stacks, "stored") != 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "transforms are of the stored stack traces: --go-stacks %.40s does not "
                           "go with %s",
                           cli->go_stacks, cli->transforms.v[0].flag);
    }

    HEARTH_TRY(ask_stacks(cli, ret));
    HEARTH_TRY(hearth_stacktree_add_shown(&ret->tree, ret->profile, 0, &cli->err));
    HEARTH_TRY(hearth_stacktree_seal(&ret->tree, &cli->err));

    return flame_transform_tree(cli, &ret->tree);
}

enum hearth_status flame_file_take_tree(struct cli *cli, struct flame_file *file)
{
    const struct hearth_profile *whole = file->profile;
    struct hearth_value_type type = whole->types[file->type_idx];
    struct hearth_profile *made = hearth_arena_zalloc(&cli->arena, sizeof *made);

    if (made == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    HEARTH_TRY(hearth_stacktree_to_profile(&file->tree, whole->strings[type.type],
                                           whole->strings[type.unit], made, &cli->err));
    made->time_ns = whole->time_ns;
    made->duration_ns = whole->duration_ns;
    file->profile = made;
    file->type_idx = 0;

    return HEARTH_OK;
}
