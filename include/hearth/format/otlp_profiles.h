/*
 * otlp_profiles.h -- profiles of OpenTelemetry's protocol: an ExportProfilesServiceRequest as the
 * profiles of a push.
 *
 * The layout of the releases 1.10 and later is read. Its profiles share one dictionary of strings,
 * attributes, mappings, functions, locations, links and stacks; a profile has one sample type.
 * Requests in an older layout, whose fields have other meanings, are recognised by wire types and
 * refused.
 *
 *   series   The service is the sample's attribute service.name, else that of its resource, else
 *            "unknown_service:" and its process.executable.name, else "unknown_service". A profile
 *            whose samples have several services becomes one profile for each. Attributes of the
 *            resource, the scope and the profile are labels under their own names, the first one of
 *            a name wins: texts, numbers, booleans, and arrays of one of these.
 *   type     Samples with a period of CPU time (cpu; itimer or ctimer of async-profiler) or of wall
 *            time become nanoseconds of cpu or wall: counts are multiplied by the period. All other
 *            types stay.
 *   value    the sum of the sample's values; without values, the number of its timestamps.
 *   labels   of a sample: its attributes, and "trace_id" and "span_id" of its link.
 *   time     the profile's; without it, the first timestamp of its samples.
 *   frames   A location without lines keeps mapping, build id and address.
 *
 * Not stored: single timestamps, columns of lines, attributes of locations, the original payload.
 *
 * Threads: decoding is pure; an export is used by one thread.
 * Source:  opentelemetry-proto 1.10 and 1.11, profiles/v1development; the older layouts: 1.3 to
 *          1.9.
 */
#ifndef HEARTH_FORMAT_OTLP_PROFILES_H
#define HEARTH_FORMAT_OTLP_PROFILES_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/format/pprof.h"
#include "hearth/model/labels.h"
#include "hearth/model/profile.h"

/* Attributes of a resource, a scope and a profile together that can become labels. */
#define HEARTH_OTLP_MAX_LABELS 256u

/* Resources, scopes and profiles of an export, each in total; an export with more is refused. */
#define HEARTH_OTLP_MAX_PROFILES 100000u

struct hearth_otlp_options {
    struct hearth_pprof_limits limits; /* max_types is ignored */
    uint32_t max_label_name_bytes;     /* longer names and values make no label; 0: no limit */
    uint32_t max_label_value_bytes;
};

struct hearth_otlp_part;
struct hearth_otlp_reader;

struct hearth_otlp_profile {
    struct hearth_str name;            /* __name__; not empty */
    struct hearth_str service;         /* not empty */
    const struct hearth_label *labels; /* shared by profiles; neither __name__ nor service_name */
    size_t n_labels;
    struct hearth_str id; /* equal for repetitions of the profile; empty: it has no id */
    const struct hearth_otlp_part *part; /* private */
    uint32_t group;                      /* private */
};

struct hearth_otlp_export {
    struct hearth_otlp_profile *profiles; /* with at least one sample each */
    size_t n_profiles;
    size_t n_received;          /* profiles of the message */
    size_t n_rejected;          /* profiles that make no profile, because of an error */
    size_t n_empty;             /* profiles without any sample */
    uint64_t n_bad_samples;     /* samples that are left out, of profiles that are not rejected */
    uint64_t n_long, n_complex; /* attributes that make no label: too long, or not a scalar */
    uint64_t n_reserved;        /* attributes with a name that Hearth uses itself */
    struct hearth_err first;    /* why the first profile or sample was left out */
    struct hearth_pprof_notes notes;   /* of texts */
    struct hearth_otlp_reader *reader; /* private */
};

/*
 * Reads plain bytes. Profiles live in the arena; texts borrow from `bytes`, so both must outlive
 * the profiles built from them. A sample with an index beyond its table, or without a value, is
 * left out by itself; so is a profile with more samples than the limit, or without a sample type.
 *
 * Errors: INVALID_ARGUMENT for bytes that are no such message, for an index in the dictionary that
 *         is beyond its table, and for older layouts, with the versions that are read;
 *         RESOURCE_EXHAUSTED for 4 GiB or more, or more than HEARTH_OTLP_MAX_PROFILES; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_otlp_decode(struct hearth_str bytes,
                                      const struct hearth_otlp_options *options,
                                      struct hearth_arena *arena, struct hearth_otlp_export *ret,
                                      struct hearth_err *err);

/*
 * Builds profile i in an arena of its own: together, the profiles of an export may need many times
 * the memory of the export, because they share its stacks. The profile has at least one sample, and
 * texts of the export. Stacks that are cut are added to *notes. Not thread-safe: all profiles of an
 * export share a workspace. In ascending order, each message is read once. Errors: NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_otlp_build(const struct hearth_otlp_export *export, size_t i,
                                     struct hearth_arena *arena, struct hearth_profile *ret,
                                     struct hearth_pprof_notes *notes, struct hearth_err *err);

#endif
