/* perf_space.c -- applies records that start threads, name them and map files. */
#include "perf/perf_space.h"

#include "hearth/base/limit.h"
#include "hearth/format/elf_symbols.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_WAITING 65536u /* maps: 2.5 MiB */

/* Stands for the kernel among process ids. */
#define KERNEL_PID UINT32_MAX

static struct hearth_hash128 key_text(struct hearth_str a, struct hearth_str b)
{
    uint64_t seed = hearth_hash_process_seed();

    return perf_key(hearth_hash64(a.p, a.n, seed), hearth_hash64(b.p, b.n, seed));
}

/*
 * The element with a key, which is appended as zeroes if it is new; *ret_is_new may be NULL. NULL:
 * no memory.
 */
static void *intern_element(struct perf_space *space, struct perf_index *index,
                            struct hearth_hash128 key, void *array, size_t *n, size_t *cap,
                            size_t size, bool *ret_is_new)
{
    char *elements;
    uint32_t max = space->options->limits.max_entries;

    if (max > 0 &&
        space->n_processes + space->n_threads + space->n_objects + (size_t)space->pool.n_nodes >=
            max) {
        space->pool.is_full = true;
        return NULL;
    }
    if (!hearth_arena_regrow(space->arena, array, cap, *n + 1, size)) {
        return NULL;
    }

    memcpy(&elements, array, sizeof elements); /* a pointer to any type */
    bool is_new = false;
    uint32_t id = perf_index_intern(index, space->arena, key, (uint32_t)*n, &is_new);
    if (id == HEARTH_IDMAP_NONE) {
        return NULL;
    }

    if (is_new) {
        memset(elements + *n * size, 0, size);
        (*n)++;
    }
    if (ret_is_new != NULL) {
        *ret_is_new = is_new;
    }

    return elements + id * size;
}

static struct perf_process *find_or_add_process(struct perf_space *s, uint32_t pid)
{
    return intern_element(s, &s->of_pid, perf_key(pid, 2), &s->processes, &s->n_processes,
                          &s->cap_processes, sizeof *s->processes, NULL);
}

static struct perf_thread *find_or_add_thread(struct perf_space *s, uint32_t tid)
{
    return intern_element(s, &s->of_tid, perf_key(tid, 3), &s->threads, &s->n_threads,
                          &s->cap_threads, sizeof *s->threads, NULL);
}

/* ---- objects ---- */

static struct hearth_str find_last_part(struct hearth_str path)
{
    const char *slash = path.n == 0 ? NULL : memrchr(path.p, '/', path.n);

    return slash == NULL ? path : hearth_str_n(slash + 1, path.n - (size_t)(slash + 1 - path.p));
}

/* The symbols that were given for an object: those of its build id, otherwise of its path. */
static const struct hearth_elf_symbols *search_symbols(const struct perf_space *space,
                                                       const struct perf_object *object)
{
    const struct hearth_perf_options *options = space->options;
    const struct hearth_elf_symbols *of_path = NULL;

    for (size_t i = 0; i < options->n_objects; i++) {
        const struct hearth_perf_object *given = &options->objects[i];
        struct hearth_str id = hearth_elf_symbols_build_id(given->symbols);
        if (id.n > 0 && object->build_id.n > 0) {
            if (hearth_str_eq(id, object->build_id)) {
                return given->symbols;
            }
        } else if (hearth_str_eq(find_last_part(given->path), find_last_part(object->path))) {
            of_path = given->symbols;
        }
    }

    if (of_path != NULL || options->find_symbols == NULL) {
        return of_path;
    }

    /* A program may have been built again since it was recorded. */
    of_path = options->find_symbols(options->symbols_context, object->path);
    bool is_other = of_path != NULL && object->build_id.n > 0 &&
                    !hearth_str_eq(hearth_elf_symbols_build_id(of_path), object->build_id);

    return is_other ? NULL : of_path;
}

const struct hearth_elf_symbols *hearth_perf_space_symbols(struct perf_space *space,
                                                           uint32_t object_idx)
{
    struct perf_object *object = &space->objects[object_idx];

    assert(object_idx < space->n_objects);
    if (!object->is_searched) {
        object->symbols = search_symbols(space, object);
        object->is_searched = true;
    }

    return object->symbols;
}

/* The path of a map: "[kernel.kallsyms]_text" names the symbol at its start. */
static struct hearth_str cut_kernel_path(struct hearth_str path)
{
    const char *end = path.n > 0 && path.p[0] == '[' ? memrchr(path.p, ']', path.n) : NULL;

    return end == NULL ? path : hearth_str_n(path.p, (size_t)(end + 1 - path.p));
}

/* The index of an object; PERF_NO_PLACE: no memory. build_id: of its map; may be empty. */
static uint32_t find_or_add_object(struct perf_space *s, struct hearth_str path,
                                   struct hearth_str build_id)
{
    bool is_new;
    struct perf_object *object =
        intern_element(s, &s->of_object, key_text(path, build_id), &s->objects, &s->n_objects,
                       &s->cap_objects, sizeof *s->objects, &is_new);
    if (object == NULL) {
        return PERF_NO_PLACE;
    }

    if (is_new) {
        uint32_t i = perf_index_find(&s->of_path, key_text(path, HEARTH_STR("")));
        object->path = path;
        object->build_id = HEARTH_STR("");
        if (build_id.n > 0) {
            object->build_id = perf_hex(build_id, s->arena);
        } else if (i != HEARTH_IDMAP_NONE) {
            const struct perf_build_id *known = &s->file->build_ids[i];
            object->build_id =
                perf_hex(hearth_str_n((const char *)known->bytes, known->n), s->arena);
        }
        if (object->build_id.p == NULL) {
            return PERF_NO_PLACE;
        }
    }

    return (uint32_t)(object - s->objects);
}

/* ---- records ---- */

/* The fields of a map of a file. */
struct map_fields {
    uint32_t pid; /* KERNEL_PID for kernel and modules */
    struct perf_map map;
    struct hearth_str path, build_id;
};

/* False if the record is truncated. */
static bool read_map_fields(const struct perf_record *record, struct map_fields *ret)
{
    struct perf_cursor c = perf_cursor_at(record->body);
    struct map_fields fields = {.pid = perf_u32(&c), .build_id = {"", 0}};

    perf_skip(&c, 4);
    fields.map = (struct perf_map){.start = perf_u64(&c), .place = PERF_NO_PLACE};
    if (__builtin_add_overflow(fields.map.start, perf_u64(&c), &fields.map.end)) {
        fields.map.end = UINT64_MAX;
    }
    fields.map.offset = perf_u64(&c);
    if (record->type == PERF_MMAP2) {
        uint32_t n_id = perf_u32(&c) & 0xff;
        struct hearth_str id = perf_bytes(&c, PERF_BUILD_ID_BYTES);
        if ((record->misc & PERF_MISC_MMAP_BUILD_ID) != 0 && n_id <= PERF_BUILD_ID_BYTES) {
            fields.build_id = hearth_str_n(id.p, n_id);
        }
        perf_skip(&c, 8); /* protection and flags */
    }

    /* The text is shorter than the rest, which ends with the fields of sample_id_all. */
    fields.path = perf_text(&c, perf_left(&c));
    *ret = fields;

    return !c.failed;
}

/* ---- maps that wait ---- */

/* By process and address. */
static int compare_places_of_maps(const void *a, const void *b)
{
    const struct perf_new_map *x = a, *y = b;

    if (x->process != y->process) {
        return x->process < y->process ? -1 : 1;
    }

    return x->map.start < y->map.start ? -1 : x->map.start > y->map.start;
}

static int compare_orders_of_maps(const void *a, const void *b)
{
    const struct perf_new_map *x = a, *y = b;

    return x->order < y->order ? -1 : x->order > y->order;
}

/* The number of maps at the beginning of v[0..n), sorted by place, that overlap each other. */
static uint32_t count_overlapping(const struct perf_new_map *v, uint32_t n)
{
    uint64_t end = v[0].map.end;
    uint32_t k = 1;

    while (k < n && v[k].process == v[0].process && v[k].map.start < end) {
        end = v[k].map.end > end ? v[k].map.end : end;
        k++;
    }

    return k;
}

/* Maps that do not overlap are added by address: their places in the tree are then near. */
static enum hearth_status apply_waiting(struct perf_space *space, struct hearth_err *err)
{
    struct perf_new_map *v = space->waiting;
    uint32_t n = space->n_waiting, n_group;

    space->n_waiting = 0;
    if (n > 1) {
        qsort(v, n, sizeof *v, compare_places_of_maps);
    }

    for (uint32_t from = 0; from < n; from += n_group) {
        n_group = count_overlapping(v + from, n - from);
        if (n_group > 1) {
            qsort(v + from, n_group, sizeof *v, compare_orders_of_maps);
        }
        for (uint32_t i = from; i < from + n_group; i++) {
            struct perf_maps *maps = &space->processes[v[i].process].maps;
            if (!hearth_perf_maps_add(&space->pool, maps, &v[i].map)) {
                return HEARTH_FAIL_ARENA(err, space->arena);
            }
        }
    }

    return HEARTH_OK;
}

static enum hearth_status add_waiting_map(struct perf_space *space, uint32_t process,
                                          const struct perf_map *map, struct hearth_err *err)
{
    if (space->waiting == NULL) {
        space->waiting = hearth_arena_array(space->arena, MAX_WAITING, sizeof *space->waiting);
        if (space->waiting == NULL) {
            return HEARTH_FAIL_ARENA(err, space->arena);
        }
    }
    if (space->n_waiting == MAX_WAITING) {
        HEARTH_TRY(apply_waiting(space, err));
    }

    space->waiting[space->n_waiting] = (struct perf_new_map){process, space->n_waiting, *map};
    space->n_waiting++;

    return HEARTH_OK;
}

/* ---- records ---- */

static enum hearth_status apply_mmap(struct perf_space *space, const struct perf_record *record,
                                     struct hearth_err *err)
{
    unsigned mode = record->misc & PERF_MISC_CPU_MODE;
    struct map_fields fields;

    if (!read_map_fields(record, &fields)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a map of a file is truncated");
    }
    if (fields.map.start >= fields.map.end) {
        return HEARTH_OK;
    }

    /* Kernel and modules are addressed from their start. */
    if (mode == PERF_MODE_KERNEL || mode == PERF_MODE_GUEST_KERNEL) {
        fields.pid = KERNEL_PID;
        fields.map.offset = 0;
        fields.path = cut_kernel_path(fields.path);
    }

    fields.map.object = find_or_add_object(space, fields.path, fields.build_id);
    struct perf_process *process = find_or_add_process(space, fields.pid);
    if (fields.map.object == PERF_NO_PLACE || process == NULL) {
        return HEARTH_FAIL_ARENA(err, space->arena);
    }

    return add_waiting_map(space, (uint32_t)(process - space->processes), &fields.map, err);
}

/*
 * The new name of a thread, also of one that runs a new program. The old maps are kept until others
 * replace them: samples within exec still have addresses of the old program.
 */
static enum hearth_status apply_comm(struct perf_space *space, const struct perf_record *record,
                                     struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(record->body);
    perf_skip(&c, 4); /* the process */
    uint32_t tid = perf_u32(&c);
    struct hearth_str comm = perf_text(&c, perf_left(&c));

    if (c.failed) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the name of a thread is truncated");
    }

    struct perf_thread *thread = find_or_add_thread(space, tid);
    if (thread == NULL) {
        return HEARTH_FAIL_ARENA(err, space->arena);
    }

    thread->comm = comm;

    return HEARTH_OK;
}

static enum hearth_status apply_fork(struct perf_space *space, const struct perf_record *record,
                                     struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(record->body);
    uint32_t pid = perf_u32(&c), parent_pid = perf_u32(&c);
    uint32_t tid = perf_u32(&c), parent_tid = perf_u32(&c);

    if (c.failed) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the start of a thread is truncated");
    }

    /* The second of two new elements may move the first. */
    struct hearth_str comm = hearth_perf_space_comm(space, parent_pid, parent_tid);
    struct perf_thread *thread = find_or_add_thread(space, tid);
    if (thread == NULL || find_or_add_process(space, parent_pid) == NULL ||
        find_or_add_process(space, pid) == NULL) {
        return HEARTH_FAIL_ARENA(err, space->arena);
    }

    thread->comm = comm;
    if (pid != parent_pid) {
        HEARTH_TRY(apply_waiting(space, err));
        struct perf_process *parent = find_or_add_process(space, parent_pid);
        struct perf_process *child = find_or_add_process(space, pid);
        if (parent == NULL || child == NULL) {
            return HEARTH_FAIL_ARENA(err, space->arena);
        }
        hearth_perf_maps_share(&parent->maps, &child->maps);
    }

    return HEARTH_OK;
}

static enum hearth_status apply_record(struct perf_space *space, const struct perf_record *record,
                                       struct hearth_err *err)
{
    switch (record->type) {
    case PERF_MMAP:
    case PERF_MMAP2:
        return apply_mmap(space, record, err);
    case PERF_COMM:
        return apply_comm(space, record, err);
    default:
        assert(record->type == PERF_FORK);
        return apply_fork(space, record, err);
    }
}

/* Memory that was refused because of the limit is its own error. */
static enum hearth_status judge_refusal(const struct perf_space *space, enum hearth_status status,
                                        struct hearth_err *err)
{
    if (status != HEARTH_NO_MEMORY || !space->pool.is_full) {
        return status;
    }

    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "the recording has more than %u processes, threads, files and maps (with "
                       "changed copies of shared ones)" HEARTH_RAISE_LIMIT("max-table-entries"),
                       space->options->limits.max_entries);
}

enum hearth_status hearth_perf_space_apply(struct perf_space *space,
                                           const struct perf_record *record, struct hearth_err *err)
{
    return judge_refusal(space, apply_record(space, record, err), err);
}

enum hearth_status hearth_perf_space_settle(struct perf_space *space, struct hearth_err *err)
{
    return space->n_waiting == 0 ? HEARTH_OK : judge_refusal(space, apply_waiting(space, err), err);
}

/* ---- look-ups ---- */

struct hearth_str hearth_perf_space_comm(const struct perf_space *space, uint32_t pid, uint32_t tid)
{
    uint32_t i = perf_index_find(&space->of_tid, perf_key(tid, 3));

    /* A thread without a name of its own has that of its process. */
    if (i == HEARTH_IDMAP_NONE || space->threads[i].comm.n == 0) {
        i = perf_index_find(&space->of_tid, perf_key(pid, 3));
    }

    return i == HEARTH_IDMAP_NONE ? hearth_str_n("", 0) : space->threads[i].comm;
}

static uint32_t find_or_add_place(struct perf_space *s, const struct perf_place *place)
{
    const uint64_t words[] = {place->object, place->start, place->limit, place->offset};
    struct hearth_hash128 key = hearth_hash128(words, sizeof words, hearth_hash_process_seed());
    bool is_new;
    struct perf_place *found = intern_element(s, &s->of_place, key, &s->places, &s->n_places,
                                              &s->cap_places, sizeof *s->places, &is_new);
    if (found == NULL) {
        return PERF_NO_PLACE;
    }

    *found = *place;

    return (uint32_t)(found - s->places);
}

/* The place of an address of the kernel in no map. */
static bool find_named_place(struct perf_space *space, const char *name, uint32_t *ret)
{
    const struct perf_place place = {
        .object = find_or_add_object(space, hearth_str_c(name), HEARTH_STR(""))};

    *ret = place.object == PERF_NO_PLACE ? PERF_NO_PLACE : find_or_add_place(space, &place);

    return *ret != PERF_NO_PLACE;
}

bool hearth_perf_space_find(struct perf_space *space, enum perf_cpu_mode mode, uint32_t pid,
                            uint64_t address, uint32_t *ret_place, uint64_t *ret_address)
{
    bool is_kernel = mode == PERF_MODE_KERNEL || mode == PERF_MODE_GUEST_KERNEL;
    uint32_t i = perf_index_find(&space->of_pid, perf_key(is_kernel ? KERNEL_PID : pid, 2));
    struct perf_map *map = NULL;

    if (i != HEARTH_IDMAP_NONE && mode != PERF_MODE_HYPERVISOR && mode != PERF_MODE_GUEST_USER) {
        map = hearth_perf_maps_find(&space->pool, &space->processes[i].maps, address);
    }

    *ret_place = PERF_NO_PLACE;
    *ret_address = address;
    if (map == NULL) {
        return is_kernel ? find_named_place(space, "[kernel.kallsyms]", ret_place)
               : mode == PERF_MODE_HYPERVISOR ? find_named_place(space, "[hypervisor]", ret_place)
                                              : true;
    }

    /* An equal range of an object is one place, wherever it is mapped. */
    if (map->place == PERF_NO_PLACE) {
        struct perf_place place = {map->object, map->offset, 0, map->offset};
        if (__builtin_add_overflow(map->offset, map->end - map->start, &place.limit)) {
            place.limit = UINT64_MAX;
        }
        map->place = find_or_add_place(space, &place);
    }

    *ret_place = map->place;
    *ret_address = map->offset + (address - map->start);

    return map->place != PERF_NO_PLACE;
}

/* ---- life cycle ---- */

enum hearth_status hearth_perf_space_init(struct perf_space *space, const struct perf_file *file,
                                          const struct hearth_perf_options *options,
                                          struct hearth_arena *arena, struct hearth_err *err)
{
    *space = (struct perf_space){.arena = arena, .file = file, .options = options};
    space->pool.arena = arena;
    space->pool.max_nodes = options->limits.max_entries;

    for (size_t i = 0; i < file->n_build_ids; i++) {
        bool inserted;
        struct hearth_hash128 key = key_text(file->build_ids[i].path, HEARTH_STR(""));
        if (perf_index_intern(&space->of_path, arena, key, (uint32_t)i, &inserted) ==
            HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, space->arena);
        }
    }

    return HEARTH_OK;
}

void hearth_perf_space_release(struct perf_space *space)
{
    perf_index_release(&space->of_pid, space->arena);
    perf_index_release(&space->of_tid, space->arena);
    perf_index_release(&space->of_object, space->arena);
    perf_index_release(&space->of_place, space->arena);
    perf_index_release(&space->of_path, space->arena);
}
