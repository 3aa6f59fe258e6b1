/*
 * legacy_maps.c -- tables of mappings, as in /proc/PID/maps:
 *
 *     00400000-00fcb000 r-xp 00000000 08:01 1234  /usr/bin/program
 *     7f47a5433000-7f47a5608000: /lib/libc.so.6 (@1000) build-id
 */
#include "legacy/legacy_reader.h"

#include <stdlib.h>

#define PERMISSIONS  "-rwxps"
#define MAX_MAPPINGS 65536u /* Linux allows a process 65,530 */

/* The next word, which is removed with the blanks after it. */
static struct hearth_str take_word(struct hearth_str *line)
{
    size_t n = 0;

    while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t') {
        n++;
    }

    struct hearth_str word = {line->p, n};
    *line = hearth_str_trim(hearth_str_n(line->p + n, line->n - n));

    return word;
}

static bool is_permissions(struct hearth_str word)
{
    for (size_t i = 0; i < word.n; i++) {
        if (strchr(PERMISSIONS, word.p[i]) == NULL || word.p[i] == '\0') {
            return false;
        }
    }

    return word.n >= 3;
}

/* What a line says; texts borrow from it. */
struct map_line {
    uint64_t start, limit, offset;
    bool is_code;
    struct hearth_str path, build_id;
};

/* Offset, device, inode and path, or path, offset and build id. */
static void read_map_rest(struct hearth_str rest, struct map_line *map)
{
    struct hearth_str copy = rest;
    uint64_t offset;

    /* /proc writes the offset first; it is followed by the device, "08:01", and the inode. */
    if (hearth_legacy_take_hex(&copy, &offset)) {
        struct hearth_str device = take_word(&copy);
        if (hearth_str_find(device, ':', 0) < device.n) {
            (void)take_word(&copy);
            map->offset = offset;
            map->path = copy;
            return;
        }
    }

    map->path = take_word(&rest);
    if (hearth_legacy_take(&rest, "(@") && hearth_legacy_take_hex(&rest, &map->offset)) {
        (void)hearth_legacy_take(&rest, ")");
    }
    map->build_id = take_word(&rest);
}

static bool read_map_line(struct hearth_str line, struct map_line *map)
{
    *map = (struct map_line){.is_code = true};
    if (!hearth_legacy_take_hex(&line, &map->start) || !hearth_legacy_take(&line, "-") ||
        !hearth_legacy_take_hex(&line, &map->limit) || map->limit < map->start) {
        return false;
    }
    (void)hearth_legacy_take(&line, ":");

    struct hearth_str rest = line, word = take_word(&rest);
    if (is_permissions(word)) {
        map->is_code = memchr(word.p, 'x', word.n) != NULL;
        line = rest;
    }
    read_map_rest(line, map);

    return true;
}

static enum hearth_status add_mapping(struct legacy_reader *r, const struct map_line *map,
                                      struct hearth_err *err)
{
    struct hearth_mapping mapping = {
        .start = map->start, .limit = map->limit, .offset = map->offset};

    if (r->n_mappings == MAX_MAPPINGS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the profile has more than %u mappings",
                           MAX_MAPPINGS);
    }

    mapping.filename = hearth_profile_builder_string(r->builder, map->path);
    mapping.build_id = hearth_profile_builder_string(r->builder, map->build_id);
    if (mapping.filename == HEARTH_NO_INDEX || mapping.build_id == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    uint32_t idx = hearth_profile_builder_mapping(r->builder, &mapping);
    if (idx == HEARTH_NO_INDEX || !hearth_arena_grow(r->arena, &r->mappings, &r->cap_mappings,
                                                     r->n_mappings + 1, sizeof *r->mappings)) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }
    r->mappings[r->n_mappings++] = (struct legacy_mapping){map->start, map->limit, idx};

    return HEARTH_OK;
}

static int compare_mappings(const void *a, const void *b)
{
    const struct legacy_mapping *x = a, *y = b;

    return x->start != y->start ? (x->start < y->start ? -1 : 1)
                                : (x->idx > y->idx) - (x->idx < y->idx);
}

enum hearth_status hearth_legacy_read_maps(struct legacy_reader *r, struct hearth_str table,
                                           struct hearth_err *err)
{
    struct legacy_reader lines = {.text = table};
    struct hearth_str line;

    while (hearth_legacy_line(&lines, &line)) {
        struct map_line map;
        if (hearth_legacy_is_comment(line)) {
            continue;
        }
        if (!read_map_line(line, &map)) {
            r->notes->skipped_lines++;
        } else if (map.is_code) {
            HEARTH_TRY(add_mapping(r, &map, err));
        }
    }

    if (r->n_mappings > 0) {
        qsort(r->mappings, r->n_mappings, sizeof *r->mappings, compare_mappings);
    }

    return HEARTH_OK;
}

uint32_t hearth_legacy_find_mapping(const struct legacy_reader *r, uint64_t address)
{
    size_t low = 0, high = r->n_mappings;

    /* The first mapping that begins after the address. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->mappings[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    return low > 0 && address < r->mappings[low - 1].limit ? r->mappings[low - 1].idx
                                                           : HEARTH_NO_INDEX;
}
