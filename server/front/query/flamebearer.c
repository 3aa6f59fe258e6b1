/*
 * flamebearer.c -- writes a flame graph as JSON in pieces (flamebearer.h).
 *
 * The writer keeps its position, so that callers can send a large graph in pieces. A piece ends
 * after a part, a name or up to VALUES_AT_ONCE values.
 */
#include "query/flamebearer.h"

#include <assert.h>

#define RATE_OF_COUNTS      100
#define RATE_OF_NANOSECONDS 1000000000

#define VALUES_AT_ONCE 256u

static bool counts_objects(struct hearth_str type)
{
    return hearth_str_eq_c(type, "inuse_objects") || hearth_str_eq_c(type, "alloc_objects") ||
           hearth_str_eq_c(type, "goroutine") || hearth_str_eq_c(type, "samples");
}

/* CPU nanoseconds are shown as samples at 1e9 a second. */
static void write_metadata(struct hearth_json *json, const char *format,
                           const struct hearth_flamebearer_about *about)
{
    bool is_cpu = hearth_str_eq_c(about->type, "cpu");

    /* Format and rate. */
    hearth_json_key_c(json, "metadata");
    hearth_json_object(json);
    hearth_json_key_c(json, "format");
    hearth_json_string_c(json, format);
    hearth_json_key_c(json, "spyName");
    hearth_json_string_c(json, "");
    hearth_json_key_c(json, "sampleRate");
    hearth_json_i64(json, is_cpu ? RATE_OF_NANOSECONDS : RATE_OF_COUNTS);

    /* Units. */
    hearth_json_key_c(json, "units");
    if (counts_objects(about->type)) {
        hearth_json_string_c(json, "objects");
    } else if (is_cpu) {
        hearth_json_string_c(json, "samples");
    } else {
        hearth_json_string(json, about->unit);
    }

    /* The title. */
    hearth_json_key_c(json, "name");
    hearth_json_string(json, about->name);
    hearth_json_object_end(json);
}

static void write_head(struct hearth_json *json)
{
    hearth_json_key_c(json, "version");
    hearth_json_i64(json, 1);
    hearth_json_key_c(json, "flamebearer");
    hearth_json_object(json);
    hearth_json_key_c(json, "names");
    hearth_json_array(json);
}

/* Writes the next name; false: all names are written. */
static bool write_name(struct hearth_flamebearer *bearer, struct hearth_json *json)
{
    assert(bearer->name <= bearer->n_names);
    if (bearer->name < bearer->n_names) {
        hearth_json_string(json, bearer->names[bearer->name++]);
        return true;
    }

    hearth_json_array_end(json);
    hearth_json_key_c(json, "levels");
    hearth_json_array(json);

    return false;
}

/* Writes up to VALUES_AT_ONCE values of a level; false: all levels are written. */
static bool write_values(struct hearth_flamebearer *bearer, struct hearth_json *json)
{
    assert(bearer->level <= bearer->n_levels);
    if (bearer->level == bearer->n_levels) {
        hearth_json_array_end(json);
        return false;
    }

    /* A level may be written in several calls. */
    const struct hearth_flame_level *level = &bearer->levels[bearer->level];
    assert(bearer->value <= level->n);
    if (bearer->value == 0) {
        hearth_json_array(json);
    }

    for (size_t i = 0; i < VALUES_AT_ONCE && bearer->value < level->n; i++) {
        hearth_json_i64(json, level->values[bearer->value++]);
    }

    if (bearer->value == level->n) {
        hearth_json_array_end(json);
        bearer->value = 0;
        bearer->level++;
    }

    return true;
}

static void write_tail(const struct hearth_flamebearer *bearer, struct hearth_json *json)
{
    hearth_json_key_c(json, "numTicks");
    hearth_json_i64(json, bearer->total);
    hearth_json_key_c(json, "maxSelf");
    hearth_json_i64(json, bearer->max_self);
    hearth_json_object_end(json);
    write_metadata(json, bearer->is_double ? "double" : "single", &bearer->about);
    if (bearer->is_double) {
        hearth_json_key_c(json, "leftTicks");
        hearth_json_i64(json, bearer->left_total);
        hearth_json_key_c(json, "rightTicks");
        hearth_json_i64(json, bearer->right_total);
    }
}

/* Writes some of the current part; false: the part is complete. */
static bool write_part(struct hearth_flamebearer *bearer, struct hearth_json *json)
{
    switch (bearer->part) {
    case HEARTH_FLAMEBEARER_HEAD:
        write_head(json);
        return false;
    case HEARTH_FLAMEBEARER_NAMES:
        return write_name(bearer, json);
    case HEARTH_FLAMEBEARER_LEVELS:
        return write_values(bearer, json);
    default:
        write_tail(bearer, json);
        return false;
    }
}

bool hearth_flamebearer_more(struct hearth_flamebearer *bearer, size_t n_bytes,
                             struct hearth_json *json)
{
    assert(bearer != NULL && json != NULL);

    size_t from = json->out->n;

    /* Each part that ends gives way to the next. */
    while (bearer->part != HEARTH_FLAMEBEARER_DONE && json->out->n - from < n_bytes &&
           !hearth_buf_failed(json->out)) {
        bearer->part += !write_part(bearer, json);
    }

    return bearer->part != HEARTH_FLAMEBEARER_DONE;
}

struct hearth_flamebearer hearth_flamebearer_single(const struct hearth_flamegraph *graph,
                                                    const struct hearth_flamebearer_about *about)
{
    return (struct hearth_flamebearer){
        .about = *about,
        .names = graph->names,
        .n_names = graph->n_names,
        .levels = graph->levels,
        .n_levels = graph->n_levels,
        .total = graph->total,
        .max_self = graph->max_self,
    };
}

struct hearth_flamebearer hearth_flamebearer_double(const struct hearth_flame_diff *diff,
                                                    const struct hearth_flamebearer_about *about)
{
    return (struct hearth_flamebearer){
        .about = *about,
        .names = diff->names,
        .n_names = diff->n_names,
        .levels = diff->levels,
        .n_levels = diff->n_levels,
        .total = diff->total,
        .max_self = diff->max_self,
        .left_total = diff->left_total,
        .right_total = diff->right_total,
        .is_double = true,
    };
}
