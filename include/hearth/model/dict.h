/*
 * dict.h -- dictionaries: dense ids for stack traces and everything they are made of.
 *
 * One dictionary per (service, day, writer). The writer side is append-only: it hands out dense ids
 * without asking anybody, and cuts what is new into chunks that are stored in the same transaction
 * as the first profile that needs them. The reader side applies chunks in order and answers by id.
 *
 * Identity of a stack trace is its list of locations, leaf first. A location is its mapping and its
 * lines (function, line). Only a location without lines also has its address and the memory range
 * of its mapping, which are what it can be symbolised by later; those of symbolised code differ from
 * process to process and mean nothing later. What the mapping says of itself (has_functions) is not
 * asked: partly stripped binaries say it, too. A mapping that locations of both kinds use is two
 * mappings of a dictionary, the one with a zero range.
 *
 * Chunk: see server/model/dict_chunk.c (offset, size, meaning). Chunks are hostile to the reader as
 * any stored bytes: every index is checked.
 *
 * Limits:  HEARTH_DICT_MAX_FRAMES frames (lines of the locations of all stacks) in one dictionary, for writer
 *          and reader alike: it bounds what a stored byte can cost the reader in nodes of the name tree.
 *
 * Threads: not thread-safe; the owner locks. A reader dictionary is safe for concurrent reads while
 * nobody applies a chunk.
 */
#ifndef HEARTH_MODEL_DICT_H
#define HEARTH_MODEL_DICT_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/hash.h"
#include "hearth/model/name_tree.h"
#include "hearth/model/profile.h"

/*
 * A location without lines counts as one frame. 67 million: a million and a half stacks of depth
 * 40.
 */
#define HEARTH_DICT_MAX_FRAMES (UINT32_C(1) << 26)

/* ---- writer ---- */

struct hearth_dict_writer;

/*
 * Number of entries of each table: a position in the append-only stream. n_strings starts at 1:
 * string 0 is empty in every dictionary and in no chunk.
 */
struct hearth_dict_mark {
    uint32_t n_strings, n_mappings, n_functions, n_locations, n_stacks;
};

struct hearth_dict_writer *hearth_dict_writer_new(void); /* NULL when memory was refused */
void hearth_dict_writer_free(struct hearth_dict_writer *writer);

/*
 * The keys of a profile's stacks, made outside any lock. One key per sample, in sample order; a
 * sample whose stack has a dangling location gets skip[s] = true. Arrays in arena.
 */
struct hearth_stack_keys {
    struct hearth_hash128 *stack;          /* [n_samples] */
    struct hearth_hash128 *location;       /* [n_locations] */
    struct hearth_hash128 *function;       /* [n_functions] */
    struct hearth_hash128 *mapping;        /* [n_mappings], without memory range */
    struct hearth_hash128 *ranged_mapping; /* [n_mappings], with it: of locations without lines */
    bool *skip;                            /* [n_samples] */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_stack_keys_make(const struct hearth_profile *profile,
                                          struct hearth_arena *arena,
                                          struct hearth_stack_keys *ret_keys,
                                          struct hearth_err *err);

/*
 * Dense ids for all samples: ret_ids[s] (HEARTH_NO_INDEX where keys->skip). New stacks are added.
 * Returns OK; NO_MEMORY; RESOURCE_EXHAUSTED when the dictionary would exceed UINT32_MAX - 1 entries
 * of a table or HEARTH_DICT_MAX_FRAMES; INVALID_ARGUMENT for a string that is not UTF-8 (readers
 * would refuse the chunk). A failure leaves the writer usable: some new stacks may have been added,
 * and they are whole.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_writer_resolve(struct hearth_dict_writer *writer,
                                              const struct hearth_profile *profile,
                                              const struct hearth_stack_keys *keys,
                                              uint32_t *ret_ids, struct hearth_err *err);

/* True when there is something that no committed chunk holds. */
bool hearth_dict_writer_pending(const struct hearth_dict_writer *writer);
/*
 * Append everything from the committed mark to now as one chunk. *ret_upto is to be given to
 * _commit after the transaction; on rollback nothing needs undoing: the next cut covers the same
 * entries again.
 */
void hearth_dict_writer_cut(const struct hearth_dict_writer *writer, struct hearth_buf *out,
                            struct hearth_dict_mark *ret_upto);
/* The first stack id a cut made now would hold (key of the chunk row). */
struct hearth_dict_mark hearth_dict_writer_committed(const struct hearth_dict_writer *writer);
void hearth_dict_writer_commit(struct hearth_dict_writer *writer, struct hearth_dict_mark upto);
size_t hearth_dict_writer_bytes(const struct hearth_dict_writer *writer);
uint32_t hearth_dict_writer_stacks(const struct hearth_dict_writer *writer);

/* ---- reader ---- */

/*
 * The arrays as the chunks gave them, with checked indices. A line's function may be
 * HEARTH_NO_INDEX (its frame's name is empty).
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
     * What hearth_dict_build_tree made: stack_node[s] is the leaf node of stack s, s <
     * n_tree_stacks, in `tree`. Every line of a location is a node (inlined calls are frames of
     * their own); a location without lines is named by its address, "0x4f0 [libc.so.6]".
     */
    struct hearth_name_tree *tree; /* a reference; NULL before */
    uint32_t *stack_node;
    uint32_t n_tree_stacks;
    struct hearth_dict_impl *impl; /* capacities, owned memory */
};

struct hearth_dict *hearth_dict_new(void);
void hearth_dict_free(struct hearth_dict *dict);
/*
 * Apply the next chunk (uncompressed). CORRUPT for damaged bytes or a chunk that does not start
 * where the dictionary ends, RESOURCE_EXHAUSTED beyond the limits above, NO_MEMORY: the dictionary
 * is unchanged then. Pointers into the arrays may move.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_apply(struct hearth_dict *dict, struct hearth_str chunk,
                                     struct hearth_err *err);
/* Share this tree with other dictionaries; before the first _build_tree, once. */
void hearth_dict_use_tree(struct hearth_dict *dict, struct hearth_name_tree *tree);
/*
 * Find or make the nodes of all stacks applied so far, in the shared tree or else in one of its
 * own. The texts of the strings are the tree's from then on. Other dictionaries may do the same in
 * the same tree at the same time. NO_MEMORY leaves it as far as it came; call again.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dict_build_tree(struct hearth_dict *dict, struct hearth_err *err);
/* Without the tree. */
size_t hearth_dict_bytes(const struct hearth_dict *dict);

#endif
