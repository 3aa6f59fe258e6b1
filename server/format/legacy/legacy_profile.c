/* legacy_profile.c -- recognises the formats, and does what all of them have in common. */
#include "hearth/format/ingest_types.h"

#include "legacy/legacy_reader.h"

#include <assert.h>

static const struct {
    struct hearth_str start;
    legacy_read_fn *read;
} g_texts[] = {
    {{"heap profile:", 13}, hearth_legacy_read_heap},
    {{"--- heapz", 9}, hearth_legacy_read_heap},
    {{"--- heap ", 9}, hearth_legacy_read_heap},
    {{"--- contention", 14}, hearth_legacy_read_contention},
    {{"--- mutex:", 10}, hearth_legacy_read_contention},
};

/* True for "NAME profile: total ": Go's profiles of counts have any name. */
static bool is_count_text(struct hearth_str bytes)
{
    size_t end = hearth_str_find(bytes, ' ', 0);

    return end > 0 && end < 64 && end < hearth_str_find(bytes, '\n', 0) &&
           hearth_str_starts(hearth_str_n(bytes.p + end, bytes.n - end),
                             HEARTH_STR(" profile: total "));
}

static legacy_read_fn *find_text_reader(struct hearth_str bytes)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_texts); i++) {
        if (hearth_str_starts(bytes, g_texts[i].start)) {
            return g_texts[i].read;
        }
    }

    return is_count_text(bytes) ? hearth_legacy_read_count : NULL;
}

bool hearth_legacy_recognise(struct hearth_str bytes)
{
    return find_text_reader(bytes) != NULL || hearth_legacy_is_cpu(bytes);
}

/* Reads the table of mappings, and keeps the lines before it as the text. */
static enum hearth_status split_mappings(struct legacy_reader *r, struct hearth_str bytes,
                                         struct hearth_err *err)
{
    struct hearth_str line;

    r->text = bytes;
    while (hearth_legacy_line(r, &line)) {
        if (hearth_str_starts(line, HEARTH_STR("--- Memory map:")) ||
            hearth_str_starts(line, HEARTH_STR("MAPPED_LIBRARIES:"))) {
            size_t after = r->at < bytes.n ? r->at : bytes.n;
            r->text.n = (size_t)(line.p - bytes.p);
            HEARTH_TRY(
                hearth_legacy_read_maps(r, hearth_str_n(bytes.p + after, bytes.n - after), err));
            break;
        }
    }
    r->at = 0;
    r->line_no = 0;

    return HEARTH_OK;
}

static enum hearth_status read_legacy(struct legacy_reader *r, struct hearth_str bytes,
                                      struct hearth_profile *ret, struct hearth_err *err)
{
    legacy_read_fn *read = find_text_reader(bytes);
    struct legacy_head head = {.period = 0};

    if (read == NULL) {
        HEARTH_TRY(hearth_legacy_read_cpu(r, bytes, &head, err));
    } else {
        HEARTH_TRY(split_mappings(r, bytes, err));
        HEARTH_TRY(read(r, &head, err));
    }

    struct hearth_value_type period_type = {
        .type = hearth_profile_builder_string(r->builder, hearth_str_c(head.period_type.type)),
        .unit = hearth_profile_builder_string(r->builder, hearth_str_c(head.period_type.unit)),
    };
    if (period_type.type == HEARTH_NO_INDEX || period_type.unit == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    HEARTH_TRY(hearth_profile_builder_finish(r->builder, ret, err));
    ret->period_type = period_type;
    ret->period = head.period;
    ret->duration_ns = head.duration_ns;

    return hearth_ingest_cut(r->limits, r->arena, ret, &r->notes->cut, err);
}

enum hearth_status hearth_legacy_decode(struct hearth_str bytes,
                                        const struct hearth_pprof_limits *limits,
                                        struct hearth_arena *arena, struct hearth_profile *ret,
                                        struct hearth_legacy_notes *notes, struct hearth_err *err)
{
    assert(limits != NULL && arena != NULL && ret != NULL && notes != NULL);

    *notes = (struct hearth_legacy_notes){.name = NULL};
    struct legacy_reader *r = hearth_arena_zalloc(arena, sizeof *r);
    if (r == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    r->limits = limits;
    r->arena = arena;
    r->notes = notes;
    r->builder = hearth_profile_builder_new(arena);
    if (r->builder == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    hearth_profile_builder_limit(r->builder, limits->max_frames);
    enum hearth_status status = read_legacy(r, bytes, ret, err);
    hearth_profile_builder_free(r->builder);

    return status;
}
