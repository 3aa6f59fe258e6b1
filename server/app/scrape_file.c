/*
 * scrape_file.c -- the file of --scrape-config (contract: scrape_file.h). libyaml makes a tree;
 * each mapping is read by a function that knows its keys.
 */
#include "scrape_file.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/codec/yaml_reader.h"
#include "hearth/selector/timeexpr.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_JOBS      1000
#define MAX_GROUPS    1000
#define MAX_ADDRESSES 10000
#define MAX_LABELS    30
#define MAX_PATHS     32

#define DEFAULT_INTERVAL_NS (15 * HEARTH_NS_PER_SEC)
#define DEFAULT_TIMEOUT_NS  (10 * HEARTH_NS_PER_SEC)

/* A profile that a job can have: those that are on unless the file says otherwise come first. */
struct known_path {
    const char *name, *path;
    bool is_measured, is_on;
};

static const struct known_path g_known_paths[] = {
    {"memory", "/debug/pprof/allocs", false, true},
    {"block", "/debug/pprof/block", false, true},
    {"goroutine", "/debug/pprof/goroutine", false, true},
    {"mutex", "/debug/pprof/mutex", false, true},
    {"process_cpu", "/debug/pprof/profile", true, true},
    {"threadcreate", "/debug/pprof/threadcreate", false, false},
    {"fgprof", "/debug/fgprof", true, false},
};

/* A job while it is read. */
struct job_draft {
    struct hearth_scrape_job job;
    struct hearth_scrape_group groups[MAX_GROUPS];
    /* By name; the first are g_known_paths. */
    struct {
        const char *name;
        struct hearth_scrape_path path;
        bool is_on;
    } paths[MAX_PATHS];
    size_t n_paths;
    const char *path_prefix;
};

/* ---- groups ---- */

/* From a second to a day, in nanoseconds. */
static enum hearth_status read_scrape_duration(struct hearth_yaml *reading, const yaml_node_t *node,
                                               int64_t *ret)
{
    struct hearth_err why = HEARTH_ERR_INIT;
    int64_t ns = 0;

    if (hearth_duration_parse(hearth_yaml_text(node), &ns, &why) != HEARTH_OK ||
        ns < HEARTH_NS_PER_SEC || ns > HEARTH_NS_PER_DAY) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: expected a duration from 1s to 1d", hearth_yaml_line(node));
    }

    *ret = ns;

    return HEARTH_OK;
}

static enum hearth_status read_path(struct hearth_yaml *reading, const yaml_node_t *node,
                                    const char **ret)
{
    HEARTH_TRY(hearth_yaml_string(reading, node, ret));

    return (*ret)[0] == '/' ? HEARTH_OK
                            : HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                                          "line %d: a path begins with /", hearth_yaml_line(node));
}

/* The addresses of a group, in the memory of the group. */
struct address_list {
    const char **addresses;
    bool has_ports; /* every address must have one */
};

/* HOST:PORT; the colons of an IPv6 address stand in brackets. */
static bool is_host_and_port(const char *address)
{
    const char *colon = strrchr(address, ':');
    int64_t port = 0;

    if (colon == NULL || colon == address || !hearth_str_to_i64(hearth_str_c(colon + 1), &port) ||
        port < 1 || port > 65535) {
        return false;
    }

    return address[0] == '[' ? colon[-1] == ']' : strchr(address, ':') == colon;
}

static enum hearth_status take_address(struct hearth_yaml *reading, void *context,
                                       const yaml_node_t *item, size_t index)
{
    struct address_list *list = context;
    const char *address;

    HEARTH_TRY(hearth_yaml_string(reading, item, &address));
    if (strlen(address) > HEARTH_SCRAPE_MAX_ADDRESS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the address has more than %d bytes", hearth_yaml_line(item),
                           HEARTH_SCRAPE_MAX_ADDRESS);
    }

    if ((list->has_ports && !is_host_and_port(address)) || strpbrk(address, "/@?# ") != NULL) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: \"%.64s\" is not %s",
                           hearth_yaml_line(item), address,
                           list->has_ports ? "an address HOST:PORT" : "a host name");
    }

    list->addresses[index] = address;

    return HEARTH_OK;
}

static enum hearth_status read_addresses(struct hearth_yaml *reading, const yaml_node_t *node,
                                         bool has_ports, struct hearth_scrape_group *group)
{
    size_t n = hearth_yaml_count(node);
    struct address_list list = {hearth_arena_array(reading->arena, n + 1, sizeof(const char *)),
                                has_ports};

    if (list.addresses == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    HEARTH_TRY(hearth_yaml_list(reading, node, MAX_ADDRESSES, take_address, &list));
    group->addresses = list.addresses;
    group->n_addresses = n;

    return HEARTH_OK;
}

/* Labels of a group, with room for MAX_LABELS. */
struct label_list {
    struct hearth_label *labels;
    size_t n;
};

static enum hearth_status take_label(struct hearth_yaml *reading, void *context,
                                     struct hearth_str key, const yaml_node_t *value,
                                     bool *ret_known)
{
    struct label_list *list = context;
    const char *text;

    (void)ret_known;
    HEARTH_TRY(hearth_yaml_string(reading, value, &text));
    if (list->n == MAX_LABELS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the group has more than %d labels", hearth_yaml_line(value),
                           MAX_LABELS);
    }
    if (key.n == 0) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the name of a label is empty", hearth_yaml_line(value));
    }
    if (hearth_str_starts(key, HEARTH_STR("__")) || hearth_str_eq_c(key, "job") ||
        hearth_str_eq_c(key, "instance")) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the label " HEARTH_STR_FMT " is set by the scraper",
                           hearth_yaml_line(value), HEARTH_STR_ARG(key));
    }

    list->labels[list->n++] =
        (struct hearth_label){hearth_arena_str(reading->arena, key), hearth_str_c(text)};

    return reading->arena->refused ? HEARTH_FAIL_ARENA(reading->err, reading->arena) : HEARTH_OK;
}

static enum hearth_status read_labels(struct hearth_yaml *reading, const yaml_node_t *node,
                                      struct hearth_scrape_group *group)
{
    struct label_list list = {
        hearth_arena_array(reading->arena, MAX_LABELS, sizeof(struct hearth_label)), 0};

    if (list.labels == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    HEARTH_TRY(hearth_yaml_mapping(reading, node, take_label, &list));
    group->labels = list.labels;
    group->n_labels = list.n;

    return HEARTH_OK;
}

static enum hearth_status take_static_member(struct hearth_yaml *reading, void *context,
                                             struct hearth_str key, const yaml_node_t *value,
                                             bool *ret_known)
{
    struct hearth_scrape_group *group = context;

    if (hearth_str_eq_c(key, "targets")) {
        return read_addresses(reading, value, true, group);
    }
    if (hearth_str_eq_c(key, "labels")) {
        return read_labels(reading, value, group);
    }

    *ret_known = false;

    return HEARTH_OK;
}

static enum hearth_status take_dns_member(struct hearth_yaml *reading, void *context,
                                          struct hearth_str key, const yaml_node_t *value,
                                          bool *ret_known)
{
    struct hearth_scrape_group *group = context;
    int64_t port = 0;

    if (hearth_str_eq_c(key, "names")) {
        return read_addresses(reading, value, false, group);
    }
    if (hearth_str_eq_c(key, "labels")) {
        return read_labels(reading, value, group);
    }
    if (hearth_str_eq_c(key, "type")) {
        return hearth_str_eq_c(hearth_yaml_text(value), "A") ||
                       hearth_str_eq_c(hearth_yaml_text(value), "AAAA")
                   ? HEARTH_OK
                   : HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                                 "line %d: type must be A or AAAA (both ask for addresses of "
                                 "either kind); SRV is not supported",
                                 hearth_yaml_line(value));
    }
    if (hearth_str_eq_c(key, "port")) {
        if (!hearth_str_to_i64(hearth_yaml_text(value), &port) || port < 1 || port > 65535) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: expected a port from 1 to 65535", hearth_yaml_line(value));
        }
        group->port = (uint16_t)port;
        return HEARTH_OK;
    }

    *ret_known = false;

    return HEARTH_OK;
}

static enum hearth_status take_static_group(struct hearth_yaml *reading, void *context,
                                            const yaml_node_t *item, size_t index)
{
    struct job_draft *draft = context;

    (void)index;
    if (draft->job.n_groups == MAX_GROUPS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the job has more than %d groups", hearth_yaml_line(item),
                           MAX_GROUPS);
    }

    return hearth_yaml_mapping(reading, item, take_static_member,
                               &draft->groups[draft->job.n_groups++]);
}

static enum hearth_status take_dns_group(struct hearth_yaml *reading, void *context,
                                         const yaml_node_t *item, size_t index)
{
    struct job_draft *draft = context;

    (void)index;
    if (draft->job.n_groups == MAX_GROUPS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the job has more than %d groups", hearth_yaml_line(item),
                           MAX_GROUPS);
    }

    struct hearth_scrape_group *group = &draft->groups[draft->job.n_groups++];
    group->is_dns = true;
    HEARTH_TRY(hearth_yaml_mapping(reading, item, take_dns_member, group));

    return group->port > 0 ? HEARTH_OK
                           : HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                                         "line %d: the names need a port", hearth_yaml_line(item));
}

/* ---- profiles ---- */

struct path_draft {
    struct hearth_scrape_path *path;
    bool *is_on;
};

static enum hearth_status take_path_member(struct hearth_yaml *reading, void *context,
                                           struct hearth_str key, const yaml_node_t *value,
                                           bool *ret_known)
{
    struct path_draft *draft = context;

    if (hearth_str_eq_c(key, "enabled")) {
        return hearth_yaml_switch(reading, value, draft->is_on);
    }
    if (hearth_str_eq_c(key, "path")) {
        return read_path(reading, value, &draft->path->path);
    }
    if (hearth_str_eq_c(key, "delta")) {
        return hearth_yaml_switch(reading, value, &draft->path->is_measured);
    }

    *ret_known = false;

    return HEARTH_OK;
}

/* A profile by its name: one of those that are known, or another with a path. */
static enum hearth_status take_path(struct hearth_yaml *reading, void *context,
                                    struct hearth_str key, const yaml_node_t *value,
                                    bool *ret_known)
{
    struct job_draft *draft = context;
    size_t i = 0;

    (void)ret_known;
    while (i < draft->n_paths && !hearth_str_eq_c(key, draft->paths[i].name)) {
        i++;
    }
    if (i == MAX_PATHS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the job has more than %d profiles", hearth_yaml_line(value),
                           MAX_PATHS);
    }

    if (i == draft->n_paths) {
        draft->paths[i].name = hearth_arena_strndup(reading->arena, key.p, key.n);
        if (draft->paths[i].name == NULL) {
            return HEARTH_FAIL_ARENA(reading->err, reading->arena);
        }
        draft->paths[i].is_on = true;
        draft->n_paths++;
    }

    struct path_draft path = {&draft->paths[i].path, &draft->paths[i].is_on};
    HEARTH_TRY(hearth_yaml_mapping(reading, value, take_path_member, &path));

    return draft->paths[i].path.path != NULL
               ? HEARTH_OK
               : HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                             "line %d: \"" HEARTH_STR_FMT "\" needs a path",
                             hearth_yaml_line(value), HEARTH_STR_ARG(key));
}

static enum hearth_status take_profiling_member(struct hearth_yaml *reading, void *context,
                                                struct hearth_str key, const yaml_node_t *value,
                                                bool *ret_known)
{
    struct job_draft *draft = context;

    if (hearth_str_eq_c(key, "pprof_config")) {
        return hearth_yaml_mapping(reading, value, take_path, draft);
    }
    if (hearth_str_eq_c(key, "path_prefix")) {
        return read_path(reading, value, &draft->path_prefix);
    }

    *ret_known = false;

    return HEARTH_OK;
}

/* ---- jobs ---- */

static enum hearth_status read_scheme(struct hearth_yaml *reading, const yaml_node_t *node,
                                      struct hearth_scrape_job *job)
{
    HEARTH_TRY(hearth_yaml_string(reading, node, &job->scheme));
    if (strcmp(job->scheme, "http") != 0 && strcmp(job->scheme, "https") != 0) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: scheme must be http or https", hearth_yaml_line(node));
    }

    return HEARTH_OK;
}

/* The token of a job: the value or, if is_file, the contents of the file that it names. */
static enum hearth_status read_bearer(struct hearth_yaml *reading, const yaml_node_t *value,
                                      bool is_file, struct hearth_scrape_job *job)
{
    const char *path;
    bool is_public = false;

    if (job->bearer != NULL) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the job has a bearer token already", hearth_yaml_line(value));
    }
    if (!is_file) {
        return hearth_yaml_secret(reading, value, &job->bearer);
    }

    HEARTH_TRY(hearth_yaml_string(reading, value, &path));
    enum hearth_status status = hearth_secret_read(path, &job->bearer, &is_public, reading->err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(reading->err, "line %d", hearth_yaml_line(value));
    } else if (is_public) {
        HEARTH_LOG(HEARTH_LOG_WARN, "app",
                   "every user of this machine can read the file of a bearer token; chmod o-r it",
                   "path", path, NULL);
    }

    return status;
}

static enum hearth_status take_job_member(struct hearth_yaml *reading, void *context,
                                          struct hearth_str key, const yaml_node_t *value,
                                          bool *ret_known)
{
    struct job_draft *draft = context;
    struct hearth_scrape_job *job = &draft->job;

    if (hearth_str_eq_c(key, "job_name")) {
        return hearth_yaml_string(reading, value, &job->name);
    }
    if (hearth_str_eq_c(key, "tenant")) {
        return hearth_yaml_string(reading, value, &job->tenant);
    }
    if (hearth_str_eq_c(key, "scheme")) {
        return read_scheme(reading, value, job);
    }
    if (hearth_str_eq_c(key, "bearer_token") || hearth_str_eq_c(key, "bearer_token_file")) {
        return read_bearer(reading, value, key.n > sizeof "bearer_token", job);
    }
    if (hearth_str_eq_c(key, "scrape_interval")) {
        return read_scrape_duration(reading, value, &job->interval_ns);
    }
    if (hearth_str_eq_c(key, "scrape_timeout")) {
        return read_scrape_duration(reading, value, &job->timeout_ns);
    }
    if (hearth_str_eq_c(key, "static_configs")) {
        return hearth_yaml_list(reading, value, MAX_GROUPS, take_static_group, draft);
    }
    if (hearth_str_eq_c(key, "dns_sd_configs")) {
        return hearth_yaml_list(reading, value, MAX_GROUPS, take_dns_group, draft);
    }
    if (hearth_str_eq_c(key, "profiling_config")) {
        return hearth_yaml_mapping(reading, value, take_profiling_member, draft);
    }

    *ret_known = false;

    return HEARTH_OK;
}

/* The paths that are on, with the prefix. item: the job. */
static enum hearth_status finish_paths(struct hearth_yaml *reading, const yaml_node_t *item,
                                       struct job_draft *draft)
{
    struct hearth_scrape_path *paths =
        hearth_arena_array(reading->arena, draft->n_paths, sizeof *paths);
    size_t n = 0;

    if (paths == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    for (size_t i = 0; i < draft->n_paths; i++) {
        if (!draft->paths[i].is_on) {
            continue;
        }

        char *path = hearth_arena_printf(reading->arena, "%s%s", draft->path_prefix,
                                         draft->paths[i].path.path);
        if (path == NULL) {
            return HEARTH_FAIL_ARENA(reading->err, reading->arena);
        }
        if (strlen(path) > HEARTH_SCRAPE_MAX_PATH) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: the path of \"%.64s\" has more than %d bytes",
                               hearth_yaml_line(item), draft->paths[i].name,
                               HEARTH_SCRAPE_MAX_PATH);
        }
        paths[n] = draft->paths[i].path;
        paths[n++].path = path;
    }

    draft->job.paths = paths;
    draft->job.n_paths = n;

    return HEARTH_OK;
}

static void start_job(struct job_draft *draft)
{
    memset(draft, 0, sizeof *draft);

    draft->path_prefix = "";
    draft->job = (struct hearth_scrape_job){.tenant = "anonymous",
                                            .scheme = "http",
                                            .interval_ns = DEFAULT_INTERVAL_NS,
                                            .timeout_ns = DEFAULT_TIMEOUT_NS};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_known_paths); i++) {
        const struct known_path *known = &g_known_paths[i];
        draft->paths[i].name = known->name;
        draft->paths[i].path = (struct hearth_scrape_path){known->path, known->is_measured};
        draft->paths[i].is_on = known->is_on;
    }
    draft->n_paths = HEARTH_ARRAY_LEN(g_known_paths);
}

/* The jobs, in the memory of the options. */
struct job_list {
    struct hearth_scrape_job *jobs;
    struct job_draft *draft;
};

static enum hearth_status take_job(struct hearth_yaml *reading, void *context,
                                   const yaml_node_t *item, size_t index)
{
    struct job_list *list = context;
    struct job_draft *draft = list->draft;

    start_job(draft);
    enum hearth_status status = hearth_yaml_mapping(reading, item, take_job_member, draft);
    list->jobs[index].bearer = draft->job.bearer; /* hearth_scrape_file_release frees it */
    HEARTH_TRY(status);
    if (draft->job.name == NULL) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: job_name is missing",
                           hearth_yaml_line(item));
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(list->jobs[i].name, draft->job.name) == 0 &&
            strcmp(list->jobs[i].tenant, draft->job.tenant) == 0) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: there is another job \"%.64s\"", hearth_yaml_line(item),
                               draft->job.name);
        }
    }

    /* Copy the groups, whose number is known now. */
    size_t n_bytes = draft->job.n_groups * sizeof draft->groups[0];
    struct hearth_scrape_group *groups = hearth_arena_alloc(reading->arena, n_bytes + 1);
    if (groups == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    memcpy(groups, draft->groups, n_bytes);
    draft->job.groups = groups;
    HEARTH_TRY(finish_paths(reading, item, draft));
    list->jobs[index] = draft->job;

    return HEARTH_OK;
}

void hearth_scrape_file_release(struct hearth_scrape_options *options)
{
    for (size_t i = 0; i < options->n_jobs; i++) {
        hearth_secret_free(options->jobs[i].bearer);
    }

    options->jobs = NULL;
    options->n_jobs = 0;
}

static enum hearth_status take_root_member(struct hearth_yaml *reading, void *context,
                                           struct hearth_str key, const yaml_node_t *value,
                                           bool *ret_known)
{
    struct hearth_scrape_options *options = context;

    if (!hearth_str_eq_c(key, "scrape_configs")) {
        *ret_known = false;
        return HEARTH_OK;
    }

    size_t n = hearth_yaml_count(value);
    struct job_list list = {
        hearth_arena_calloc(reading->arena, n + 1, sizeof(struct hearth_scrape_job)),
        hearth_arena_alloc(reading->arena, sizeof(struct job_draft))};
    if (list.jobs == NULL || list.draft == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    hearth_scrape_file_release(options); /* of an earlier list in the same file */
    options->jobs = list.jobs;
    options->n_jobs = n;

    return hearth_yaml_list(reading, value, MAX_JOBS, take_job, &list);
}

/* ---- the file ---- */

enum hearth_status hearth_scrape_file_load(const char *path, struct hearth_arena *arena,
                                           struct hearth_scrape_options *ret,
                                           struct hearth_err *err)
{
    assert(path != NULL && arena != NULL && ret != NULL);

    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: %s", path, strerrordesc_np(errno));
    }

    enum hearth_status status = hearth_yaml_read_file(file, arena, take_root_member, ret, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "%s", path);
        hearth_scrape_file_release(ret);
    }
    (void)fclose(file);

    return status;
}
