/*
 * flame_export_html.c -- the page of clients/viewer with a graph in it, as JSON in a block that no
 * browser runs. clients/viewer/README.md describes the members.
 */
#include "hearth/base/embedded.h"
#include "hearth/codec/json_writer.h"

#include "flame_export.h"

/* Where the graph stands in the page: behind this, in the only element of that kind. */
static const char g_place[] = "id=\"profile\">";

static void put_fact(struct hearth_json *json, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        hearth_json_key_c(json, key);
        hearth_json_string_c(json, text);
    }
}

static void put_facts(struct hearth_json *json, const struct flame_export *graph)
{
    const struct flame_export_facts *facts = &graph->facts;

    put_fact(json, "title", facts->title);
    put_fact(json, "type", facts->type);
    put_fact(json, "range", facts->range);
    put_fact(json, "noise", facts->noise);
    hearth_json_key_c(json, "unit");
    hearth_json_string(json, facts->unit);
    if (facts->sides[0] != NULL && facts->sides[1] != NULL) {
        hearth_json_key_c(json, "sides");
        hearth_json_array(json);
        hearth_json_string_c(json, facts->sides[0]);
        hearth_json_string_c(json, facts->sides[1]);
        hearth_json_array_end(json);
    }
    if (graph->n_left_out > 0) {
        hearth_json_key_c(json, "leftOut");
        hearth_json_i64(json, graph->n_left_out);
    }
}

static void put_nodes(struct hearth_json *json, const struct flame_export *graph)
{
    hearth_json_key_c(json, "names");
    hearth_json_array(json);
    for (uint32_t i = 0; i < graph->n_names; i++) {
        hearth_json_string(json, graph->names[i]);
    }
    hearth_json_array_end(json);

    hearth_json_key_c(json, "name");
    hearth_json_array(json);
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        hearth_json_i64(json, graph->name[i]);
    }
    hearth_json_array_end(json);

    /* Steps are short, because nodes are in the order of their parents. */
    hearth_json_key_c(json, "parent");
    hearth_json_array(json);
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        hearth_json_i64(json, (int64_t)graph->parent[i] - (i > 0 ? graph->parent[i - 1] : 0));
    }
    hearth_json_array_end(json);

    hearth_json_key_c(json, "self");
    hearth_json_array(json);
    for (int side = 0; side < graph->n_sides; side++) {
        hearth_json_array(json);
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
            hearth_json_i64(json, graph->self[side][i]);
        }
        hearth_json_array_end(json);
    }
    hearth_json_array_end(json);
}

static void put_changed(struct hearth_json *json, const struct flame_export *graph)
{
    uint32_t before = 0;

    hearth_json_key_c(json, "changed");
    hearth_json_array(json);
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        if (graph->q[i] <= FLAME_EXPORT_BEYOND_Q) {
            hearth_json_i64(json, (int64_t)i - before);
            before = i;
        }
    }
    hearth_json_array_end(json);
}

/* No "</script>" and no "<!--" may end or change the block: a '<' is only in strings of JSON. */
static void put_escaped_json(struct hearth_str json, struct hearth_buf *out)
{
    for (size_t at = 0; at < json.n;) {
        size_t next = hearth_str_find(json, '<', at);
        hearth_buf_append(out, json.p + at, next - at);
        hearth_buf_cstr(out, next < json.n ? "\\u003c" : "");
        at = next + 1;
    }
}

void flame_export_html(const struct flame_export *graph, struct hearth_buf *out)
{
    const char *page = (const char *)hearth_embedded_viewer[0].bytes;
    const char *place = strstr(page, g_place) + sizeof g_place - 1;
    struct hearth_json json;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_json_init(&json, &text);
    hearth_json_object(&json);
    put_facts(&json, graph);
    put_nodes(&json, graph);
    if (graph->n_sides == 2 && graph->q != NULL) {
        put_changed(&json, graph);
    }
    hearth_json_object_end(&json);

    hearth_buf_append(out, page, (size_t)(place - page));
    put_escaped_json(hearth_buf_view(&text), out);
    hearth_buf_cstr(out, place);
    out->failed = out->failed || hearth_buf_failed(&text);
    hearth_buf_release(&text);
}
