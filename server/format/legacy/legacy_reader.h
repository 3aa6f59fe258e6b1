/*
 * legacy_reader.h -- lines, addresses and stacks of legacy profiles (private to this room).
 *
 *   legacy_profile.c     recognises the format; what all have in common
 *   legacy_types.c       types of values
 *   legacy_heap.c        heap profiles
 *   legacy_contention.c  profiles of contention
 *   legacy_count.c       Go's counts: goroutines, threads, ...
 *   legacy_cpu.c         CPU profiles, which are binary
 *   legacy_stacks.c      stacks: addresses, and the functions that Go writes below them
 *   legacy_maps.c        the table of mappings
 *   legacy_lines.c       lines and numbers
 */
#ifndef HEARTH_FORMAT_LEGACY_READER_H
#define HEARTH_FORMAT_LEGACY_READER_H

#include "hearth/format/legacy_profile.h"
#include "hearth/format/profile_builder.h"

#define LEGACY_MAX_TYPES  4u
#define LEGACY_MAX_LABELS 64u /* of a goroutine */

struct legacy_mapping {
    uint64_t start, limit;
    uint32_t idx; /* in the builder */
};

struct legacy_reader {
    const struct hearth_pprof_limits *limits;
    struct hearth_arena *arena;
    struct hearth_profile_builder *builder;
    struct hearth_legacy_notes *notes;

    /* Text: the lines before the mappings. */
    struct hearth_str text;
    size_t at;
    uint64_t line_no; /* of the line read last, from 1 */

    struct legacy_mapping *mappings; /* sorted by start */
    size_t n_mappings, cap_mappings;

    /* The sample that is being read. */
    bool is_open;
    int64_t values[LEGACY_MAX_TYPES];
    uint32_t *stack; /* locations of its addresses, then those of its functions; leaf first */
    size_t n_addresses, n_functions, cap_stack;
    bool has_names; /* one of the functions has a name */
    struct hearth_sample_label labels[LEGACY_MAX_LABELS];
    uint32_t n_labels;
};

/* ---- lines ---- */

/* The next line, without blanks around it; false at the end. */
bool hearth_legacy_line(struct legacy_reader *r, struct hearth_str *ret);
/* True for a line without a sample: empty, or a comment. */
bool hearth_legacy_is_comment(struct hearth_str line);
/* Removes a prefix and the blanks after it. */
bool hearth_legacy_take(struct hearth_str *line, const char *prefix);
/* Removes a decimal number, with a sign if it is negative, and the blanks around it. */
bool hearth_legacy_take_i64(struct hearth_str *line, int64_t *ret);
/* Removes a hexadecimal number, with or without 0x, and the blanks around it. */
bool hearth_legacy_take_hex(struct hearth_str *line, uint64_t *ret);
/* INVALID_ARGUMENT, with the number of the line and its text. */
enum hearth_status hearth_legacy_fail_line(const struct legacy_reader *r, struct hearth_str line,
                                           const char *what, struct hearth_err *err);

/* ---- mappings ---- */

/* Reads lines of a table of mappings up to the end of the text. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_read_maps(struct legacy_reader *r, struct hearth_str table,
                                           struct hearth_err *err);
/* The builder's mapping of an address, or HEARTH_NO_INDEX. */
uint32_t hearth_legacy_find_mapping(const struct legacy_reader *r, uint64_t address);

/* ---- stacks ---- */

/* Adds an address as the next caller. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_add_address(struct legacy_reader *r, uint64_t address,
                                             struct hearth_err *err);
/* Adds the calls before addresses of return, "0x1 0x2", up to the end of the line. */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_add_addresses(struct legacy_reader *r, struct hearth_str rest,
                                               struct hearth_err *err);
/* Reads a comment below a sample: a function of its stack, its labels, or neither. */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_read_comment(struct legacy_reader *r, struct hearth_str line,
                                              struct hearth_err *err);
/*
 * Adds the open sample to the builder, if there is one. A reader of a format calls it, sets the
 * values of the next sample and is_open, and adds its addresses.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_close_sample(struct legacy_reader *r, struct hearth_err *err);

/* ---- formats ---- */

/* A pair of texts, such as a sample type. */
struct legacy_type {
    const char *type, *unit;
};

/* Add sample types in this order. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_add_types(struct legacy_reader *r, const struct legacy_type *types,
                                           size_t n, struct hearth_err *err);

/* What a format says of the whole profile. */
struct legacy_head {
    struct legacy_type period_type; /* the texts live as long as the arena */
    int64_t period, duration_ns;
};

/* Read all samples of a text, whose first line is next. */
typedef enum hearth_status legacy_read_fn(struct legacy_reader *r, struct legacy_head *head,
                                          struct hearth_err *err);
legacy_read_fn hearth_legacy_read_heap, hearth_legacy_read_contention, hearth_legacy_read_count;

/* True for a CPU profile of gperftools, of 4 or 8 bytes per word and either byte order. */
bool hearth_legacy_is_cpu(struct hearth_str bytes);
/* Reads the words, then the mappings behind them. */
HEARTH_MUST_CHECK
enum hearth_status hearth_legacy_read_cpu(struct legacy_reader *r, struct hearth_str bytes,
                                          struct legacy_head *head, struct hearth_err *err);

#endif
