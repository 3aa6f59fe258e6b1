/*
 * dict.h -- dictionaries: dense ids for stack traces and for their locations, functions, mappings
 * and strings.
 *
 * There is one dictionary per (service, day, writer). The writer is append-only: it assigns dense
 * ids without asking the database, and cuts new entries into chunks. A chunk is stored in the same
 * transaction as the first profile that needs it. The reader applies chunks in order and looks up
 * entries by id.
 *
 * Identity: a stack trace is its list of locations, leaf first. A location is its mapping and its
 * lines (function, line). A location without lines is also its address and the memory range of its
 * mapping, because it can be symbolised later by them only. Addresses and ranges of symbolised code
 * are ignored: they differ from process to process. The mapping's has_functions flag is ignored
 * too, because partly stripped binaries also set it. A mapping used by locations of both kinds
 * becomes two mappings of the dictionary, one of them with a zero range.
 *
 * Chunk: see server/model/profile/dict_chunk.c (offset, size, meaning). Chunks are hostile to the
 * reader, like all stored bytes: every index is checked.
 *
 * Limits:  HEARTH_DICT_MAX_FRAMES frames (lines of the locations of all stacks) in one dictionary,
 *          for writer and reader alike. It bounds how many nodes of the name tree a stored byte can
 *          make the reader allocate.
 *
 * Threads: not thread-safe; the owner locks. A reader dictionary is safe for concurrent reads while
 *          no thread applies a chunk.
 */
#ifndef HEARTH_MODEL_DICT_H
#define HEARTH_MODEL_DICT_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/hash.h"
#include "hearth/model/name_tree.h"
#include "hearth/model/profile.h"

/*
 * A location without lines counts as one frame. 67 million frames are 1.7 million stacks of depth
 * 40.
 */
#define HEARTH_DICT_MAX_FRAMES (UINT32_C(1) << 26)

/* ---- writer ---- */

struct hearth_dict_writer;

/*
 * The number of entries of each table: a position in the append-only stream. n_strings starts at 1:
 * string 0 is empty in every dictionary and part of no chunk.
 */
struct hearth_dict_mark {
    uint32_t n_strings, n_mappings, n_functions, n_locations, n_stacks;
};

struct hearth_dict_writer *hearth_dict_writer_new(void); /* NULL if memory was refused */
void hearth_dict_writer_free(struct hearth_dict_writer *writer);

/*
 * The keys of a profile's stacks, computed outside any lock. One key per sample, in sample order; a
 * sample whose stack has a dangling location gets skip[s] = true and no key. Arrays in arena.
 */
struct hearth_stack_keys {
    struct hearth_hash128 *stack; /* [n_samples] */
    uint64_t *location;           /* [n_locations] */
    uint64_t *function;           /* [n_functions] */
    uint64_t *mapping;            /* [n_mappings], without memory range */
    uint64_t *ranged_mapping;     /* [n_mappings], with range (locations without lines) */
    bool *skip;                   /* [n_samples] */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_stack_keys_make(const struct hearth_profile *profile,
                                          struct hearth_arena *arena,
                                          struct hearth_stack_keys *ret_keys,
                                          struct hearth_err *err);

/*
 * Look up the dense ids of all samples: ret_ids[s], HEARTH_NO_INDEX where keys->skip[s]. Unknown
 * stacks are added. Returns OK; NO_MEMORY; RESOURCE_EXHAUSTED if a table of the dictionary would
 * exceed UINT32_MAX - 1 entries or its stacks HEARTH_DICT_MAX_FRAMES; INVALID_ARGUMENT for a string
 * that is not UTF-8 (readers would refuse the chunk). After a failure the writer is usable: some
 * new stacks may have been added, and these are complete.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_writer_resolve(struct hearth_dict_writer *writer,
                                              const struct hearth_profile *profile,
                                              const struct hearth_stack_keys *keys,
                                              uint32_t *ret_ids, struct hearth_err *err);

/* True if some entries are in no committed chunk. */
bool hearth_dict_writer_pending(const struct hearth_dict_writer *writer);
/*
 * Append all entries after the committed mark as one chunk. Pass *ret_upto to _commit after the
 * transaction. After a rollback do nothing: the next cut covers the same entries again.
 */
void hearth_dict_writer_cut(const struct hearth_dict_writer *writer, struct hearth_buf *out,
                            struct hearth_dict_mark *ret_upto);
/* The committed mark. Its n_stacks is the first stack id of the next cut (key of the chunk row). */
struct hearth_dict_mark hearth_dict_writer_committed(const struct hearth_dict_writer *writer);
/* Move the committed mark to `upto`, which a cut returned. */
void hearth_dict_writer_commit(struct hearth_dict_writer *writer, struct hearth_dict_mark upto);
/* Memory in use. */
size_t hearth_dict_writer_bytes(const struct hearth_dict_writer *writer);
/* Number of stacks, committed or not. */
uint32_t hearth_dict_writer_stacks(const struct hearth_dict_writer *writer);

/* ---- reader ---- */

/*
 * The entries of all applied chunks, with checked indices. The function of a line may be
 * HEARTH_NO_INDEX (the frame then has an empty name).
 */
struct hearth_dict {
    struct hearth_str *strings; /* strings[0] is empty */
    struct hearth_mapping *mappings;
    struct hearth_function *functions;
    struct hearth_line *lines;
    struct hearth_location *locations;
    uint32_t *stack_first; /* n_stacks + 1 */
    uint32_t *stack_locs;
    uint32_t n_strings, n_mappings, n_functions, n_lines, n_locations, n_stacks;
    /*
     * The result of hearth_dict_build_tree: stack_node[s] is the leaf node of stack s in `tree`,
     * for s < n_tree_stacks. Every line of a location is a node (inlined calls have frames of their
     * own); the name of a location without lines is its address, "0x4f0 [libc.so.6]".
     */
    struct hearth_name_tree
        *tree; /* one reference; NULL before the first _build_tree or _use_tree */
    uint32_t *stack_node;
    uint32_t n_tree_stacks;
    struct hearth_dict_impl *impl; /* capacities and owned memory */
};

struct hearth_dict *hearth_dict_new(void); /* NULL if memory was refused */
void hearth_dict_free(struct hearth_dict *dict);
/*
 * Apply the next chunk (uncompressed). CORRUPT for damaged bytes or a chunk that does not start
 * where the dictionary ends; RESOURCE_EXHAUSTED beyond HEARTH_DICT_MAX_FRAMES; NO_MEMORY. After a
 * failure the dictionary is unchanged. Pointers into the arrays may become invalid.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_apply(struct hearth_dict *dict, struct hearth_str chunk,
                                     struct hearth_err *err);
/* Share `tree` with other dictionaries. Call once, before the first _build_tree. */
void hearth_dict_use_tree(struct hearth_dict *dict, struct hearth_name_tree *tree);
/*
 * Find or make the tree nodes of all applied stacks, in the shared tree if there is one, otherwise
 * in a tree of this dictionary's own. From then on the tree owns the texts of the strings. Other
 * dictionaries may do the same in the same tree concurrently. After NO_MEMORY the finished part
 * stays; call again to continue.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_build_tree(struct hearth_dict *dict, struct hearth_err *err);
/*
 * The content keys of all stacks: keys[s], s < n_stacks, as hearth_stack_keys_make makes them, so
 * that equal stacks of several dictionaries have equal keys in one process. They are made by the
 * first call and kept with the dictionary until the next _apply; `scratch` is for the making only.
 * Safe for concurrent callers. Returns OK or NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_stack_keys(const struct hearth_dict *dict,
                                          struct hearth_arena *scratch,
                                          const struct hearth_hash128 **ret_keys,
                                          struct hearth_err *err);
/* Memory in use, without the tree; the keys of stacks count before they are made, too. */
size_t hearth_dict_bytes(const struct hearth_dict *dict);

#endif
