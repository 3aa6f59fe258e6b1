/*
 * otlp_scan.h -- the state of one decoding, shared by the files of the OTLP decoder.
 *
 *   otlp_decode.c      the request: resources and scopes
 *   otlp_errors.c      what is wrong with an export, and where
 *   otlp_profile.c     one profile: its fields, type, name, and parts
 *   otlp_layout.c      which release of the protocol wrote the message
 *   otlp_dictionary.c  the dictionary as flat tables with checked indices
 *   otlp_frames.c      its mappings, functions and locations
 *   otlp_attributes.c  values, attributes, labels
 *   otlp_samples.c     the samples of a profile, divided by service
 *   otlp_build.c       samples to a hearth_profile with the entries that they use
 */
#ifndef HEARTH_FORMAT_OTLP_SCAN_H
#define HEARTH_FORMAT_OTLP_SCAN_H

#include "hearth/format/otlp_profiles.h"

#include "pprof/pprof_wire.h"

#include <assert.h>

#define OTLP_SERVICE_NAME    "service.name"
#define OTLP_EXECUTABLE_NAME "process.executable.name"

#define OTLP_FIXED64(field) ((uint64_t)(field) << 3 | 1u) /* tag of a fixed64 field */

/* Field numbers of ProfilesDictionary. */
enum otlp_table {
    OTLP_MAPPINGS = 1,
    OTLP_LOCATIONS,
    OTLP_FUNCTIONS,
    OTLP_LINKS,
    OTLP_STRINGS,
    OTLP_ATTRIBUTES,
    OTLP_STACKS,
    OTLP_N_TABLES
};

enum otlp_value_kind {
    OTLP_NOTHING,
    OTLP_TEXT,
    OTLP_NUMBER,
    OTLP_COMPLEX, /* bytes, a map, or an array that has not exactly one scalar */
};

struct otlp_value {
    enum otlp_value_kind kind;
    struct hearth_str text; /* of NUMBER, too: as in JSON */
    int64_t number;         /* of integers; other numbers are TEXT */
};

/* What the attribute of a sample is used for. */
enum otlp_role {
    OTLP_LABEL,
    OTLP_SERVICE,    /* names the service, and is not a label */
    OTLP_EXECUTABLE, /* names it if nothing else does */
};

struct otlp_attribute {
    struct hearth_str key;
    struct otlp_value value;
    enum otlp_role role;
};

struct otlp_mapping {
    uint64_t start, limit, offset;
    uint32_t filename; /* string index */
    struct hearth_str build_id;
};

struct otlp_link {
    uint64_t span_id; /* 0: none */
    char trace[32];   /* hexadecimal */
    bool has_trace;
};

/* The dictionary, with valid indices; a table that the message lacks has one empty entry. */
struct otlp_dictionary {
    struct hearth_str *strings;
    struct otlp_attribute *attributes;
    struct otlp_mapping *mappings;
    struct hearth_function *functions;
    struct hearth_line *lines;
    struct hearth_location *locations; /* mapping: HEARTH_NO_INDEX for the empty mapping */
    struct otlp_link *links;
    uint32_t *stack_first; /* n_stacks + 1 */
    uint32_t *stack_locs;
    uint32_t n_strings, n_attributes, n_mappings, n_functions, n_locations, n_links, n_stacks;
};

/* The place of an entry of the dictionary in the profile that is being built. */
struct otlp_local {
    uint32_t built; /* number of that profile; otherwise the entry is not used yet */
    uint32_t idx, key;
};

/* Where the entries of the dictionary are in the profile that is being built. */
struct otlp_workspace {
    struct otlp_local *groups; /* of attributes: the number of the service that they name */
    struct otlp_local *strings, *attributes, *mappings, *functions, *locations, *links;
    uint32_t built; /* number of the profile, from 1 */
    uint32_t read;  /* number of the reading of a profile's samples, from 1 */
};

struct otlp_labels {
    struct hearth_label *v; /* while they are gathered: room for HEARTH_OTLP_MAX_LABELS */
    size_t n;
    bool is_full;                          /* there are more */
    struct hearth_str service, executable; /* service.name, process.executable.name; may be empty */
};

/* A sample, with its attributes in otlp_samples.attributes. */
struct otlp_sample {
    uint32_t stack, link, first_attribute, n_attributes;
    int64_t value;
    uint32_t group; /* number of its service */
};

/* The samples of one profile; the arrays keep their memory for the next one. */
struct otlp_samples {
    struct otlp_sample *v;
    size_t cap_v;
    uint32_t n, n_bad;
    uint32_t *attributes; /* indices of the dictionary */
    size_t n_attributes, cap_attributes;
    uint64_t first_ns, last_ns;  /* of the timestamps; 0: no timestamps */
    struct hearth_str *services; /* [n_groups] */
    size_t n_groups, cap_services;
    uint32_t *order; /* sorted by service: of group g are order[first[g]..first[g + 1]) */
    uint32_t *first; /* n_groups + 1 */
    size_t cap_order, cap_first;
};

/* The fields of a profile, and the labels that it has from around it. */
struct otlp_head {
    struct hearth_str type, unit, period_type, period_unit;
    int64_t period, factor; /* values are multiplied by factor */
    uint64_t time_ns, duration_ns;
    struct hearth_str id;
    uint32_t n_samples;
    struct otlp_labels labels;
};

struct otlp_scan {
    const uint8_t *base;
    const struct hearth_otlp_options *options;
    struct hearth_arena *arena;
    struct hearth_otlp_export *out;
    size_t cap_profiles;
    struct hearth_err *err;
    uint32_t counts[OTLP_N_TABLES]; /* entries of the dictionary, by table */
    struct otlp_dictionary dictionary;
    struct otlp_workspace workspace;
    struct otlp_samples samples;   /* of the current profile */
    struct hearth_label *gathered; /* [HEARTH_OTLP_MAX_LABELS]: labels that are being gathered */
    uint32_t at_resource, at_scope, at_profile; /* position, for messages */
};

/* What is kept of the message of a profile, to build its parts. */
struct hearth_otlp_part {
    struct otlp_head head;
    struct pprof_cursor message;
};

/* What an export keeps. */
struct hearth_otlp_reader {
    struct otlp_scan scan;
    struct hearth_otlp_options options;
    struct hearth_otlp_export out;
    const struct hearth_otlp_part *current; /* whose samples are in scan.samples; NULL: none */
};

/* The elements of a repeated integer field whose tag was just read, packed or not. */
static inline bool otlp_list(struct pprof_cursor *c, uint64_t tag, struct pprof_cursor *ret)
{
    uint64_t ignored;
    if ((tag & 7) == 2) {
        return pprof_payload(c, ret);
    }

    const uint8_t *from = c->p;
    bool ok = pprof_int(c, &ignored);
    *ret = (struct pprof_cursor){from, c->p, NULL};

    return ok;
}

/* True for the tag of a repeated integer field. */
static inline bool otlp_is_list(uint64_t tag, uint32_t field)
{
    return tag == PPROF_LEN(field) || tag == PPROF_INT(field);
}

/* The number of integers in the elements of a packed field. */
static inline size_t otlp_count_integers(struct pprof_cursor list)
{
    size_t n = 0;
    for (const uint8_t *p = list.p; p < list.end; p++) {
        n += *p < 0x80;
    }
    return n;
}

/* Eight bytes at the cursor. */
static inline bool otlp_fixed64(struct pprof_cursor *c, uint64_t *ret)
{
    if (c->end - c->p < 8) {
        c->why = "field reaches beyond the end of its message";
        return false;
    }

    *ret = pprof_load8(c->p);
    c->p += 8;

    return true;
}

static inline struct hearth_str otlp_view(struct pprof_cursor c)
{
    return hearth_str_n((const char *)c.p, (size_t)(c.end - c.p));
}

/* Keeps the reason if it is the first one; prefixed by the place of the profile. */
void hearth_otlp_keep_reason(struct otlp_scan *s, const char *fmt, ...) HEARTH_PRINTF(2, 3);

/* INVALID_ARGUMENT: `what` is damaged at the position of c. */
enum hearth_status hearth_otlp_damaged(const struct otlp_scan *s, const char *what,
                                       struct pprof_cursor c);

/*
 * INVALID_ARGUMENT with the versions that are read if the message has an older layout.
 * RESOURCE_EXHAUSTED for too many scopes or profiles.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_check_layout(const struct otlp_scan *s,
                                                              struct pprof_cursor message);

/* RESOURCE_EXHAUSTED if there are more than HEARTH_OTLP_MAX_PROFILES. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_check_number(const struct otlp_scan *s,
                                                              const char *what, size_t n);

/* Counts the entries of each table in s->counts; checks that all of them are messages or texts. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_count_tables(struct otlp_scan *s,
                                                              struct pprof_cursor payload);
/* Reads s->dictionary from the payload of the message's dictionary. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_read_dictionary(struct otlp_scan *s,
                                                                 struct pprof_cursor payload);

/* INVALID_ARGUMENT: entry i of a table is damaged at the position of c. */
enum hearth_status hearth_otlp_damaged_entry(const struct otlp_scan *s, enum otlp_table table,
                                             uint32_t i, struct pprof_cursor c);
/* INVALID_ARGUMENT unless idx, in entry i of the table `from`, is within the table `to`. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_check_reference(const struct otlp_scan *s,
                                                                 enum otlp_table from, uint32_t i,
                                                                 enum otlp_table to, uint64_t idx);

/* Reads entry i of a table, whose references are read already. */
typedef enum hearth_status otlp_read_entry_fn(struct otlp_scan *s, struct pprof_cursor c,
                                              uint32_t i);
otlp_read_entry_fn hearth_otlp_read_mapping, hearth_otlp_read_function, hearth_otlp_read_location;

/* Reads a KeyValue, or a KeyValueAndUnit if is_indexed. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_read_attribute(struct otlp_scan *s,
                                                                struct pprof_cursor c,
                                                                bool is_indexed,
                                                                struct otlp_attribute *ret);
/* Adds an attribute to the labels, or counts why not. */
void hearth_otlp_add_label(struct otlp_scan *s, struct otlp_labels *labels,
                           const struct otlp_attribute *attribute);
/* Adds all attributes in field 1 of a Resource or field 3 of a scope. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_add_labels(struct otlp_scan *s,
                                                            struct pprof_cursor message,
                                                            uint32_t field,
                                                            struct otlp_labels *labels);

/* Begins to gather labels in s->gathered, in addition to those that there are. */
void hearth_otlp_begin_labels(const struct otlp_scan *s, struct otlp_labels *labels);
/* Keeps gathered labels. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_end_labels(const struct otlp_scan *s,
                                                            struct otlp_labels *labels);

/* Reads a profile with the labels around it; adds its parts to the export, or rejects it. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_read_profile(struct otlp_scan *s,
                                                              const struct otlp_labels *labels,
                                                              struct pprof_cursor c);

/* Reads the samples of a profile, which are in field 2, into s->samples, sorted by service. */
HEARTH_MUST_CHECK enum hearth_status hearth_otlp_read_samples(struct otlp_scan *s,
                                                              const struct otlp_head *head,
                                                              struct pprof_cursor profile);

/* Builds a part of the profile whose samples are in s->samples. */
HEARTH_MUST_CHECK enum hearth_status
hearth_otlp_build_part(struct otlp_scan *s, const struct hearth_otlp_profile *profile,
                       struct hearth_arena *arena, struct hearth_profile *ret,
                       struct hearth_pprof_notes *notes);

#endif
