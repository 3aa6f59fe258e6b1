/*
 * flame_file.c -- trees of files on this machine, by the decoders of the server.
 *
 * A file may have several profiles, each with several types of values. Types are named as the server
 * names them, NAME:TYPE:UNIT, without the period.
 */
#include "flame_file.h"

#include "hearth/base/clock.h"
#include "hearth/format/demangle_names.h"

#include "cli_messages.h"
#include "filters.h"
#include "flame_transforms.h"
#include "open_profile.h"
#include "text.h"

#include <stdio.h>
#include <unistd.h>

/* A missing file with such a name is reported as missing, not taken for a service. */
static bool ends_as_file(struct hearth_str name)
{
    static const char *const ends[] = {".gz",   ".pb",         ".pprof",       ".prof",
                                       ".jfr",  ".cpuprofile", ".heapprofile", ".json",
                                       ".data", ".collapsed",  ".folded"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ends); i++) {
        if (hearth_str_ends(name, hearth_str_c(ends[i]))) {
            return true;
        }
    }

    return false;
}

bool flame_is_file(const char *argument)
{
    bool is_path = argument[0] == '/' || argument[0] == '.';
    bool may_be_name = strchr(argument, '{') == NULL && strpbrk(argument, "./") != NULL;

    /* Services have such names, too: "shop.cart", "shop/cart". */
    return may_be_name &&
           (is_path || ends_as_file(hearth_str_c(argument)) || access(argument, F_OK) == 0);
}

/* NAME:TYPE:UNIT, in the arena; NULL: memory was refused. */
static char *name_type(struct cli *cli, const struct hearth_file_profile *part, uint32_t type)
{
    const struct hearth_profile *p = &part->profile;
    struct hearth_str name = p->strings[p->types[type].type];
    struct hearth_str unit = p->strings[p->types[type].unit];

    return hearth_arena_printf(&cli->arena, "%.*s:%.*s:%.*s", (int)part->name.n, part->name.p,
                               (int)name.n, name.p, (int)unit.n, unit.p);
}

/* Whether `wanted` is the type's second part, or a beginning of whole parts of its name. */
static bool is_wanted(const char *type, const char *wanted)
{
    struct hearth_str second = hearth_str_c(strchr(type, ':') + 1);
    size_t n = strlen(wanted);

    second.n = hearth_str_find(second, ':', 0);
    return hearth_str_eq(second, hearth_str_c(wanted)) ||
           (strncmp(type, wanted, n) == 0 && (type[n] == '\0' || type[n] == ':'));
}

/* The preference of a type that was not requested: CPU time, the file's default, the last. */
static int rank_type(const struct hearth_profile *p, uint32_t type)
{
    struct hearth_str name = p->strings[p->types[type].type];

    if (hearth_str_eq(name, HEARTH_STR("cpu"))) {
        return 3;
    }
    if (p->default_type != 0 && p->types[type].type == p->default_type) {
        return 2;
    }
    return type + 1 == p->n_types ? 1 : 0;
}

/* The wanted type, or the preferred one; names it and the others. */
static enum hearth_status choose_file_type(struct cli *cli, const struct hearth_file_profiles *file,
                                           const char *wanted, size_t *ret_part, uint32_t *ret_type,
                                           char **ret_name)
{
    struct hearth_buf all;
    int best = -1;
    size_t n = 0;

    hearth_buf_init(&all, 0);
    for (size_t i = 0; i < file->n_profiles; i++) {
        for (uint32_t type = 0; type < file->profiles[i].profile.n_types; type++) {
            char *name = name_type(cli, &file->profiles[i], type);
            int rank = rank_type(&file->profiles[i].profile, type);
            if (name == NULL) {
                hearth_buf_release(&all);
                return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
            }
            hearth_buf_cstr(&all, n++ == 0 ? "" : ", ");
            cli_fit(hearth_str_c(name), 200, false, &all);
            if (rank > best && (wanted == NULL || is_wanted(name, wanted))) {
                best = rank;
                *ret_part = i;
                *ret_type = type;
                *ret_name = name;
            }
        }
    }

    enum hearth_status status = HEARTH_OK;
    if (best < 0) {
        status = HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                             "there is no type \"%.100s\"; types of the file: %.*s",
                             wanted == NULL ? "" : wanted, (int)all.n, all.n > 0 ? all.p : "");
    } else if (wanted == NULL && n > 1) {
        hearth_buf_byte(&all, '\0');
        cli_say("types of the file", hearth_buf_failed(&all) ? "" : all.p);
        cli_say("type (choose with --type)", *ret_name);
    }
    hearth_buf_release(&all);

    return status;
}

/* Options that need a server. */
static enum hearth_status check_file_options(struct cli *cli)
{
    bool has_filter = cli_has_stack_filter(cli) || cli->aggregation != NULL ||
                      cli->profile_ids.n + cli->span_ids.n + cli->trace_ids.n > 0;
    if (has_filter || cli->go_stacks != NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "a file is read whole: filters, --aggregation and --go-stacks are for "
                           "queries");
    }
    if (cli->since != NULL || cli->from != NULL || cli->to != NULL || cli->base_from != NULL ||
        cli->base_to != NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "a file is read whole: ranges are for queries");
    }
    return HEARTH_OK;
}

static enum hearth_status build_file_tree(struct cli *cli, struct hearth_profile *profile,
                                          uint32_t type, struct flame_file *ret)
{
    HEARTH_TRY(hearth_profile_demangle(profile, HEARTH_DEMANGLE_SIMPLE, &cli->arena, &cli->err));
    HEARTH_TRY(hearth_stacktree_add_shown(&ret->tree, profile, type, &cli->err));
    if (hearth_stacktree_root(&ret->tree) == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    HEARTH_TRY(hearth_stacktree_seal(&ret->tree, &cli->err));
    return flame_transform_tree(cli, &ret->tree);
}

enum hearth_status flame_file_open(struct cli *cli, const char *path, const char *wanted,
                                   struct flame_file *ret)
{
    struct hearth_file_profiles file;
    size_t part = 0;
    uint32_t type = 0;

    *ret = (struct flame_file){0};
    hearth_buf_init(&ret->plain, 0);
    hearth_stacktree_init(&ret->tree, &cli->arena);
    HEARTH_TRY(check_file_options(cli));

    enum hearth_status status = cli_open_profile(cli, path, &ret->plain, &file);
    if (status == HEARTH_OK) {
        status = choose_file_type(cli, &file, wanted, &part, &type, &ret->type);
    }
    if (status == HEARTH_OK) {
        struct hearth_profile *profile = &file.profiles[part].profile;
        ret->profile = profile;
        ret->type_idx = type;
        char when[32] = "";
        if (profile->time_ns > 0) {
            cli_local_date(profile->time_ns / HEARTH_NS_PER_MS, when);
        }
        ret->range = hearth_arena_printf(&cli->arena, "%s", when);
        status = build_file_tree(cli, profile, type, ret);
    }
    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "%s", path);
    }

    return status;
}

void flame_file_release(struct flame_file *file)
{
    hearth_stacktree_release(&file->tree);
    hearth_buf_release(&file->plain);
}

enum cli_exit flame_file_is_empty(const char *path, const char *type)
{
    (void)fprintf(stderr, "hearth: %s: all values are 0\n", path);
    cli_say("type", type);
    return CLI_NO_DATA;
}
