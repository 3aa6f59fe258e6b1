/* flamebearer.c -- see flamebearer.h. */
#include "flamebearer.h"

#define RATE_OF_COUNTS      100
#define RATE_OF_NANOSECONDS 1000000000

static void write_graph(struct hearth_json *json,
                        const struct hearth_str *names,
                        size_t n_names,
                        const struct hearth_flame_level *levels,
                        size_t n_levels,
                        int64_t total,
                        int64_t max_self)
{
    hearth_json_key_c(json, "flamebearer");
    hearth_json_object(json);
    hearth_json_key_c(json, "names");
    hearth_json_array(json);
    for (size_t i = 0; i < n_names; i++) {
        hearth_json_string(json, names[i]);
    }
    hearth_json_array_end(json);
    hearth_json_key_c(json, "levels");
    hearth_json_array(json);
    for (size_t i = 0; i < n_levels; i++) {
        hearth_json_array(json);
        for (size_t k = 0; k < levels[i].n; k++) {
            hearth_json_i64(json, levels[i].values[k]);
        }
        hearth_json_array_end(json);
    }
    hearth_json_array_end(json);
    hearth_json_key_c(json, "numTicks");
    hearth_json_i64(json, total);
    hearth_json_key_c(json, "maxSelf");
    hearth_json_i64(json, max_self);
    hearth_json_object_end(json);
}

static bool counts_objects(struct hearth_str type)
{
    return hearth_str_eq_c(type, "inuse_objects") || hearth_str_eq_c(type, "alloc_objects") ||
           hearth_str_eq_c(type, "goroutine") || hearth_str_eq_c(type, "samples");
}

/* CPU nanoseconds are shown as samples at 1e9 a second. */
static void write_metadata(struct hearth_json *json,
                           const char *format,
                           const struct hearth_flamebearer_about *about)
{
    bool is_cpu = hearth_str_eq_c(about->type, "cpu");
    hearth_json_key_c(json, "metadata");
    hearth_json_object(json);
    hearth_json_key_c(json, "format");
    hearth_json_string_c(json, format);
    hearth_json_key_c(json, "spyName");
    hearth_json_string_c(json, "");
    hearth_json_key_c(json, "sampleRate");
    hearth_json_i64(json, is_cpu ? RATE_OF_NANOSECONDS : RATE_OF_COUNTS);
    hearth_json_key_c(json, "units");
    if (counts_objects(about->type)) {
        hearth_json_string_c(json, "objects");
    } else if (is_cpu) {
        hearth_json_string_c(json, "samples");
    } else {
        hearth_json_string(json, about->unit);
    }
    hearth_json_key_c(json, "name");
    hearth_json_string(json, about->name);
    hearth_json_object_end(json);
}

static void write_version(struct hearth_json *json)
{
    hearth_json_key_c(json, "version");
    hearth_json_i64(json, 1);
}

void hearth_flamebearer_single(struct hearth_json *json,
                               const struct hearth_flamegraph *graph,
                               const struct hearth_flamebearer_about *about)
{
    write_version(json);
    write_graph(json, graph->names, graph->n_names, graph->levels, graph->n_levels, graph->total,
                graph->max_self);
    write_metadata(json, "single", about);
}

void hearth_flamebearer_double(struct hearth_json *json,
                               const struct hearth_flame_diff *diff,
                               const struct hearth_flamebearer_about *about)
{
    write_version(json);
    write_graph(json, diff->names, diff->n_names, diff->levels, diff->n_levels, diff->total,
                diff->max_self);
    write_metadata(json, "double", about);
    hearth_json_key_c(json, "leftTicks");
    hearth_json_i64(json, diff->left_total);
    hearth_json_key_c(json, "rightTicks");
    hearth_json_i64(json, diff->right_total);
}
