/*
 * config_file.c -- reads the configuration file: YAML with a section for each group of options, or
 * the older form, lines of "key = value".
 */
#include "hearth/codec/yaml_reader.h"

#include "config_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES (1024 * 1024)

/* "path:7", for messages and for the origin of a value. */
static const char *name_place(struct hearth_config *config, const char *path, int line)
{
    const char *place = hearth_arena_printf(&config->arena, "%s:%d", path, line);
    return place == NULL ? path : place;
}

/* An option that is set twice is an error, because one of the values would be ignored. */
static enum hearth_status check_is_first(const struct hearth_config *config,
                                         const struct hearth_option *option, const char *from,
                                         struct hearth_err *err)
{
    const char *earlier = config->origins[option - hearth_options];
    bool is_copied = hearth_option_was_wiped(config, option) ||
                     (config->before != NULL && hearth_option_is_secret(option) &&
                      strcmp(earlier, hearth_option_find_file(option)->flag) == 0);

    if (!is_copied && strcmp(earlier, "default") != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: %s is already set at %s", from,
                           option->flag, earlier);
    }

    return HEARTH_OK;
}

static enum hearth_status fail_unknown(struct hearth_config *config, const char *from,
                                       struct hearth_str key,
                                       const char *(*find_nearest)(struct hearth_str),
                                       struct hearth_err *err)
{
    /* Further mistakes are only counted: their texts are not shown. */
    const char *nearest = config->n_mistakes < HEARTH_MAX_MISTAKES ? find_nearest(key) : NULL;

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: unknown key \"%s\"%s%s%s", from,
                       hearth_config_quote(config, key), nearest == NULL ? "" : "; did you mean \"",
                       nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"?");
}

/* A key at the left edge of YAML that is near no section and is no option. */
static enum hearth_status fail_unknown_section(struct hearth_config *config, const char *from,
                                               struct hearth_str key, struct hearth_err *err)
{
    struct hearth_buf all;

    hearth_buf_init(&all, 0);
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_options[i].section != NULL) {
            hearth_buf_printf(&all, "%s%s", all.n == 0 ? "" : ", ", hearth_options[i].section);
        }
    }

    enum hearth_status status =
        HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: unknown key \"%s\"; the sections are %.*s",
                    from, hearth_config_quote(config, key), (int)all.n, all.n == 0 ? "" : all.p);
    hearth_buf_release(&all);

    return status;
}

/* ---- lines of "key = value" ---- */

static enum hearth_status load_line(struct hearth_config *config, struct hearth_str line,
                                    const char *from, struct hearth_err *err)
{
    line = hearth_str_trim(line);
    if (line.n == 0 || line.p[0] == '#') {
        return HEARTH_OK;
    }

    /* As in YAML, and so that the printed configuration can say the same. */
    if (!hearth_str_utf8_valid(line)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: the line is not UTF-8", from);
    }

    size_t eq = hearth_str_find(line, '=', 0);
    if (eq == line.n) {
        /* Not quoted: it may be the rest of a secret. */
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: expected \"key = value\"", from);
    }

    /* The value may be in double quotes, which preserve white space. */
    struct hearth_str key = hearth_str_trim(hearth_str_n(line.p, eq));
    struct hearth_str value = hearth_str_trim(hearth_str_n(line.p + eq + 1, line.n - eq - 1));
    if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"') {
        value = hearth_str_n(value.p + 1, value.n - 2);
    }

    const struct hearth_option *option = hearth_option_find(key);
    if (option == NULL) {
        return fail_unknown(config, from, key, hearth_option_nearest, err);
    }

    HEARTH_TRY(check_is_first(config, option, from, err));

    return hearth_option_set(config, option, value, from, false, err);
}

/* Each line, with its number for messages. */
static void load_lines(struct hearth_config *config, struct hearth_str all, const char *path)
{
    int number = 1;
    for (size_t at = 0; at < all.n; number++) {
        struct hearth_err why = HEARTH_ERR_INIT;
        size_t end = hearth_str_find(all, '\n', at);
        struct hearth_str line = hearth_str_n(all.p + at, end - at);
        hearth_config_note(config, load_line(config, line, name_place(config, path, number), &why),
                           &why);
        at = end + 1;
    }
}

/* True if the first line that is not a comment is "key = value": '=' without a ':' before it. */
static bool is_older_form(struct hearth_str all)
{
    for (size_t at = 0; at < all.n;) {
        size_t end = hearth_str_find(all, '\n', at);
        struct hearth_str line = hearth_str_trim(hearth_str_n(all.p + at, end - at));
        if (line.n > 0 && line.p[0] != '#') {
            size_t eq = hearth_str_find(line, '=', 0);
            return eq < line.n && eq < hearth_str_find(line, ':', 0);
        }
        at = end + 1;
    }

    return true; /* nothing but comments, which both forms have */
}

/* ---- YAML ---- */

struct yaml_file {
    struct hearth_config *config;
    const char *path;
    const struct hearth_option *section; /* its row of the table */
};

static enum hearth_status take_list(struct yaml_file *file, struct hearth_yaml *reading,
                                    const struct hearth_option *option, const yaml_node_t *value,
                                    const char *from, struct hearth_err *err)
{
    size_t n = hearth_yaml_count(value);
    struct hearth_str *items =
        hearth_arena_calloc(&file->config->arena, n == 0 ? 1 : n, sizeof items[0]);
    if (items == NULL) {
        return HEARTH_FAIL_ARENA(err, &file->config->arena);
    }

    for (size_t i = 0; i < n; i++) {
        const yaml_node_t *item = hearth_yaml_node(reading, value->data.sequence.items.start[i]);
        if (item->type != YAML_SCALAR_NODE) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT, "%s: the items of %s must be texts, each on one line",
                name_place(file->config, file->path, hearth_yaml_line(item)), option->flag);
        }
        items[i] = hearth_yaml_text(item);
    }

    return hearth_option_set_items(file->config, option, items, n, from, err);
}

static enum hearth_status take_value(struct yaml_file *file, struct hearth_yaml *reading,
                                     struct hearth_str key, const yaml_node_t *value,
                                     struct hearth_err *err)
{
    struct hearth_config *config = file->config;
    const char *from = name_place(config, file->path, reading->key_line);
    const struct hearth_option *option = hearth_option_find_key(file->section, key);
    const struct hearth_option *elsewhere = hearth_option_find(key);

    if (option == NULL && elsewhere != NULL) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT, "%s: \"%s\" belongs to the section \"%s\", not to \"%s\"",
            from, elsewhere->flag, hearth_option_section(elsewhere), file->section->section);
    }
    if (option == NULL) {
        return fail_unknown(config, from, key, hearth_option_nearest, err);
    }

    HEARTH_TRY(check_is_first(config, option, from, err));
    if (option->kind == LIST && value->type == YAML_SEQUENCE_NODE) {
        return take_list(file, reading, option, value, from, err);
    }
    if (value->type != YAML_SCALAR_NODE) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: %s takes one value, not a %s", from,
                           option->flag, value->type == YAML_MAPPING_NODE ? "mapping" : "list");
    }
    if (hearth_yaml_is_null(value)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s: %s has no value; an empty text is written \"\"", from,
                           option->flag);
    }

    enum hearth_status status =
        hearth_option_set(config, option, hearth_yaml_text(value), from, false, err);
    if (hearth_option_is_secret(option)) {
        explicit_bzero(value->data.scalar.value, value->data.scalar.length);
    }

    return status;
}

static enum hearth_status take_option(struct hearth_yaml *reading, void *context,
                                      struct hearth_str key, const yaml_node_t *value,
                                      bool *ret_known)
{
    struct yaml_file *file = context;
    struct hearth_err why = HEARTH_ERR_INIT;

    (void)ret_known; /* an unknown key is a mistake of many */
    hearth_config_note(file->config, take_value(file, reading, key, value, &why), &why);

    return HEARTH_OK;
}

static enum hearth_status find_section(struct yaml_file *file, struct hearth_str key,
                                       const char *from, struct hearth_err *err)
{
    const struct hearth_option *section = hearth_option_find_section(key);
    const struct hearth_option *option = hearth_option_find(key);

    if (section == NULL && option != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: \"%s\" belongs to the section \"%s\"",
                           from, option->flag, hearth_option_section(option));
    }
    if (section == NULL) {
        bool is_far = file->config->n_mistakes < HEARTH_MAX_MISTAKES &&
                      hearth_option_nearest_section(key) == NULL;
        return is_far ? fail_unknown_section(file->config, from, key, err)
                      : fail_unknown(file->config, from, key, hearth_option_nearest_section, err);
    }

    const char **earlier = &file->config->origins[section - hearth_options];
    if (*earlier != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s: the section \"%s\" has already begun at %s", from, section->section,
                           *earlier);
    }

    *earlier = from;
    file->section = section;

    return HEARTH_OK;
}

static enum hearth_status take_section(struct hearth_yaml *reading, void *context,
                                       struct hearth_str key, const yaml_node_t *value,
                                       bool *ret_known)
{
    struct yaml_file *file = context;
    struct hearth_err why = HEARTH_ERR_INIT;
    const char *from = name_place(file->config, file->path, reading->key_line);

    (void)ret_known;
    reading->may_repeat = true; /* find_section and take_value name both places */
    enum hearth_status status = find_section(file, key, from, &why);
    if (status == HEARTH_OK && !hearth_yaml_is_null(value)) {
        if (value->type != YAML_MAPPING_NODE) {
            status = HEARTH_FAIL(&why, HEARTH_INVALID_ARGUMENT,
                                 "%s: expected the options of the section \"%s\", each on a line "
                                 "\"option: value\"",
                                 from, file->section->section);
        } else {
            status = hearth_yaml_mapping(reading, value, take_option, file);
        }
    }
    hearth_config_note(file->config, status, &why);

    return HEARTH_OK;
}

static void load_yaml(struct hearth_config *config, struct hearth_str all, const char *path)
{
    struct yaml_file file = {.config = config, .path = path};
    struct hearth_err why = HEARTH_ERR_INIT, at = HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_yaml_read_text(all, &config->arena, take_section, &file, &why);
    int line, n_read = 0;

    /* "line 7: ..." as the other mistakes are named. */
    if (status != HEARTH_OK && sscanf(why.msg, "line %d: %n", &line, &n_read) == 1) {
        status = HEARTH_FAIL(&at, why.status, "%s:%d: %s", path, line, why.msg + n_read);
    }
    hearth_config_note(config, status, at.status == HEARTH_OK ? &why : &at);
}

/* ---- the file ---- */

/* True if a secret was set by a line of this file: "path:7". */
static bool has_secret_from(const struct hearth_config *config, const char *path)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_option_is_secret(&hearth_options[i]) &&
            hearth_str_starts(hearth_str_c(config->origins[i]), hearth_str_c(path))) {
            return true;
        }
    }

    return false;
}

static void close_if_open(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

enum hearth_status hearth_config_load_file(struct hearth_config *config, const char *path,
                                           struct hearth_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0) {
        int saved = errno;
        close_if_open(fd);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "cannot open configuration file \"%s\": %s", path,
                           strerrordesc_np(saved));
    }

    /*
     * Without the buffers of stdio, which would keep a copy of secrets. A pipe has no size; a byte
     * more than a file has tells that it grew.
     */
    size_t room = about.st_size > 0 && about.st_size < MAX_FILE_BYTES ? (size_t)about.st_size + 1
                                                                      : MAX_FILE_BYTES;
    char *text = hearth_arena_alloc(&config->arena, room);
    size_t n = 0;
    ssize_t got = text == NULL ? 0 : 1;
    while (got > 0 && n < room) {
        got = read(fd, text + n, room - n);
        n += got > 0 ? (size_t)got : 0;
    }
    int saved = errno;
    (void)close(fd);
    if (got < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "cannot read configuration file \"%s\": %s", path,
                           strerrordesc_np(saved));
    }

    if (text == NULL || n == MAX_FILE_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "configuration file \"%s\" is larger than 1 MiB", path);
    }

    if (n == room) {
        explicit_bzero(text, n);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "configuration file \"%s\" was written while it was read", path);
    }

    if (is_older_form(hearth_str_n(text, n))) {
        load_lines(config, hearth_str_n(text, n), path);
    } else {
        load_yaml(config, hearth_str_n(text, n), path);
    }
    explicit_bzero(text, n);
    if ((about.st_mode & S_IROTH) != 0 && has_secret_from(config, path)) {
        hearth_config_warn(config, hearth_arena_printf(&config->arena,
                                                       "every user of this machine can read "
                                                       "\"%s\", which has a secret; chmod o-r it",
                                                       path));
    }

    return HEARTH_OK;
}
