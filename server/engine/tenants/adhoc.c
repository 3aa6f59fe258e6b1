/* adhoc.c -- profiles uploaded for viewing (contract: hearth/engine/adhoc.h). */
#include "hearth/engine/adhoc.h"

#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/format/demangle_names.h"
#include "hearth/format/ingest_types.h"
#include "hearth/format/text_profile.h"
#include "hearth/store/client_data.h"

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

    struct hearth_buf plain;

    hearth_buf_init(&plain, 0);
    plain.budget = call->arena->budget;
    struct hearth_inflater *inflater = hearth_inflater_new();
    enum hearth_status status;
    if (inflater == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to inflate a profile");
    } else {
        status = hearth_inflate(inflater, format, bytes,
                                max_bytes > 0 ? (size_t)max_bytes : SIZE_MAX, &plain, err);
    }

    if (status == HEARTH_OK) {
        *ret = hearth_arena_str(call->arena, hearth_buf_view(&plain));
        status = ret->p == NULL ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
    }

    hearth_inflater_free(inflater);
    hearth_buf_release(&plain);

    return status;
}

/* Decode a profile of a recognised format, within the limits of pushed profiles. */
static enum hearth_status decode_adhoc_bytes(struct hearth_str bytes,
                                             const struct hearth_limits *limits,
                                             struct hearth_arena *arena, struct hearth_profile *ret,
                                             struct hearth_err *err)
{
    const struct hearth_pprof_limits of_pprof = hearth_ingest_pprof_limits(limits);
    struct hearth_pprof_notes notes = {0};
    struct hearth_text_notes of_text;

    switch (hearth_ingest_format_of_bytes(bytes)) {
    case HEARTH_INGEST_SPEEDSCOPE:
    case HEARTH_INGEST_JFR:
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "the profile is JSON or JFR; only pprof, collapsed stacks and perf script can be read");
    case HEARTH_INGEST_COLLAPSED:
        HEARTH_TRY(hearth_text_decode(bytes, HEARTH_STR("samples"), HEARTH_STR("count"), arena, ret,
                                      &of_text, err));
        return hearth_ingest_cut(&of_pprof, arena, ret, &notes, err);
    default:
        return hearth_pprof_decode(bytes, &of_pprof, arena, ret, &notes, err);
    }
}

static enum hearth_status decode_adhoc(const struct hearth_call *call, struct hearth_str bytes,
                                       struct hearth_profile *ret, struct hearth_err *err)
{
    struct hearth_limits limits;

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);

    HEARTH_TRY(inflate_adhoc(call, bytes, limits.max_profile_bytes, &bytes, err));
    if (bytes.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the profile is empty");
    }

    enum hearth_status status = decode_adhoc_bytes(bytes, &limits, call->arena, ret, err);
    if (status == HEARTH_OK) {
        status = hearth_profile_demangle(ret, limits.demangle, call->arena, err);
    }

    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}

/* ---- types ---- */

static struct hearth_str find_string(const struct hearth_profile *profile, uint32_t string)
{
    return profile->strings[string];
}

/* Name type `t` by its sample type, with its unit if several types share the sample type. */
static enum hearth_status name_adhoc_type(const struct hearth_profile *profile, uint32_t t,
                                          struct hearth_arena *arena, struct hearth_str *ret,
                                          struct hearth_err *err)
{
    struct hearth_str type = find_string(profile, profile->types[t].type);
    size_t n_same = 0;

    assert(t < profile->n_types);

    for (uint32_t i = 0; i < profile->n_types; i++) {
        n_same += hearth_str_eq(type, find_string(profile, profile->types[i].type));
    }

    if (n_same == 1) {
        *ret = type;
        return HEARTH_OK;
    }

    char *text = hearth_arena_printf(arena, HEARTH_STR_FMT ":" HEARTH_STR_FMT, HEARTH_STR_ARG(type),
                                     HEARTH_STR_ARG(find_string(profile, profile->types[t].unit)));
    *ret = hearth_str_c(text);

    return text == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status name_adhoc_types(const struct hearth_profile *profile,
                                           struct hearth_arena *arena, struct hearth_str **ret,
                                           struct hearth_err *err)
{
    struct hearth_str *names = hearth_arena_array(arena, profile->n_types, sizeof *names);

    if (names == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t t = 0; t < profile->n_types; t++) {
        HEARTH_TRY(name_adhoc_type(profile, t, arena, &names[t], err));
    }

    /* A type that shares its sample type needs the unit. */

    *ret = names;

    return HEARTH_OK;
}

static uint32_t find_type_name(const struct hearth_str *names, size_t n, struct hearth_str wanted)
{
    uint32_t t = 0;

    while (t < n && !hearth_str_eq(names[t], wanted)) {
        t++;
    }
    return t;
}

/* Choose the wanted type; without one, the profile's default, otherwise its first. */
static enum hearth_status choose_adhoc_type(const struct hearth_profile *profile,
                                            const struct hearth_str *names,
                                            struct hearth_str wanted, uint32_t *ret,
                                            struct hearth_err *err)
{
    if (wanted.n > 0) {
        *ret = find_type_name(names, profile->n_types, wanted);
        return *ret < profile->n_types
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "the profile has no type \"" HEARTH_STR_FMT "\"",
                                 HEARTH_STR_ARG(wanted));
    }

    uint32_t by_default =
        find_type_name(names, profile->n_types, find_string(profile, profile->default_type));
    *ret = by_default < profile->n_types ? by_default : 0;

    return HEARTH_OK;
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

static enum hearth_status build_adhoc_tree(const struct hearth_profile *profile, uint32_t type,
                                           struct hearth_stacktree *tree, struct hearth_err *err)
{
    assert(type < profile->n_types);

    HEARTH_TRY(hearth_stacktree_add_profile(tree, profile, type, err));
    return hearth_stacktree_seal(tree, err);
}

/* Fill types and flame graph of a view. */
static enum hearth_status draw_adhoc_view(const struct hearth_call *call,
                                          const struct hearth_profile *profile,
                                          const struct hearth_adhoc_spec *spec,
                                          struct hearth_adhoc_view *view, struct hearth_err *err)
{
    int64_t max_nodes;
    uint32_t type;

    /* Choose size and type. */
    HEARTH_TRY(choose_max_nodes(call, spec, &max_nodes, err));
    HEARTH_TRY(name_adhoc_types(profile, call->arena, &view->types, err));
    HEARTH_TRY(choose_adhoc_type(profile, view->types, spec->profile_type, &type, err));
    view->n_types = profile->n_types;
    view->type = view->types[type];
    view->sample_type = find_string(profile, profile->types[type].type);
    view->unit = find_string(profile, profile->types[type].unit);

    /* Build the flame graph. */
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, call->arena);
    enum hearth_status status = build_adhoc_tree(profile, type, &tree, err);
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

    hearth_query_tenant_limits(call->engine, call->tenant, &limits);
    *ret = (struct hearth_adhoc_view){0};

    /* Check size and contents. */
    if (limits.max_adhoc_profile_bytes > 0 && bytes.n > (uint64_t)limits.max_adhoc_profile_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile has %zu bytes; max-adhoc-profile-bytes allows %lld",
                           bytes.n, (long long)limits.max_adhoc_profile_bytes);
    }

    struct hearth_profile profile;
    HEARTH_TRY(decode_adhoc(call, bytes, &profile, err));
    HEARTH_TRY(draw_adhoc_view(call, &profile, spec, ret, err));

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
                                     struct hearth_adhoc *ret_stored, struct hearth_profile *ret,
                                     struct hearth_err *err)
{
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
    struct hearth_profile profile;
    HEARTH_TRY(load_adhoc(call, id, &ret->profile, &profile, err));
    return draw_adhoc_view(call, &profile, spec, ret, err);
}

enum hearth_status hearth_adhoc_list(const struct hearth_call *call, struct hearth_adhoc **ret,
                                     size_t *ret_n, struct hearth_err *err)
{
    return hearth_store_adhoc_list(HEARTH_CALL_SCOPE(call), ret, ret_n, err);
}

/* ---- comparison ---- */

struct diff_side {
    struct hearth_adhoc stored;
    struct hearth_profile profile;
    struct hearth_str *types;
    struct hearth_stacktree tree;
};

static struct hearth_str find_type_unit(const struct diff_side *side, uint32_t type)
{
    return find_string(&side->profile, side->profile.types[type].unit);
}

/*
 * The type of the right side with the name and unit of type `t` of the left side; right's n_types:
 * there is none.
 */
static uint32_t find_same_type(const struct diff_side *left, uint32_t t,
                               const struct diff_side *right)
{
    uint32_t n = right->profile.n_types;
    uint32_t found = find_type_name(right->types, n, left->types[t]);
    bool has_same_unit =
        found < n && hearth_str_eq(find_type_unit(left, t), find_type_unit(right, found));

    return has_same_unit ? found : n;
}

/* Fill view->types with the common types; ret_types: the compared type on both sides. */
static enum hearth_status choose_common_type(const struct hearth_call *call,
                                             const struct diff_side sides[2],
                                             struct hearth_str wanted,
                                             struct hearth_adhoc_view *view, uint32_t ret_types[2],
                                             struct hearth_err *err)
{
    uint32_t n_left = sides[0].profile.n_types, n_right = sides[1].profile.n_types;

    assert(sides[0].types != NULL && sides[1].types != NULL);

    view->types = hearth_arena_array(call->arena, n_left, sizeof *view->types);
    if (view->types == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Collect the common types; the compared one is the wanted one, or the first. */
    bool found = false;
    for (uint32_t t = 0; t < n_left; t++) {
        uint32_t same = find_same_type(&sides[0], t, &sides[1]);
        if (same == n_right) {
            continue;
        }
        view->types[view->n_types++] = sides[0].types[t];
        if (!found && (wanted.n == 0 || hearth_str_eq(wanted, sides[0].types[t]))) {
            found = true;
            ret_types[0] = t;
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
    uint32_t types[2];

    /* Decode both profiles. */
    HEARTH_TRY(choose_max_nodes(call, spec, &max_nodes, err));
    for (int i = 0; i < 2; i++) {
        HEARTH_TRY(load_adhoc(call, ids[i], &sides[i].stored, &sides[i].profile, err));
        HEARTH_TRY(name_adhoc_types(&sides[i].profile, call->arena, &sides[i].types, err));
    }

    /* Build a tree of the same type of each. */
    HEARTH_TRY(choose_common_type(call, sides, spec->profile_type, view, types, err));
    for (int i = 0; i < 2; i++) {
        HEARTH_TRY(build_adhoc_tree(&sides[i].profile, types[i], &sides[i].tree, err));
    }

    /* Fill the view. */
    view->type = sides[0].types[types[0]];
    view->sample_type = find_string(&sides[0].profile, sides[0].profile.types[types[0]].type);
    view->unit = find_type_unit(&sides[0], types[0]);
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
