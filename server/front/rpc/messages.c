/* messages.c -- what the handlers of all services need to read requests and to fill answers. */
#include "rpc/messages.h"

#include "hearth/engine/partial.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "rpc/front_internal.h"

/* What a query may leave out. Without memory for it, nothing may be left out. */
static struct hearth_partial *find_partial(struct hearth_rpc *rpc)
{
    if (rpc->partial == NULL && rpc->method->pool == HEARTH_POOL_QUERY) {
        rpc->partial = hearth_partial_new(&rpc->arena);
    }

    return rpc->partial;
}

struct hearth_call hearth_rpc_call(struct hearth_rpc *rpc)
{
    return (struct hearth_call){
        .engine = rpc->front->query,
        .tenant = hearth_rpc_tenant(rpc),
        .view = rpc->caller.tenants.v,
        .tenants = rpc->caller.tenants.v,
        .n_tenants = rpc->caller.tenants.n,
        .arena = &rpc->arena,
        .cancel = &rpc->cancel,
        .notes = &rpc->notes,
        .partial = find_partial(rpc),
    };
}

struct hearth_query hearth_rpc_query(struct hearth_rpc *rpc, int64_t start_ms, int64_t end_ms)
{
    return (struct hearth_query){
        .call = hearth_rpc_call(rpc), .start_ms = start_ms, .end_ms = end_ms};
}

struct hearth_str *hearth_rpc_strs(struct hearth_rpc *rpc, char *const *texts, size_t n)
{
    struct hearth_str *strs = hearth_arena_array(&rpc->arena, n, sizeof *strs);
    for (size_t i = 0; strs != NULL && i < n; i++) {
        strs[i] = hearth_str_c(texts[i]);
    }
    return strs;
}

struct hearth_label *hearth_rpc_labels(struct hearth_rpc *rpc,
                                       struct Types__V1__LabelPair *const *labels, size_t n)
{
    struct hearth_label *ret = hearth_arena_array(&rpc->arena, n, sizeof *ret);
    for (size_t i = 0; ret != NULL && i < n; i++) {
        ret[i] =
            (struct hearth_label){hearth_str_c(labels[i]->name), hearth_str_c(labels[i]->value)};
    }
    return ret;
}

char *hearth_rpc_text(struct hearth_rpc *rpc, struct hearth_str text)
{
    return hearth_arena_strndup(&rpc->arena, text.p, text.n);
}

char *hearth_rpc_span_text(struct hearth_rpc *rpc, uint64_t id)
{
    char text[HEARTH_SPAN_ID_TEXT + 1];
    hearth_span_id_format(id, text);
    return hearth_rpc_text(rpc, id == 0 ? HEARTH_STR("") : hearth_str_c(text));
}

char *hearth_rpc_trace_text(struct hearth_rpc *rpc, struct hearth_trace_id id)
{
    char text[HEARTH_TRACE_ID_TEXT + 1];
    hearth_trace_id_format(id, text);
    return hearth_rpc_text(rpc, hearth_trace_id_is_none(id) ? HEARTH_STR("") : hearth_str_c(text));
}

char **hearth_rpc_texts(struct hearth_rpc *rpc, const struct hearth_str *texts, size_t n)
{
    char **list = hearth_arena_array(&rpc->arena, n, sizeof *list);

    for (size_t i = 0; list != NULL && i < n; i++) {
        list[i] = hearth_rpc_text(rpc, texts[i]);
        if (list[i] == NULL) {
            return NULL;
        }
    }

    return list;
}
