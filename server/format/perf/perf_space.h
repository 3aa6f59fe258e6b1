/*
 * perf_space.h -- threads, processes and their files at one time of a recording (private to the
 * reader of perf.data). Records are applied in the order of their times.
 *
 * Ownership: arrays live in the arena; texts borrow from the recording.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_PERF_SPACE_H
#define HEARTH_FORMAT_PERF_SPACE_H

#include "perf/perf_file.h"
#include "perf/perf_maps.h"

/* A file, or a region with a name such as "[vdso]". */
struct perf_object {
    struct hearth_str path, build_id; /* build_id: hexadecimal, may be empty */
    bool is_searched;
    const struct hearth_elf_symbols *symbols; /* after the search; NULL: not given */
};

/* A range of an object, in terms of the object: equal for all processes that map it. */
struct perf_place {
    uint32_t object;
    uint64_t start, limit, offset;
};

struct perf_process {
    struct perf_maps maps;
};

/* A map that is not applied yet. */
struct perf_new_map {
    uint32_t process; /* index */
    uint32_t order;   /* among those that wait */
    struct perf_map map;
};

struct perf_thread {
    struct hearth_str comm; /* empty: not known */
};

struct perf_space {
    struct hearth_arena *arena;
    const struct perf_file *file;
    const struct hearth_perf_options *options;
    struct perf_map_pool pool;
    struct perf_new_map *waiting; /* NULL at first */
    uint32_t n_waiting;
    struct perf_process *processes;
    struct perf_thread *threads;
    struct perf_object *objects;
    struct perf_place *places;
    size_t n_processes, cap_processes, n_threads, cap_threads;
    size_t n_objects, cap_objects, n_places, cap_places;
    struct perf_index of_pid, of_tid, of_object, of_place, of_path; /* of_path: build ids */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_perf_space_init(struct perf_space *space, const struct perf_file *file,
                                          const struct hearth_perf_options *options,
                                          struct hearth_arena *arena, struct hearth_err *err);
void hearth_perf_space_release(struct perf_space *space);

/*
 * Applies a record of type PERF_MMAP, PERF_MMAP2, PERF_COMM or PERF_FORK. Maps may wait
 * for more of them, because many are added faster in the order of their addresses.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_space_apply(struct perf_space *space,
                                           const struct perf_record *record,
                                           struct hearth_err *err);

/* Applies the maps that wait; call it before an address is searched for. */
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_space_settle(struct perf_space *space, struct hearth_err *err);

/* The symbols of an object, searched for at the first call; NULL: none. */
const struct hearth_elf_symbols *hearth_perf_space_symbols(struct perf_space *space,
                                                           uint32_t object);

/* The command name of a thread; empty if it is not known. */
struct hearth_str hearth_perf_space_comm(const struct perf_space *space, uint32_t pid,
                                         uint32_t tid);

/* Modes of a processor, as in the misc field of samples. */
enum perf_cpu_mode {
    PERF_MODE_UNKNOWN,
    PERF_MODE_KERNEL,
    PERF_MODE_USER,
    PERF_MODE_HYPERVISOR,
    PERF_MODE_GUEST_KERNEL,
    PERF_MODE_GUEST_USER,
};

/*
 * The place of an address and its address there. PERF_NO_PLACE: nothing is mapped there, and
 * *ret_address is the address itself. False: no memory.
 */
HEARTH_MUST_CHECK
bool hearth_perf_space_find(struct perf_space *space, enum perf_cpu_mode mode, uint32_t pid,
                            uint64_t address, uint32_t *ret_place, uint64_t *ret_address);

#endif
