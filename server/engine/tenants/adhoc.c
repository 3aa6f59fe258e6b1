/* adhoc.c -- profiles uploaded for viewing (contract: hearth/engine/adhoc.h). */
#include "hearth/engine/adhoc.h"

#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/format/demangle_names.h"
#include "hearth/format/profile_file.h"
#include "hearth/store/client_data.h"

#include "common/shown.h"
#include "ingest/ingest_internal.h"
#include "select/query_internal.h"

#include <assert.h>
#include <sys/random.h>

#define MAX_NAME_BYTES  200
#define ULID_TIME_CHARS 10
#define ULID_CHARS      26
#define ULID_RANDOM     16 /* bytes; five bits of each are used */

/* ---- names ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static enum hearth_status clean_profile_name(struct hearth_str name, struct hearth_arena *arena,
                                             struct hearth_str *ret, struct hearth_err *err)
{
    if (name.n == 0) {
        name = HEARTH_STR("profile");
    }

    size_t n = name.n < MAX_NAME_BYTES ? name.n : MAX_NAME_BYTES;
    char *text = hearth_arena_strndup(arena, name.p, n);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        text[i] = is_name_char(text[i]) ? text[i] : '_';
    }

    *ret = hearth_str_n(text, n);

    return HEARTH_OK;
}

/*
 * Make an id: a ULID (48 bits of milliseconds and 80 random bits, in Crockford's base 32), a dash
 * and the name.
 */
static enum hearth_status make_adhoc_id(struct hearth_adhoc *profile, struct hearth_arena *arena,
                                        struct hearth_err *err)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    unsigned char random[ULID_RANDOM];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gave no random bytes for an id");
    }

    char ulid[ULID_CHARS];

    /* Encode the time, then the random bits. */
    uint64_t ms = (uint64_t)profile->uploaded_at_ms;
    for (size_t i = 0; i < ULID_TIME_CHARS; i++) {
        ulid[i] = digits[ms >> (5 * (ULID_TIME_CHARS - 1 - i)) & 31];
    }

    for (size_t i = 0; i < ULID_RANDOM; i++) {
        ulid[ULID_TIME_CHARS + i] = digits[random[i] & 31];
    }

    char *id = hearth_arena_printf(arena, "%.*s-" HEARTH_STR_FMT, ULID_CHARS, ulid,
                                   HEARTH_STR_ARG(profile->name));
    profile->id = hearth_str_c(id);

    return id == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* ---- types ---- */

/* One type of a file, which may have several profiles. */
struct adhoc_type {
    struct hearth_str name; /* unique in the file */
    const struct hearth_file_profile *part;
    uint32_t column; /* of the profile's values */
};

struct adhoc_file {
    struct hearth_file_profiles decoded;
    struct adhoc_type *types;
    size_t n_types;
    size_t by_default; /* index of the type that is shown if none is wanted */
};

static struct hearth_str find_type_text(const struct adhoc_type *type)
{
    const struct hearth_profile *profile = &type->part->profile;

    return profile->strings[profile->types[type->column].type];
}

static struct hearth_str find_type_unit(const struct adhoc_type *type)
{
    const struct hearth_profile *profile = &type->part->profile;

    return profile->strings[profile->types[type->column].unit];
}

/* Name type `t` by its sample type; if others have the same, with its unit and its profile, too. */
static enum hearth_status name_adhoc_type(const struct adhoc_file *file, size_t t,
                                          struct hearth_arena *arena, struct hearth_str *ret,
                                          struct hearth_err *err)
{
    const struct adhoc_type *type = &file->types[t];
    struct hearth_str text = find_type_text(type), unit = find_type_unit(type);
    size_t n_same = 0, n_same_unit = 0;

    for (size_t i = 0; i < file->n_types; i++) {
        bool is_same = hearth_str_eq(text, find_type_text(&file->types[i]));
        n_same += is_same;
        n_same_unit += is_same && hearth_str_eq(unit, find_type_unit(&file->types[i]));
    }

    if (n_same == 1) {
        *ret = text;
        return HEARTH_OK;
    }

    bool needs_part = n_same_unit > 1 && file->decoded.n_profiles > 1;
    char *name =
        hearth_arena_printf(arena, HEARTH_STR_FMT "%s" HEARTH_STR_FMT ":" HEARTH_STR_FMT,
                            HEARTH_STR_ARG(needs_part ? type->part->name : HEARTH_STR("")),
                            needs_part ? ":" : "", HEARTH_STR_ARG(text), HEARTH_STR_ARG(unit));
    *ret = hearth_str_c(name);

    return name == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static size_t find_type_name(const struct adhoc_file *file, struct hearth_str wanted)
{
    size_t t = 0;

    while (t < file->n_types && !hearth_str_eq(file->types[t].name, wanted)) {
        t++;
    }

    return t;
}

/* The default type of the first profile, if it has one. */
static size_t find_default_type(const struct adhoc_file *file)
{
    const struct hearth_profile *first = &file->decoded.profiles[0].profile;
    struct hearth_str by_default = first->strings[first->default_type];

    for (size_t t = 0; t < first->n_types; t++) {
        if (hearth_str_eq(find_type_text(&file->types[t]), by_default)) {
            return t;
        }
    }

    return 0;
}

/* Lists the types of all profiles of a file. */
static enum hearth_status list_adhoc_types(struct adhoc_file *file, struct hearth_arena *arena,
                                           struct hearth_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < file->decoded.n_profiles; i++) {
        n += file->decoded.profiles[i].profile.n_types;
    }

    if (n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file has no profile (format: %s)",
                           file->decoded.format);
    }

    file->types = hearth_arena_array(arena, n, sizeof *file->types);
    if (file->types == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < file->decoded.n_profiles; i++) {
        const struct hearth_file_profile *part = &file->decoded.profiles[i];
        for (uint32_t t = 0; t < part->profile.n_types; t++) {
            file->types[file->n_types++] = (struct adhoc_type){.part = part, .column = t};
        }
    }

    /* The names need all types. */
    for (size_t t = 0; t < n; t++) {
        HEARTH_TRY(name_adhoc_type(file, t, arena, &file->types[t].name, err));
    }
    file->by_default = find_default_type(file);

    return HEARTH_OK;
}

/* Choose the wanted type; without one, the default. */
static enum hearth_status choose_adhoc_type(const struct adhoc_file *file, struct hearth_str wanted,
                                            size_t *ret, struct hearth_err *err)
{
    size_t t = wanted.n > 0 ? find_type_name(file, wanted) : file->by_default;

    if (t == file->n_types) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile has no type \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(wanted));
    }

    *ret = t;

    return HEARTH_OK;
}

/* ---- decoding ---- */

/* Decompresses the bytes; *ret is `bytes` if they are not compressed. */
static enum hearth_status inflate_adhoc(const struct hearth_call *call, struct hearth_str bytes,
                                        int64_t max_bytes, struct hearth_str *ret,
                                        struct hearth_err *err)
{
    enum hearth_compression format = hearth_compression_detect(bytes);
    if (format == HEARTH_COMPRESSION_NONE) {
        *ret = bytes;
        return HEARTH_OK;
    }

    struct hearth_inflater *inflater = hearth_inflater_new();
    enum hearth_status status = hearth_inflate_in_arena(
        inflater, format, bytes, max_bytes > 0 ? (size_t)max_bytes : SIZE_MAX, call->arena, ret,
        err);
    hearth_inflater_free(inflater);

    return status;
}

/* Decode a file of any format, within the limits of pushed profiles. */
static enum hearth_status decode_adhoc(const struct hearth_call *call, struct hearth_str bytes,
                                       struct adhoc_file *ret, struct hearth_err *err)
{
    struct hearth_limits limits;

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    HEARTH_TRY(inflate_adhoc(call, bytes, limits.max_profile_bytes, &bytes, err));
    const struct hearth_file_options options = {.limits = hearth_ingest_pprof_limits(&limits)};
    enum hearth_status status =
        hearth_profile_file_decode(bytes, &options, call->arena, &ret->decoded, err);
    for (size_t i = 0; status == HEARTH_OK && i < ret->decoded.n_profiles; i++) {
        status = hearth_profile_demangle(&ret->decoded.profiles[i].profile, limits.demangle,
                                         call->arena, err);
    }
    if (status != HEARTH_OK) {
        return status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
    }

    return list_adhoc_types(ret, call->arena, err);
}

/* ---- views ---- */

static enum hearth_status choose_max_nodes(const struct hearth_call *call,
                                           const struct hearth_adhoc_spec *spec, int64_t *ret,
                                           struct hearth_err *err)
{
    struct hearth_limits limits;

    /* Check the limit. */
    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    *ret = spec->has_max_nodes && spec->max_nodes != 0 ? spec->max_nodes
                                                       : limits.default_flamegraph_nodes;
    if (*ret < 0 || (limits.max_flamegraph_nodes > 0 && *ret > limits.max_flamegraph_nodes)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "max_nodes is %lld; max-flamegraph-nodes allows %lld", (long long)*ret,
                           (long long)limits.max_flamegraph_nodes);
    }

    return HEARTH_OK;
}

static enum hearth_status build_adhoc_tree(const struct adhoc_type *type,
                                           struct hearth_stacktree *tree, struct hearth_err *err)
{
    assert(type->column < type->part->profile.n_types);

    HEARTH_TRY(hearth_stacktree_add_profile(tree, &type->part->profile, type->column, err));
    return hearth_stacktree_seal(tree, err);
}

/* Fill the types of a view with those of a file. */
static enum hearth_status fill_view_types(const struct adhoc_file *file, struct hearth_arena *arena,
                                          struct hearth_adhoc_view *view, struct hearth_err *err)
{
    view->types = hearth_arena_array(arena, file->n_types, sizeof *view->types);
    if (view->types == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t t = 0; t < file->n_types; t++) {
        view->types[t] = file->types[t].name;
    }
    view->n_types = file->n_types;

    return HEARTH_OK;
}

/* Fill the shown type of a view. */
static void set_shown_type(const struct adhoc_type *type, struct hearth_adhoc_view *view)
{
    view->type = type->name;
    view->sample_type = find_type_text(type);
    view->unit = find_type_unit(type);
}

/* Fill types and flame graph of a view. */
static enum hearth_status draw_adhoc_view(const struct hearth_call *call,
                                          const struct adhoc_file *file,
                                          const struct hearth_adhoc_spec *spec,
                                          struct hearth_adhoc_view *view, struct hearth_err *err)
{
    int64_t max_nodes;
    size_t type;

    /* Choose size and type. */
    HEARTH_TRY(choose_max_nodes(call, spec, &max_nodes, err));
    HEARTH_TRY(choose_adhoc_type(file, spec->profile_type, &type, err));
    HEARTH_TRY(fill_view_types(file, call->arena, view, err));
    set_shown_type(&file->types[type], view);

    /* Build the flame graph. */
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, call->arena);
    enum hearth_status status = build_adhoc_tree(&file->types[type], &tree, err);
    if (status == HEARTH_OK) {
        status = hearth_flamegraph_make(&tree, max_nodes, call->arena, &view->graph, err);
    }

    hearth_stacktree_release(&tree);

    return status;
}

/* ---- stored profiles ---- */

enum hearth_status hearth_adhoc_upload(const struct hearth_call *call, struct hearth_str name,
                                       struct hearth_str bytes,
                                       const struct hearth_adhoc_spec *spec,
                                       struct hearth_adhoc_view *ret, struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(call != NULL && ret != NULL);

    HEARTH_TRY(hearth_call_check_whole(call, err));
    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    *ret = (struct hearth_adhoc_view){0};

    /* Check size and contents. */
    if (limits.max_adhoc_profile_bytes > 0 && bytes.n > (uint64_t)limits.max_adhoc_profile_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile has %zu bytes; max-adhoc-profile-bytes allows %lld",
                           bytes.n, (long long)limits.max_adhoc_profile_bytes);
    }

    struct adhoc_file file = {.n_types = 0};
    HEARTH_TRY(decode_adhoc(call, bytes, &file, err));
    HEARTH_TRY(draw_adhoc_view(call, &file, spec, ret, err));

    /* Store the profile under a new id. */
    HEARTH_TRY(clean_profile_name(name, call->arena, &ret->profile.name, err));
    ret->profile.uploaded_at_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    HEARTH_TRY(make_adhoc_id(&ret->profile, call->arena, err));
    struct hearth_adhoc stored = ret->profile;
    stored.payload = bytes;

    return hearth_store_adhoc_put(HEARTH_CALL_SCOPE(call), &stored, limits.max_adhoc_profiles,
                                  limits.max_adhoc_bytes, err);
}

/* Read and decode a stored profile. */
static enum hearth_status load_adhoc(const struct hearth_call *call, struct hearth_str id,
                                     struct hearth_adhoc *ret_stored, struct adhoc_file *ret,
                                     struct hearth_err *err)
{
    if (hearth_call_is_narrow(call)) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no ad hoc profile \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(id));
    }

    HEARTH_TRY(hearth_store_adhoc_get(HEARTH_CALL_SCOPE(call), id, ret_stored, err));
    HEARTH_TRY(decode_adhoc(call, ret_stored->payload, ret, err));
    ret_stored->payload = hearth_str_n("", 0);
    return HEARTH_OK;
}

enum hearth_status hearth_adhoc_get(const struct hearth_call *call, struct hearth_str id,
                                    const struct hearth_adhoc_spec *spec,
                                    struct hearth_adhoc_view *ret, struct hearth_err *err)
{
    *ret = (struct hearth_adhoc_view){0};
    struct adhoc_file file = {.n_types = 0};
    HEARTH_TRY(load_adhoc(call, id, &ret->profile, &file, err));
    return draw_adhoc_view(call, &file, spec, ret, err);
}

enum hearth_status hearth_adhoc_list(const struct hearth_call *call, struct hearth_adhoc **ret,
                                     size_t *ret_n, struct hearth_err *err)
{
    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_adhoc_list(HEARTH_CALL_SCOPE(call), ret, ret_n, err);
}

/* ---- comparison ---- */

struct diff_side {
    struct hearth_adhoc stored;
    struct adhoc_file file;
    struct hearth_stacktree tree;
};

/* The type of the right side with the name and unit of type `t` of the left side; NULL: none. */
static const struct adhoc_type *find_same_type(const struct adhoc_file *left, size_t t,
                                               const struct adhoc_file *right)
{
    size_t found = find_type_name(right, left->types[t].name);
    bool has_same_unit =
        found < right->n_types &&
        hearth_str_eq(find_type_unit(&left->types[t]), find_type_unit(&right->types[found]));

    return has_same_unit ? &right->types[found] : NULL;
}

/* Fill view->types with the common types; ret_types: the compared type on both sides. */
static enum hearth_status
choose_common_type(const struct hearth_call *call, const struct diff_side sides[2],
                   struct hearth_str wanted, struct hearth_adhoc_view *view,
                   const struct adhoc_type *ret_types[2], struct hearth_err *err)
{
    const struct adhoc_file *left = &sides[0].file, *right = &sides[1].file;

    view->types = hearth_arena_array(call->arena, left->n_types, sizeof *view->types);
    if (view->types == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Collect the common types; the compared one is the wanted one, or the first. */
    bool found = false;
    for (size_t t = 0; t < left->n_types; t++) {
        const struct adhoc_type *same = find_same_type(left, t, right);
        if (same == NULL) {
            continue;
        }
        view->types[view->n_types++] = left->types[t].name;
        if (!found && (wanted.n == 0 || hearth_str_eq(wanted, left->types[t].name))) {
            found = true;
            ret_types[0] = &left->types[t];
            ret_types[1] = same;
        }
    }

    return found ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the two profiles have no type \"" HEARTH_STR_FMT
                               "\" of the same unit in common",
                               HEARTH_STR_ARG(wanted));
}

static enum hearth_status
compare_profiles_of_sides(const struct hearth_call *call, struct diff_side sides[2],
                          const struct hearth_str ids[2], const struct hearth_adhoc_spec *spec,
                          struct hearth_adhoc_view *view, struct hearth_err *err)
{
    int64_t max_nodes;
    const struct adhoc_type *types[2];

    /* Decode both profiles. */
    HEARTH_TRY(choose_max_nodes(call, spec, &max_nodes, err));
    for (int i = 0; i < 2; i++) {
        HEARTH_TRY(load_adhoc(call, ids[i], &sides[i].stored, &sides[i].file, err));
    }

    /* Build a tree of the same type of each. */
    HEARTH_TRY(choose_common_type(call, sides, spec->profile_type, view, types, err));
    for (int i = 0; i < 2; i++) {
        HEARTH_TRY(build_adhoc_tree(types[i], &sides[i].tree, err));
    }

    /* Fill the view. */
    set_shown_type(types[0], view);
    char *name = hearth_arena_printf(call->arena, HEARTH_STR_FMT " - " HEARTH_STR_FMT,
                                     HEARTH_STR_ARG(sides[0].stored.name),
                                     HEARTH_STR_ARG(sides[1].stored.name));
    if (name == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    view->profile.name = hearth_str_c(name);

    return hearth_flame_diff_make(&sides[0].tree, &sides[1].tree, max_nodes, call->arena,
                                  &view->diff, err);
}

enum hearth_status hearth_adhoc_diff(const struct hearth_call *call, struct hearth_str left_id,
                                     struct hearth_str right_id,
                                     const struct hearth_adhoc_spec *spec,
                                     struct hearth_adhoc_view *ret, struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    *ret = (struct hearth_adhoc_view){0};
    struct diff_side sides[2] = {0};
    const struct hearth_str ids[2] = {left_id, right_id};

    hearth_stacktree_init(&sides[0].tree, call->arena);
    hearth_stacktree_init(&sides[1].tree, call->arena);
    enum hearth_status status = compare_profiles_of_sides(call, sides, ids, spec, ret, err);
    hearth_stacktree_release(&sides[0].tree);
    hearth_stacktree_release(&sides[1].tree);

    return status;
}
