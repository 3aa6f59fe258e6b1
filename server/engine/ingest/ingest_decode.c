/*
 * ingest_decode.c -- decodes bytes of any format to a profile: a pprof by itself, or an upload to
 * /ingest with the parameters of its request.
 */
#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"
#include "hearth/format/collapsed.h"
#include "hearth/format/stack_trees.h"
#include "hearth/format/text_profile.h"

#include "ingest/ingest_internal.h"

#include <assert.h>

#define YEAR_1971_NS (INT64_C(365) * HEARTH_NS_PER_DAY)

static const char *const g_discard_names[] = {
#define X(id, name, meaning) name,
#include "hearth/engine/discards.def"
#undef X
};

const char *hearth_discard_name(enum hearth_discard discard)
{
    assert(discard < HEARTH_N_DISCARDS);

    return g_discard_names[discard];
}

void hearth_discards_declare(void)
{
    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        hearth_metric_declare(HEARTH_M_DISCARDED, g_discard_names[i]);
    }
}

void hearth_discards_count(const uint64_t discards[HEARTH_N_DISCARDS])
{
    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        if (discards[i] > 0) {
            hearth_metric_add_label(HEARTH_M_DISCARDED, hearth_str_c(g_discard_names[i]),
                                    (int64_t)discards[i]);
        }
    }
}

uint32_t hearth_ingest_clamp_limit(int64_t limit)
{
    return limit <= 0 ? 0 : limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

struct hearth_pprof_limits hearth_ingest_pprof_limits(const struct hearth_limits *limits)
{
    assert(limits != NULL);

    return (struct hearth_pprof_limits){
        .max_samples = hearth_ingest_clamp_limit(limits->max_samples),
        .max_sample_labels = hearth_ingest_clamp_limit(limits->max_sample_labels),
        .max_types = hearth_ingest_clamp_limit(limits->max_sample_types),
        .max_depth = hearth_ingest_clamp_limit(limits->max_stack_depth),
        .max_string_bytes = hearth_ingest_clamp_limit(limits->max_symbol_bytes),
        .max_entries = hearth_ingest_clamp_limit(limits->max_table_entries),
        .max_frames = hearth_ingest_clamp_limit(limits->max_stack_frames),
        .max_memory =
            (size_t)(limits->max_decode_memory_bytes > 0 ? limits->max_decode_memory_bytes : 0),
    };
}

void hearth_ingest_count_notes(const struct hearth_pprof_notes *notes, uint64_t *discards)
{
    discards[HEARTH_DISCARD_CUT_STACKS] += notes->stacks_cut;
    discards[HEARTH_DISCARD_CUT_FRAMES] += notes->frames_cut;
    discards[HEARTH_DISCARD_CUT_STRINGS] += notes->strings_cut;
    discards[HEARTH_DISCARD_REPAIRED_STRINGS] += notes->strings_repaired;
}

/*
 * If values are numbers of samples, the period is the time between two of them. If the type of a
 * text format has a period, its period type is added to the strings of the profile.
 */
static enum hearth_status set_type_period(const struct hearth_push_hints *hints,
                                          struct hearth_arena *arena, struct hearth_profile *p,
                                          struct hearth_err *err)
{
    const struct hearth_ingest_type *type = hints->type;
    if (type->factor == 0 && hints->sample_rate > 0) {
        p->period = hearth_ingest_factor(type, hints->sample_rate);
    }

    if (type->period_type[0] == '\0') {
        return HEARTH_OK;
    }

    uint32_t n = p->n_strings;
    struct hearth_str *strings = hearth_arena_array(arena, (size_t)n + 2, sizeof *strings);
    if (strings == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* The table of strings grows by two. */
    memcpy(strings, p->strings, n * sizeof *strings);
    strings[n] = hearth_str_c(type->period_type);
    strings[n + 1] = hearth_str_c(type->period_unit);
    p->strings = strings;
    p->n_strings = n + 2;
    p->period_type = (struct hearth_value_type){n, n + 1};

    return HEARTH_OK;
}

/* Decodes a text format, and gives it the type and period of the upload. */
static enum hearth_status decode_text_upload(const struct hearth_push_work *work,
                                             const struct hearth_push_hints *hints,
                                             struct hearth_str bytes, struct hearth_err *err)
{
    const struct hearth_pprof_limits limits = hearth_ingest_pprof_limits(work->limits);
    struct hearth_profile *p = work->profile;
    struct hearth_arena *arena = work->arena;
    struct hearth_str type = hearth_str_c(hints->type->type);
    struct hearth_str unit = hearth_str_c(hints->type->unit);
    struct hearth_pprof_notes notes = {0};
    struct hearth_text_notes text = {0};
    int64_t factor = hearth_ingest_factor(hints->type, hints->sample_rate);
    enum hearth_status status;

    switch (hints->format) {
    case HEARTH_INGEST_LINES:
        status = hearth_lines_decode(bytes, type, unit, arena, p, err);
        break;
    case HEARTH_INGEST_TRIE:
        status = hearth_trie_decode(bytes, type, unit, arena, p, err);
        break;
    case HEARTH_INGEST_TREE:
        status = hearth_tree_decode(bytes, type, unit, arena, p, err);
        break;
    default:
        /* Here values may have fractions, so that they must be multiplied while they are read. */
        status = hearth_text_decode(bytes, type, unit, factor, arena, p, &text, err);
        factor = 1;
        break;
    }

    HEARTH_TRY(status);

    /* The output of perf script itself says what its values and periods are. */
    if (!text.is_perf_script) {
        HEARTH_TRY(hearth_ingest_scale(factor, p, err));
        HEARTH_TRY(set_type_period(hints, arena, p, err));
    }

    HEARTH_TRY(hearth_ingest_cut(&limits, arena, p, &notes, err));
    hearth_ingest_count_notes(&notes, work->discards);

    return HEARTH_OK;
}

/* Decodes an upload; takes the times from the request where the profile has none. */
static enum hearth_status decode_ingest_upload(const struct hearth_push_work *work,
                                               const struct hearth_push_hints *hints,
                                               struct hearth_str bytes, struct hearth_str *ret_name,
                                               struct hearth_err *err)
{
    struct hearth_profile *p = work->profile;

    if (hints->format == HEARTH_INGEST_PPROF) {
        struct hearth_pprof_limits limits = hearth_ingest_pprof_limits(work->limits);
        struct hearth_pprof_notes notes = {0};

        limits.number_functions = hearth_str_eq_c(hints->spy, "dotnetspy");
        HEARTH_TRY(hearth_pprof_decode(bytes, &limits, work->arena, p, &notes, err));
        hearth_ingest_count_notes(&notes, work->discards);
        HEARTH_TRY(hearth_ingest_fix_spy(hints->spy, work->arena, p, err));
        *ret_name = hearth_ingest_pprof_name(p, hints->cells, hints->n_cells);
    } else {
        HEARTH_TRY(decode_text_upload(work, hints, bytes, err));
        *ret_name = hearth_str_c(hints->type->name);
    }

    /* Some agents write milliseconds, which are a time in 1970. */
    if (p->time_ns < YEAR_1971_NS) {
        p->time_ns = hints->from_ns;
    }

    int64_t duration_ns;
    if (p->duration_ns == 0 &&
        !__builtin_sub_overflow(hints->until_ns, hints->from_ns, &duration_ns) && duration_ns > 0) {
        p->duration_ns = duration_ns;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_ingest_decode(const struct hearth_push_work *work,
                                        const struct hearth_push_hints *hints,
                                        struct hearth_str bytes, struct hearth_str *ret_name,
                                        struct hearth_err *err)
{
    assert(work != NULL && ret_name != NULL);

    const struct hearth_pprof_limits limits = hearth_ingest_pprof_limits(work->limits);
    struct hearth_pprof_notes notes = {0};
    enum hearth_status status;

    assert(work->profile != NULL);
    *ret_name = HEARTH_STR("");
    if (hints != NULL) {
        status = decode_ingest_upload(work, hints, bytes, ret_name, err);
    } else {
        status = hearth_pprof_decode(bytes, &limits, work->arena, work->profile, &notes, err);
        if (status == HEARTH_OK) {
            hearth_ingest_count_notes(&notes, work->discards);
        }
    }

    /* All other failures are faults of the bytes. */
    return status == HEARTH_OK || status == HEARTH_NO_MEMORY ? status : HEARTH_INVALID_ARGUMENT;
}
