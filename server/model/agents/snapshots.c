/*
 * snapshots.c -- thread snapshots as stored bytes (contract: hearth/model/snapshot_trees.h).
 *
 *   version 1, table of texts, number of snapshots; then for each snapshot:
 *   its number and time, minus those of the previous one; the number of frames, from the root, that
 *   are the same as in the previous one; the number of other frames, and these.
 *   Then, if any snapshot is cut: the number of cut snapshots, and for each of them how many others
 *   precede it since the last cut one.
 */
#include "hearth/model/snapshot_trees.h"

#include "profile/text_table.h"

#include <assert.h>

#define VERSION            1
#define MIN_SNAPSHOT_BYTES 4

/* Number of frames, from the root, that two snapshots share. */
static uint32_t count_same(const struct hearth_snapshot *a, const struct hearth_snapshot *b)
{
    uint32_t n = 0;
    while (n < a->n_frames && n < b->n_frames && hearth_str_eq(a->frames[n], b->frames[n])) {
        n++;
    }
    return n;
}

/* Append which snapshots are cut; nothing if none is. */
static void put_cut(struct hearth_text_writer *to, const struct hearth_snapshot *snapshots,
                    size_t n)
{
    size_t n_cut = 0, next = 0;

    for (size_t i = 0; i < n; i++) {
        n_cut += snapshots[i].is_cut;
    }

    if (n_cut == 0) {
        return;
    }

    hearth_number_put(to, n_cut);
    for (size_t i = 0; i < n; i++) {
        if (snapshots[i].is_cut) {
            hearth_number_put(to, i - next);
            next = i + 1;
        }
    }
}

void hearth_snapshots_encode(const struct hearth_snapshot *snapshots, size_t n,
                             struct hearth_buf *out)
{
    assert((snapshots != NULL || n == 0) && out != NULL);

    static const struct hearth_snapshot nothing;
    struct hearth_text_writer to;

    hearth_text_writer_init(&to);
    hearth_number_put(&to, n);
    for (size_t i = 0; i < n; i++) {
        const struct hearth_snapshot *it = &snapshots[i];
        const struct hearth_snapshot *before = i == 0 ? &nothing : it - 1;
        uint32_t n_same = count_same(it, before);

        hearth_signed_put(&to, (int64_t)it->sequence - before->sequence);
        hearth_signed_put(&to, (int64_t)((uint64_t)it->at_ms - (uint64_t)before->at_ms));
        hearth_number_put(&to, n_same);
        hearth_number_put(&to, it->n_frames - n_same);
        for (uint32_t k = n_same; k < it->n_frames; k++) {
            hearth_text_put(&to, it->frames[k]);
        }
    }

    put_cut(&to, snapshots, n);
    hearth_text_writer_finish(&to, VERSION, out);
}

/* Read one snapshot. False if the arena refused memory. */
static bool get_snapshot(struct hearth_text_reader *from, const struct hearth_snapshot *before,
                         struct hearth_arena *arena, struct hearth_snapshot *ret)
{
    int64_t step = hearth_signed_get(from);

    /* Number and time; a number must stay within 32 bits. */
    from->failed = from->failed || step < -(int64_t)UINT32_MAX || step > (int64_t)UINT32_MAX;
    int64_t sequence = from->failed ? 0 : before->sequence + step;
    from->failed = from->failed || sequence < INT32_MIN || sequence > INT32_MAX;
    ret->sequence = from->failed ? 0 : (int32_t)sequence;
    ret->at_ms = (int64_t)((uint64_t)before->at_ms + (uint64_t)hearth_signed_get(from));

    /* Frames: first those of the previous snapshot, then the new ones. */
    uint32_t n_same = (uint32_t)hearth_below_get(from, before->n_frames);
    uint32_t n_more = (uint32_t)hearth_count_get(from, 1);
    struct hearth_str *frames = hearth_arena_array(arena, (size_t)n_same + n_more, sizeof *frames);
    if (frames == NULL) {
        return false;
    }

    if (n_same > 0) {
        memcpy(frames, before->frames, n_same * sizeof *frames);
    }

    for (uint32_t k = 0; k < n_more; k++) {
        frames[n_same + k] = hearth_text_get(from);
    }

    ret->frames = frames;
    ret->n_frames = n_same + n_more;

    return true;
}

static void get_cut(struct hearth_text_reader *from, struct hearth_snapshot *snapshots, size_t n)
{
    size_t n_cut = hearth_count_get(from, 1), next = 0;

    from->failed = from->failed || n_cut == 0;
    for (size_t i = 0; i < n_cut && !from->failed; i++) {
        if (next == n) {
            from->failed = true;
            break;
        }

        size_t at = next + hearth_below_get(from, n - next - 1);
        snapshots[at].is_cut = true;
        next = at + 1;
    }
}

enum hearth_status hearth_snapshots_decode(struct hearth_str bytes, uint32_t segment,
                                           struct hearth_arena *arena, struct hearth_snapshot **ret,
                                           size_t *ret_n, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL && ret_n != NULL);

    static const struct hearth_snapshot nothing;
    struct hearth_text_reader from;

    if (!hearth_text_reader_init(&from, bytes, VERSION, arena)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = hearth_count_get(&from, MIN_SNAPSHOT_BYTES);
    struct hearth_snapshot *snapshots = hearth_arena_array(arena, n, sizeof *snapshots);
    if (snapshots == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n && !from.failed; i++) {
        snapshots[i].segment = segment;
        snapshots[i].is_cut = false;
        if (!get_snapshot(&from, i == 0 ? &nothing : &snapshots[i - 1], arena, &snapshots[i])) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    /* The rest of the bytes, if any, tells which snapshots are cut. */
    if (!from.failed && from.at != from.end) {
        get_cut(&from, snapshots, n);
    }

    if (from.failed || from.at != from.end) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "stored snapshots are damaged (%zu bytes)",
                           bytes.n);
    }

    *ret = snapshots;
    *ret_n = n;

    return HEARTH_OK;
}
