/*
 * svc_profiles.c -- hearth.v1.ProfileService: uploads as a list, their facets, one upload by its
 * id.
 */
#include "hearth/engine/listed.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/hearth/v1/profiles.pb-c.h"

#include "handlers.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

#include <assert.h>

#define PAGE_DEFAULT  100
#define FACET_DEFAULT 10
#define FACET_MAX     1000

/* ---- messages ---- */

HEARTH_MAP_TYPES(upload, struct hearth_listed_upload, Hearth__V1__ListedProfile);
static const struct hearth_message_member upload_members[] = {
    HEARTH_MAP(upload, id, id),
    HEARTH_MAP(upload, ts_ns, time_ns),
    HEARTH_MAP(upload, duration_ns, duration_ns),
    HEARTH_MAP(upload, service, service),
    HEARTH_MAP_LABELS(upload, labels, labels),
    HEARTH_MAP_TEXTS(upload, profile_types, n_profile_types, profile_types),
    HEARTH_MAP(upload, total, total),
    HEARTH_MAP(upload, n_series, series_count),
};
static const struct hearth_message_map upload_map =
    HEARTH_MESSAGE_MAP(upload, hearth__v1__listed_profile__descriptor);

HEARTH_MAP_TYPES(facet_value, struct hearth_facet_value, Hearth__V1__ProfileFacetValue);
static const struct hearth_message_member facet_value_members[] = {
    HEARTH_MAP(facet_value, value, value),
    HEARTH_MAP(facet_value, n_uploads, profile_count),
};
static const struct hearth_message_map facet_value_map =
    HEARTH_MESSAGE_MAP(facet_value, hearth__v1__profile_facet_value__descriptor);

HEARTH_MAP_TYPES(facet, struct hearth_facet, Hearth__V1__ProfileFacet);
static const struct hearth_message_member facet_members[] = {
    HEARTH_MAP(facet, label, label),
    HEARTH_MAP_LIST(facet, values, n_values, values, &facet_value_map),
    HEARTH_MAP(facet, n_all, value_count),
    HEARTH_MAP(facet, n_uploads, profile_count),
};
static const struct hearth_message_map facet_map =
    HEARTH_MESSAGE_MAP(facet, hearth__v1__profile_facet__descriptor);

HEARTH_MAP_TYPES(type_total, struct hearth_listed_value, Hearth__V1__ProfileTypeTotal);
static const struct hearth_message_member type_total_members[] = {
    HEARTH_MAP(type_total, profile_type, profile_type),
    HEARTH_MAP(type_total, total, total),
};
static const struct hearth_message_map type_total_map =
    HEARTH_MESSAGE_MAP(type_total, hearth__v1__profile_type_total__descriptor);

HEARTH_MAP_TYPES(one_series, struct hearth_listed_series, Hearth__V1__ListedSeries);
static const struct hearth_message_member one_series_members[] = {
    HEARTH_MAP_LABELS(one_series, labels, labels),
    HEARTH_MAP_LIST(one_series, values, n_values, types, &type_total_map),
};
static const struct hearth_message_map one_series_map =
    HEARTH_MESSAGE_MAP(one_series, hearth__v1__listed_series__descriptor);

HEARTH_MAP_TYPES(original, struct hearth_original, Hearth__V1__KeptOriginal);
static const struct hearth_message_member original_members[] = {
    HEARTH_MAP(original, name, name),
    HEARTH_MAP(original, n_bytes, size_bytes),
};
static const struct hearth_message_map original_map =
    HEARTH_MESSAGE_MAP(original, hearth__v1__kept_original__descriptor);

HEARTH_MAP_TYPES(detail, struct hearth_listed_detail, Hearth__V1__GetProfileResponse);
static const struct hearth_message_member detail_members[] = {
    HEARTH_MAP_ONE(detail, upload, profile, &upload_map),
    HEARTH_MAP_LIST(detail, values, n_values, types, &type_total_map),
    HEARTH_MAP_LIST(detail, series, n_series, series, &one_series_map),
    HEARTH_MAP(detail, selector, label_selector),
    HEARTH_MAP(detail, start_ms, start),
    HEARTH_MAP(detail, end_ms, end),
    HEARTH_MAP_LIST(detail, originals, n_originals, originals, &original_map),
    HEARTH_MAP_LABELS(detail, client_tags, client_tags),
};
static const struct hearth_message_map detail_map =
    HEARTH_MESSAGE_MAP(detail, hearth__v1__get_profile_response__descriptor);

/* ---- requests ---- */

/* Reads the filter and its range. */
static enum hearth_status read_profile_filter(struct hearth_rpc *rpc,
                                              const Hearth__V1__ProfileFilter *in,
                                              struct hearth_listed_filter *ret,
                                              struct hearth_query *ret_query)
{
    if (in == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "filter is missing");
    }

    *ret_query = hearth_rpc_query(rpc, in->start, in->end);
    *ret = (struct hearth_listed_filter){
        .selector = hearth_str_c(in->label_selector),
        .labels = hearth_rpc_labels(rpc, in->labels, in->n_labels),
        .n_labels = in->n_labels,
        .profile_type = hearth_str_c(in->profile_type),
    };

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* The next part of a token, up to a colon or its end; *at moves behind it. */
static struct hearth_str next_part(struct hearth_str token, size_t *at)
{
    size_t begin = *at, end = begin;

    while (end < token.n && token.p[end] != ':') {
        end++;
    }
    *at = end < token.n ? end + 1 : end;

    return hearth_str_n(token.p + begin, end - begin);
}

/* A token is ORDER:KEY:TIME:ID; the order is that of write_profile_token. */
static enum hearth_status read_profile_token(struct hearth_rpc *rpc, struct hearth_str token,
                                             struct hearth_listed_page *page)
{
    struct hearth_listed_place *after = &page->after;
    int64_t order;
    size_t at = 0;

    if (token.n == 0) {
        return HEARTH_OK;
    }

    page->has_after = true;
    bool ok = hearth_str_to_i64(next_part(token, &at), &order) &&
              hearth_str_to_i64(next_part(token, &at), &after->key) &&
              hearth_str_to_i64(next_part(token, &at), &after->ts_ns) &&
              hearth_profile_id_parse(next_part(token, &at), &after->id) && at == token.n;
    if (!ok || order != (int64_t)page->order * 2 + page->ascending) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "page_token is not valid: send the next_page_token of an answer, with "
                           "the same filter and order");
    }

    return HEARTH_OK;
}

static char *write_profile_token(struct hearth_rpc *rpc, const struct hearth_listed_page *page,
                                 const struct hearth_listed_place *last)
{
    char id[HEARTH_PROFILE_ID_TEXT + 1];

    hearth_profile_id_format(last->id, id);
    return hearth_arena_printf(&rpc->arena, "%d:%lld:%lld:%s",
                               (int)page->order * 2 + page->ascending, (long long)last->key,
                               (long long)last->ts_ns, id);
}

static enum hearth_status read_profile_page(struct hearth_rpc *rpc,
                                            const Hearth__V1__ListProfilesRequest *in,
                                            struct hearth_listed_page *page)
{
    static const enum hearth_listed_order orders[] = {
        [HEARTH__V1__PROFILE_ORDER__PROFILE_ORDER_UNSPECIFIED] = HEARTH_LISTED_BY_TIME,
        [HEARTH__V1__PROFILE_ORDER__PROFILE_ORDER_TIME] = HEARTH_LISTED_BY_TIME,
        [HEARTH__V1__PROFILE_ORDER__PROFILE_ORDER_DURATION] = HEARTH_LISTED_BY_DURATION,
        [HEARTH__V1__PROFILE_ORDER__PROFILE_ORDER_TOTAL] = HEARTH_LISTED_BY_TOTAL,
    };

    /* Numbers of the request are hostile. */
    if ((unsigned)in->order >= HEARTH_ARRAY_LEN(orders)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "order %d is not known",
                           (int)in->order);
    }
    if (in->page_size < 0 || in->page_size > HEARTH_LISTED_MAX_PAGE) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "page_size is from 0 to %d, not %d",
                           HEARTH_LISTED_MAX_PAGE, (int)in->page_size);
    }

    *page = (struct hearth_listed_page){
        .order = orders[in->order],
        .ascending = in->ascending,
        .limit = in->page_size == 0 ? PAGE_DEFAULT : (size_t)in->page_size,
    };

    return read_profile_token(rpc, hearth_str_c(in->page_token), page);
}

static enum hearth_status read_profile_id(struct hearth_rpc *rpc, const char *text,
                                          struct hearth_profile_id *ret)
{
    if (!hearth_profile_id_parse(hearth_str_c(text), ret)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "id \"%.64s\" is not a UUID", text);
    }

    return HEARTH_OK;
}

/* ---- methods ---- */

HEARTH_UNARY(hearth_svc_list_profiles, Hearth__V1__ListProfilesRequest,
             Hearth__V1__ListProfilesResponse)
{
    struct hearth_query query;
    struct hearth_listed_filter filter;
    struct hearth_listed_page page;
    struct hearth_listed_uploads uploads;

    HEARTH_TRY(read_profile_filter(rpc, in->filter, &filter, &query));
    HEARTH_TRY(read_profile_page(rpc, in, &page));
    HEARTH_TRY(hearth_listed_uploads(&query, &filter, &page, &uploads, &rpc->err));

    HEARTH_RPC_LIST(rpc, &upload_map, uploads.v, uploads.n, out, profiles);
    if (uploads.more) {
        out->next_page_token = write_profile_token(rpc, &page, &uploads.last);
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_profile_facets, Hearth__V1__ProfileFacetsRequest,
             Hearth__V1__ProfileFacetsResponse)
{
    struct hearth_query query;
    struct hearth_listed_filter filter;
    struct hearth_facets facets;

    /* Read the request. */
    HEARTH_TRY(read_profile_filter(rpc, in->filter, &filter, &query));
    if (in->limit < 0 || in->limit > FACET_MAX) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "limit is from 0 to %d, not %d",
                           FACET_MAX, (int)in->limit);
    }
    const struct hearth_facet_spec spec = {
        .labels = hearth_rpc_strs(rpc, in->labels, in->n_labels),
        .n_labels = in->n_labels,
        .limit = in->limit == 0 ? FACET_DEFAULT : (size_t)in->limit,
    };
    if (spec.labels == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Query and answer. */
    HEARTH_TRY(hearth_listed_facets(&query, &filter, &spec, &facets, &rpc->err));
    HEARTH_RPC_LIST(rpc, &facet_map, facets.v, facets.n, out, facets);
    out->profile_count = facets.n_uploads;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_get_profile, Hearth__V1__GetProfileRequest, Hearth__V1__GetProfileResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_id id;
    struct hearth_listed_detail detail;

    HEARTH_TRY(read_profile_id(rpc, in->id, &id));
    HEARTH_TRY(hearth_listed_find(&call, id, &detail, &rpc->err));
    hearth_rpc_map_into(rpc, &detail_map, &detail, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_read_original, Hearth__V1__ReadOriginalRequest,
             Hearth__V1__ReadOriginalResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_original_spec spec = {.index = in->index, .offset = in->offset};
    struct hearth_original_bytes part;

    HEARTH_TRY(read_profile_id(rpc, in->id, &spec.id));
    HEARTH_TRY(hearth_listed_original(&call, &spec, &part, &rpc->err));

    /* The bytes live in the arena of the request until the answer is encoded. */
    out->data.len = part.bytes.n;
    memcpy(&out->data.data, &part.bytes.p, sizeof part.bytes.p); /* drops the const */
    out->name = hearth_arena_strndup(&rpc->arena, part.name.p, part.name.n);
    out->size_bytes = part.n_all;

    return out->name == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_get_profile_pprof, Hearth__V1__GetProfileRequest, Google__V1__Profile)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profile_id id;

    /* The profile itself is the answer. */
    HEARTH_TRY(read_profile_id(rpc, in->id, &id));
    rpc->is_packed = true;

    return hearth_listed_pprof(&call, id, &rpc->packed, &rpc->err);
}
