/* flame_export_speedscope.c -- flame graphs and diffs as files of speedscope. */
#include "hearth/base/mem.h"
#include "hearth/codec/json_writer.h"

#include "flame_export.h"

/* Writes the names from the root to a node; a stack without any frame is empty. */
static void put_stack(struct hearth_json *json, const struct flame_export *graph, uint32_t node,
                      uint32_t *path)
{
    size_t depth = 0;

    for (; node > 0; node = graph->parent[node]) {
        path[depth++] = graph->name[node];
    }
    hearth_json_array(json);
    while (depth > 0) {
        hearth_json_i64(json, path[--depth]);
    }
    hearth_json_array_end(json);
}

static void put_samples(struct hearth_json *json, const struct flame_export *graph, int side,
                        uint32_t *path)
{
    hearth_json_key_c(json, "samples");
    hearth_json_array(json);
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        if (graph->self[side][i] > 0) {
            put_stack(json, graph, i, path);
        }
    }
    hearth_json_array_end(json);

    hearth_json_key_c(json, "weights");
    hearth_json_array(json);
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        if (graph->self[side][i] > 0) {
            hearth_json_i64(json, graph->self[side][i]);
        }
    }
    hearth_json_array_end(json);
}

static void put_member(struct hearth_json *json, const char *key, const char *value)
{
    hearth_json_key_c(json, key);
    hearth_json_string_c(json, value);
}

static void put_side(struct hearth_json *json, const struct flame_export *graph, int side,
                     uint32_t *path)
{
    const struct flame_export_facts *facts = &graph->facts;
    const char *name = graph->n_sides == 2 ? facts->sides[side] : facts->title;

    hearth_json_object(json);
    put_member(json, "type", "sampled");
    put_member(json, "name", name == NULL ? "" : name);
    put_member(json, "unit",
               hearth_str_eq_c(facts->unit, "nanoseconds") ? "nanoseconds"
               : hearth_str_eq_c(facts->unit, "bytes")     ? "bytes"
                                                           : "none");
    hearth_json_key_c(json, "startValue");
    hearth_json_i64(json, 0);
    hearth_json_key_c(json, "endValue");
    hearth_json_i64(json, graph->total[side][0]);
    put_samples(json, graph, side, path);
    hearth_json_object_end(json);
}

void flame_export_speedscope(const struct flame_export *graph, struct hearth_buf *out)
{
    uint32_t *path = hearth_mem_calloc(graph->n_levels + 1, sizeof *path);
    struct hearth_json json;

    if (path == NULL) {
        out->failed = true;
        return;
    }
    hearth_json_init(&json, out);
    hearth_json_object(&json);
    put_member(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    put_member(&json, "exporter", "hearth");
    put_member(&json, "name", graph->facts.title == NULL ? "" : graph->facts.title);

    hearth_json_key_c(&json, "shared");
    hearth_json_object(&json);
    hearth_json_key_c(&json, "frames");
    hearth_json_array(&json);
    for (uint32_t i = 0; i < graph->n_names; i++) {
        hearth_json_object(&json);
        hearth_json_key_c(&json, "name");
        hearth_json_string(&json, graph->names[i]);
        hearth_json_object_end(&json);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);

    hearth_json_key_c(&json, "profiles");
    hearth_json_array(&json);
    for (int side = 0; side < graph->n_sides; side++) {
        put_side(&json, graph, side, path);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
    hearth_mem_free(path);
}
