/*
 * datadog_event.h -- what an upload of a Datadog client says about its profiles: event.json of
 * version 4, or the plain fields of the form of version 3.
 *
 * Both name tags as "key:value". datadog_tags.def says which tags become labels under another name,
 * and which ones describe only the process or the upload: these are `facts`. Every other tag is a
 * label: characters other than letters, digits and '_' in its name become '_'. The first of several
 * tags with one name counts. The family is the label `language`.
 *
 * Limits:    HEARTH_JSON_PICK_BYTES of JSON, HEARTH_DATADOG_MAX_TAGS tags,
 *            HEARTH_DATADOG_MAX_CUSTOM_KEYS custom keys.
 * Ownership: texts of JSON are copies in the arena; texts of a form borrow from its body.
 * Threads:   pure.
 * Errors:    INVALID_ARGUMENT (not JSON, members of a wrong type, too many tags or keys, text that
 *            is not UTF-8), NO_MEMORY.
 * Source:    uploads of dd-trace-{java,js,py,go} and libdatadog: docs/reference/datadog.md.
 */
#ifndef HEARTH_FORMAT_DATADOG_EVENT_H
#define HEARTH_FORMAT_DATADOG_EVENT_H

#include "hearth/format/multipart.h"
#include "hearth/model/labels.h"

#define HEARTH_DATADOG_MAX_TAGS        1000u
#define HEARTH_DATADOG_MAX_CUSTOM_KEYS 100u

struct hearth_datadog_event {
    struct hearth_str start, end; /* RFC 3339, not checked; empty: not sent */
    struct hearth_str family;     /* "go", "python", "java", ...; empty: not sent */
    struct hearth_label *labels;  /* in the order of the tags, with distinct names */
    size_t n_labels;
    struct hearth_label *facts; /* tags that are no labels, in their order; may be given twice */
    size_t n_facts;
    struct hearth_str *custom_keys; /* sample labels that the program itself has set */
    size_t n_custom_keys;
    uint64_t n_dropped_tags; /* without a colon, a name or a value; repeated; private (__) */
};

/* Reads event.json. A missing member is empty. */
HEARTH_MUST_CHECK
enum hearth_status hearth_datadog_event_read(struct hearth_str json, struct hearth_arena *arena,
                                             struct hearth_datadog_event *ret,
                                             struct hearth_err *err);

/* Reads the fields recording-start (or start), recording-end (or end), family (or runtime, or
 * language), and tags[] (each one tag or several with commas). */
HEARTH_MUST_CHECK
enum hearth_status hearth_datadog_event_read_form(const struct hearth_multipart *form,
                                                  struct hearth_arena *arena,
                                                  struct hearth_datadog_event *ret,
                                                  struct hearth_err *err);

#endif
