/*
 * dict_writer.c -- the append-only side of a dictionary: keys to dense ids, new entries to chunk
 * bytes.
 *
 * A known stack costs one look-up by its key; its locations are not read. For a new stack, its
 * locations, their functions, mappings and strings are interned depth first, so that every entry
 * refers to older ones. Entries are encoded when they are added, into one buffer per table: cutting
 * a chunk is five copies, and committing it removes the front of the buffers.
 *
 * An entry is added in two steps: first all that can fail (room for its bytes, a slot in the map),
 * then all that cannot. So a refused allocation leaves only complete entries.
 */
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"

#include "profile/dict_chunk.h"

#include <assert.h>

#define LOOK_AHEAD 12 /* the slot of a stack is fetched so many stacks before its look-up */

struct hearth_dict_writer *hearth_dict_writer_new(void)
{
    struct hearth_dict_writer *writer = hearth_mem_zalloc(sizeof *writer);

    if (writer == NULL) {
        return NULL;
    }

    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        hearth_idmap_init(&writer->sections[t].ids);
    }

    writer->sections[HEARTH_DICT_STRINGS].n_committed = 1; /* the empty string */

    return writer;
}

void hearth_dict_writer_free(struct hearth_dict_writer *writer)
{
    if (writer == NULL) {
        return;
    }

    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        hearth_idmap_release(&writer->sections[t].ids);
        hearth_mem_free(writer->sections[t].bytes);
        hearth_mem_free(writer->sections[t].ends);
    }

    hearth_mem_free(writer);
}

static uint32_t count_entries(const struct hearth_dict_section *section)
{
    return section->n_committed + section->n_pending;
}

/* Make room for one more entry of at most max_bytes. */
static enum hearth_status reserve_entry(struct hearth_dict_section *section, size_t max_bytes,
                                        struct hearth_err *err)
{
    if (count_entries(section) >= UINT32_MAX - 1) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "dictionary is full: a table has %u entries",
                           (unsigned)count_entries(section));
    }

    size_t want;
    if (__builtin_add_overflow(section->n_bytes, max_bytes, &want) ||
        !hearth_mem_grow(&section->bytes, &section->cap_bytes, want, 1) ||
        !hearth_mem_grow(&section->ends, &section->cap_ends, (size_t)section->n_pending + 1,
                         sizeof section->ends[0])) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a new dictionary entry");
    }

    return HEARTH_OK;
}

/*
 * Assign the next id to the entry whose n_bytes follow the end of the (reserved) buffer. Its key
 * must be absent.
 */
static enum hearth_status publish_entry(struct hearth_dict_section *section,
                                        struct hearth_hash128 key, size_t n_bytes, uint32_t *ret_id,
                                        struct hearth_err *err)
{
    assert(section->n_bytes + n_bytes <= section->cap_bytes);

    bool inserted;
    uint32_t id = hearth_idmap_intern(&section->ids, key, count_entries(section), &inserted);

    if (id == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the dictionary's map");
    }

    HEARTH_ASSERT(inserted);
    section->n_bytes += n_bytes;
    section->ends[section->n_pending++] = section->n_bytes;
    *ret_id = id;

    return HEARTH_OK;
}

/* The arguments of hearth_dict_writer_resolve. */
struct resolver {
    struct hearth_dict_writer *writer;
    const struct hearth_profile *profile;
    const struct hearth_stack_keys *keys;
};

static enum hearth_status intern_dict_string(struct resolver *r, uint32_t index, uint32_t *ret_id,
                                             struct hearth_err *err)
{
    struct hearth_dict_section *section = &r->writer->sections[HEARTH_DICT_STRINGS];
    struct hearth_str s = r->profile->strings[index];

    assert(index < r->profile->n_strings);

    if (s.n == 0) {
        *ret_id = 0;
        return HEARTH_OK;
    }

    struct hearth_hash128 key = hearth_hash128(s.p, s.n, hearth_hash_process_seed());
    uint32_t id = hearth_idmap_find(&section->ids, key);
    if (id != HEARTH_IDMAP_NONE) {
        *ret_id = id;
        return HEARTH_OK;
    }

    if (!hearth_str_utf8_valid(s)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "symbol \"" HEARTH_STR_FMT "\" is not UTF-8", HEARTH_STR_ARG(s));
    }

    HEARTH_TRY(reserve_entry(section, s.n + 10, err));
    uint8_t *at = section->bytes + section->n_bytes;
    size_t n = hearth_varint_write(at, s.n);
    memcpy(at + n, s.p, s.n);

    return publish_entry(section, key, n + s.n, ret_id, err);
}

/* with_range: for a location without lines (decision 0007). */
static enum hearth_status intern_mapping(struct resolver *r, uint32_t index, bool with_range,
                                         uint32_t *ret_id, struct hearth_err *err)
{
    if (index == HEARTH_NO_INDEX) {
        *ret_id = HEARTH_NO_INDEX;
        return HEARTH_OK;
    }

    assert(index < r->profile->n_mappings);

    struct hearth_dict_section *section = &r->writer->sections[HEARTH_DICT_MAPPINGS];
    struct hearth_hash128 key = {
        with_range ? r->keys->ranged_mapping[index] : r->keys->mapping[index], 0};
    uint32_t id = hearth_idmap_find(&section->ids, key);
    if (id != HEARTH_IDMAP_NONE) {
        *ret_id = id;
        return HEARTH_OK;
    }

    struct hearth_mapping mapping = r->profile->mappings[index];
    if (!with_range) {
        mapping.start = mapping.limit = mapping.offset = 0;
    }

    /* Add the mapping after the strings that it refers to. */
    HEARTH_TRY(intern_dict_string(r, mapping.filename, &mapping.filename, err));
    HEARTH_TRY(intern_dict_string(r, mapping.build_id, &mapping.build_id, err));
    HEARTH_TRY(reserve_entry(section, HEARTH_DICT_MAPPING_MAX, err));
    size_t n = hearth_dict_put_mapping(section->bytes + section->n_bytes, &mapping);

    return publish_entry(section, key, n, ret_id, err);
}

static enum hearth_status intern_function(struct resolver *r, uint32_t index, uint32_t *ret_id,
                                          struct hearth_err *err)
{
    if (index == HEARTH_NO_INDEX) {
        *ret_id = HEARTH_NO_INDEX;
        return HEARTH_OK;
    }

    assert(index < r->profile->n_functions);

    struct hearth_dict_section *section = &r->writer->sections[HEARTH_DICT_FUNCTIONS];
    struct hearth_hash128 key = {r->keys->function[index], 0};
    uint32_t id = hearth_idmap_find(&section->ids, key);
    if (id != HEARTH_IDMAP_NONE) {
        *ret_id = id;
        return HEARTH_OK;
    }

    /* Add the function after the strings that it refers to. */
    struct hearth_function function = r->profile->functions[index];
    HEARTH_TRY(intern_dict_string(r, function.name, &function.name, err));
    HEARTH_TRY(intern_dict_string(r, function.system_name, &function.system_name, err));
    HEARTH_TRY(intern_dict_string(r, function.filename, &function.filename, err));
    HEARTH_TRY(reserve_entry(section, HEARTH_DICT_FUNCTION_MAX, err));
    size_t n = hearth_dict_put_function(section->bytes + section->n_bytes, &function);

    return publish_entry(section, key, n, ret_id, err);
}

static enum hearth_status intern_location(struct resolver *r, uint32_t index, uint32_t *ret_id,
                                          struct hearth_err *err)
{
    struct hearth_dict_section *section = &r->writer->sections[HEARTH_DICT_LOCATIONS];
    struct hearth_hash128 key = {r->keys->location[index], 0};
    uint32_t id = hearth_idmap_find(&section->ids, key);

    if (id != HEARTH_IDMAP_NONE) {
        *ret_id = id;
        return HEARTH_OK;
    }

    /* Add the location after its mapping; each line after its function. */
    struct hearth_location location = r->profile->locations[index];
    HEARTH_TRY(intern_mapping(r, location.mapping, location.n_lines == 0, &location.mapping, err));
    HEARTH_TRY(reserve_entry(
        section, HEARTH_DICT_LOCATION_MAX + location.n_lines * HEARTH_DICT_LINE_MAX, err));

    size_t n = hearth_dict_put_location(section->bytes + section->n_bytes, &location);
    for (uint32_t i = 0; i < location.n_lines; i++) {
        struct hearth_line line = r->profile->lines[location.first_line + i];
        HEARTH_TRY(intern_function(r, line.function, &line.function, err));
        n += hearth_dict_put_line(section->bytes + section->n_bytes + n, &line);
    }

    return publish_entry(section, key, n, ret_id, err);
}

static uint64_t count_frames(const struct hearth_profile *profile, const uint32_t *locs,
                             uint32_t depth)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t n_lines = profile->locations[locs[i]].n_lines;
        n += n_lines == 0 ? 1 : n_lines;
    }
    return n;
}

static enum hearth_status add_stack(struct resolver *r, uint32_t s, uint32_t *ret_id,
                                    struct hearth_err *err)
{
    struct hearth_dict_section *section = &r->writer->sections[HEARTH_DICT_STACKS];
    const uint32_t *locs = r->profile->stack_locs + r->profile->stack_first[s];
    uint32_t depth = r->profile->stack_first[s + 1] - r->profile->stack_first[s];
    uint64_t n_frames = count_frames(r->profile, locs, depth);

    if (n_frames > HEARTH_DICT_MAX_FRAMES - r->writer->n_frames) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "dictionary is full: its stack traces would have more than %u frames",
                           (unsigned)HEARTH_DICT_MAX_FRAMES);
    }

    /* Add the stack, interning each of its locations. */
    HEARTH_TRY(reserve_entry(section, ((size_t)depth + 1) * HEARTH_DICT_INDEX_MAX, err));
    uint8_t *at = section->bytes + section->n_bytes;

    size_t n = hearth_varint_write(at, depth);
    uint32_t previous = 0;
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t location = 0;
        HEARTH_TRY(intern_location(r, locs[i], &location, err));
        n += hearth_varint_write(at + n, hearth_zigzag((int64_t)location - (int64_t)previous));
        previous = location;
    }

    HEARTH_TRY(publish_entry(section, r->keys->stack[s], n, ret_id, err));
    r->writer->n_frames += n_frames;

    return HEARTH_OK;
}

/*
 * Fetch where the search for the key begins. Look-ups alone do not overlap: a key that is not in
 * its first slot is a mispredicted branch, which waits for the memory.
 */
static void prefetch_slot(const struct hearth_idmap *map, struct hearth_hash128 key)
{
    if (map->cap > 0) {
        __builtin_prefetch(&map->slots[(size_t)key.lo & (map->cap - 1)]);
    }
}

enum hearth_status hearth_dict_writer_resolve(struct hearth_dict_writer *writer,
                                              const struct hearth_profile *profile,
                                              const struct hearth_stack_keys *keys,
                                              uint32_t *ret_ids, struct hearth_err *err)
{
    assert(writer != NULL && profile != NULL && keys != NULL);
    assert(ret_ids != NULL || profile->n_samples == 0);

    struct resolver r = {writer, profile, keys};
    const struct hearth_idmap *ids = &writer->sections[HEARTH_DICT_STACKS].ids;

    for (uint32_t s = 0; s < profile->n_samples; s++) {
        uint32_t id = HEARTH_NO_INDEX;
        if (s + LOOK_AHEAD < profile->n_samples) {
            prefetch_slot(ids, keys->stack[s + LOOK_AHEAD]);
        }
        if (!keys->skip[s]) {
            id = hearth_idmap_find(ids, keys->stack[s]);
            if (HEARTH_UNLIKELY(id == HEARTH_IDMAP_NONE)) {
                HEARTH_TRY(add_stack(&r, s, &id, err));
            }
        }
        ret_ids[s] = id;
    }

    return HEARTH_OK;
}

bool hearth_dict_writer_pending(const struct hearth_dict_writer *writer)
{
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        if (writer->sections[t].n_pending > 0) {
            return true;
        }
    }
    return false;
}

static struct hearth_dict_mark make_mark(const uint32_t counts[HEARTH_DICT_N_TABLES])
{
    return (struct hearth_dict_mark){.n_strings = counts[HEARTH_DICT_STRINGS],
                                     .n_mappings = counts[HEARTH_DICT_MAPPINGS],
                                     .n_functions = counts[HEARTH_DICT_FUNCTIONS],
                                     .n_locations = counts[HEARTH_DICT_LOCATIONS],
                                     .n_stacks = counts[HEARTH_DICT_STACKS]};
}

void hearth_dict_writer_cut(const struct hearth_dict_writer *writer, struct hearth_buf *out,
                            struct hearth_dict_mark *ret_upto)
{
    assert(writer != NULL && out != NULL && ret_upto != NULL);

    struct hearth_dict_head head;
    uint32_t upto[HEARTH_DICT_N_TABLES];

    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        const struct hearth_dict_section *section = &writer->sections[t];
        head.start[t] = section->n_committed;
        head.count[t] = section->n_pending;
        head.n_bytes[t] = section->n_bytes;
        upto[t] = count_entries(section);
    }

    uint8_t bytes[HEARTH_DICT_HEAD_MAX];
    hearth_buf_append(out, bytes, hearth_dict_put_head(bytes, &head));
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        hearth_buf_append(out, writer->sections[t].bytes, writer->sections[t].n_bytes);
    }

    *ret_upto = make_mark(upto);
}

struct hearth_dict_mark hearth_dict_writer_committed(const struct hearth_dict_writer *writer)
{
    uint32_t counts[HEARTH_DICT_N_TABLES];
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        counts[t] = writer->sections[t].n_committed;
    }
    return make_mark(counts);
}

/* Remove the pending entries below id `upto`. A mark before the committed one changes nothing. */
static void commit_section(struct hearth_dict_section *section, uint32_t upto)
{
    HEARTH_ASSERT(upto <= count_entries(section));
    if (upto <= section->n_committed) {
        return;
    }

    /* Move the remaining entries to the front. */
    uint32_t n = upto - section->n_committed;
    size_t n_bytes = section->ends[n - 1];
    section->n_committed = upto;
    section->n_pending -= n;
    section->n_bytes -= n_bytes;
    memmove(section->bytes, section->bytes + n_bytes, section->n_bytes);
    for (uint32_t i = 0; i < section->n_pending; i++) {
        section->ends[i] = section->ends[n + i] - n_bytes;
    }
}

void hearth_dict_writer_commit(struct hearth_dict_writer *writer, struct hearth_dict_mark upto)
{
    assert(writer != NULL);

    commit_section(&writer->sections[HEARTH_DICT_STRINGS], upto.n_strings);
    commit_section(&writer->sections[HEARTH_DICT_MAPPINGS], upto.n_mappings);
    commit_section(&writer->sections[HEARTH_DICT_FUNCTIONS], upto.n_functions);
    commit_section(&writer->sections[HEARTH_DICT_LOCATIONS], upto.n_locations);
    commit_section(&writer->sections[HEARTH_DICT_STACKS], upto.n_stacks);
}

size_t hearth_dict_writer_bytes(const struct hearth_dict_writer *writer)
{
    size_t n = sizeof *writer;
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        const struct hearth_dict_section *section = &writer->sections[t];
        n += hearth_idmap_bytes(&section->ids) + section->cap_bytes +
             section->cap_ends * sizeof section->ends[0];
    }
    return n;
}

uint32_t hearth_dict_writer_stacks(const struct hearth_dict_writer *writer)
{
    return count_entries(&writer->sections[HEARTH_DICT_STACKS]);
}
