/*
 * cmd_trace_profile.c -- hearth trace --flame and its like: the merged stack traces of spans, local roots and traces.
 *
 * What was found by time alone has no samples of its own: then the whole profiles are asked for as flame, top and
 * query profile do.
 */
#include "hearth/format/collapsed.h"
#include "hearth/format/pprof.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_explain.h"
#include "cmd_flame.h"
#include "cmd_functions.h"
#include "cmd_trace.h"
#include "filters.h"
#include "flame_output.h"
#include "merged_profile.h"
#include "text.h"
#include "why.h"

#include <stdio.h>

bool cli_trace_wants_stacks(const struct cli *cli)
{
    return cli->output == CLI_PPROF || cli->output == CLI_COLLAPSED || flame_output_is_chosen(cli);
}

bool cli_trace_wants_profile(const struct cli *cli)
{
    return cli->trace.flame || cli->trace.top || cli_trace_wants_stacks(cli);
}

static bool is_exact_find(const struct cli_found *found)
{
    return found->lookup->certainty == HEARTH__V1__CERTAINTY__CERTAINTY_EXACT;
}

/* What is below a span may have samples though it has none. */
static bool has_samples(const struct cli *cli, const struct cli_found *found)
{
    bool below = cli->trace.children || found->of == CLI_OF_ROOT;
    return is_exact_find(found) || (below && found->of != CLI_OF_TRACE);
}

/* ---- by time ---- */

static enum cli_exit whole_profiles(struct cli *cli, const struct cli_found *found)
{
    const Hearth__V1__Lookup *lookup = found->lookup;

    if (cli->from != NULL || cli->to != NULL || cli->since != NULL) {
        return cli_usage(
            "no samples carry this id; --from, --to and --since apply to samples only");
    }
    cli_say("note", "no samples carry an id: these are whole profiles taken while the span ran");
    cli->args[0] = lookup->label_selector;
    cli->n_args = 1;
    cli->from = hearth_arena_printf(&cli->arena, "%lld", (long long)lookup->start);
    cli->to = hearth_arena_printf(&cli->arena, "%lld", (long long)lookup->end);
    if (cli->from == NULL || cli->to == NULL) {
        return cli_fail(cli, HEARTH_FAIL_ARENA(&cli->err, &cli->arena));
    }

    if (cli->explain) {
        return cli_explain_merge(cli);
    }

    return cli->trace.top && !cli_trace_wants_stacks(cli) ? cli_top(cli) : cli_flame(cli);
}

/* ---- by id ---- */

static enum hearth_status fill_selection(struct cli *cli, const struct cli_found *found, size_t n,
                                         Hearth__V1__SpanProfileRequest *request)
{
    struct {
        size_t n;
        char **v;
    } ids[3] = {0};

    for (size_t of = 0; of < HEARTH_ARRAY_LEN(ids); of++) {
        ids[of].v = hearth_arena_array(&cli->arena, n, sizeof(char *));
        for (size_t i = 0; ids[of].v != NULL && i < n; i++) {
            if ((size_t)found[i].of == of && has_samples(cli, &found[i])) {
                ids[of].v[ids[of].n++] = found[i].lookup->id;
            }
        }
    }
    request->trace_ids = ids[CLI_OF_TRACE].v;
    request->n_trace_ids = ids[CLI_OF_TRACE].n;
    request->span_ids = ids[CLI_OF_SPAN].v;
    request->n_span_ids = ids[CLI_OF_SPAN].n;
    request->local_root_ids = ids[CLI_OF_ROOT].v;
    request->n_local_root_ids = ids[CLI_OF_ROOT].n;
    request->children = cli->trace.children;
    request->each = cli->trace.each;
    request->max_nodes = !cli->trace.top ? cli->max_nodes : cli->has_limit ? cli->limit : 30;
    if (cli->from != NULL || cli->to != NULL || cli->since != NULL) {
        HEARTH_TRY(cli_resolve_range(cli));
        request->start = cli->from_ms;
        request->end = cli->to_ms;
    }
    Hearth__V1__StackFilter *stacks = hearth_arena_alloc(&cli->arena, sizeof *stacks);
    if (stacks == NULL || cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    hearth__v1__stack_filter__init(stacks);
    cli_stack_filter(cli, stacks);
    request->stacks = stacks;

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

static void put_item_head(const Hearth__V1__SpanProfileItem *item, const char *unit,
                          struct hearth_buf *out)
{
    char total[48];
    cli_value((double)item->total, hearth_str_c(unit), total);
    cli_fit(hearth_str_c(item->id), 64, false, out);
    hearth_buf_printf(out, ": %s\n", total);
}

static enum hearth_status put_flame(struct cli *cli, const Hearth__V1__SpanProfileItem *item,
                                    const char *unit, struct hearth_buf *out)
{
    const Querier__V1__FlameGraph *graph = item->flamegraph;
    if (graph == NULL || graph->total == 0 || graph->n_levels == 0 ||
        graph->levels[0]->n_values < 4) {
        hearth_buf_cstr(out, "no samples\n");
        return HEARTH_OK;
    }
    return cli_draw_flame(cli, graph, hearth_str_c(unit), out);
}

static enum hearth_status put_top(struct cli *cli, const Hearth__V1__SpanProfileItem *item,
                                  char *unit, struct hearth_buf *out)
{
    Hearth__V1__TopResponse table;
    hearth__v1__top_response__init(&table);
    table.rows = item->top;
    table.n_rows = item->n_top;
    table.row_count = (int64_t)item->n_top;
    table.total = item->total;
    table.unit = unit;
    return cli_draw_top(cli, &table, "function", out);
}

static enum cli_exit put_stacks(struct cli *cli, const Hearth__V1__SpanProfileItem *item,
                                const char *unit)
{
    const struct flame_export_facts facts = {
        .title = cli->n_args == 1 ? cli->args[0] : "traces and spans",
        .type = cli->type,
        .unit = hearth_str_c(unit),
    };
    struct hearth_pprof_limits limits = {0};
    struct hearth_pprof_notes notes;
    struct hearth_profile profile;
    struct hearth_str wire = hearth_str_n((const char *)item->pprof.data, item->pprof.len);
    enum hearth_status status =
        hearth_pprof_decode(wire, &limits, &cli->arena, &profile, &notes, &cli->err);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (cli->output == CLI_PPROF) {
        return cli_save_pprof(cli, wire, profile.n_samples);
    }
    if (flame_output_is_chosen(cli)) {
        return flame_output_profile(cli, &profile, &facts);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_collapsed_encode(&profile, 0, &out);

    return cli_print(&out);
}

/* With --each in the order of the command line; the answer has those of spans before those of traces. */
static void order_items(const struct cli *cli, Hearth__V1__SpanProfileResponse *answer)
{
    Hearth__V1__SpanProfileItem **items = answer->profiles;
    size_t n = 0;
    for (size_t k = 0; k < cli->n_args; k++) {
        for (size_t i = n; i < answer->n_profiles; i++) {
            if (strcmp(items[i]->id, cli->args[k]) == 0) {
                Hearth__V1__SpanProfileItem *item = items[i];
                memmove(items + n + 1, items + n, (i - n) * sizeof(Hearth__V1__SpanProfileItem *));
                items[n++] = item;
                break;
            }
        }
    }
}

static enum cli_exit print_answer(struct cli *cli, Hearth__V1__SpanProfileResponse *answer)
{
    int64_t total = 0;

    for (size_t i = 0; i < answer->n_profiles; i++) {
        total += answer->profiles[i]->total;
    }
    if (total == 0) {
        return cli_no_data(cli);
    }
    if (cli_trace_wants_stacks(cli)) {
        return put_stacks(cli, answer->profiles[0], answer->unit);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    order_items(cli, answer);
    for (size_t i = 0; cli->output == CLI_TABLE && i < answer->n_profiles; i++) {
        const Hearth__V1__SpanProfileItem *item = answer->profiles[i];
        hearth_buf_cstr(&out, i == 0 ? "" : "\n");
        if (cli->trace.each) {
            put_item_head(item, answer->unit, &out);
        }
        enum hearth_status status = cli->trace.top ? put_top(cli, item, answer->unit, &out)
                                                   : put_flame(cli, item, answer->unit, &out);
        if (status != HEARTH_OK) {
            hearth_buf_release(&out);
            return cli_fail(cli, status);
        }
    }

    return cli_print_answer(cli, &answer->base, &out);
}

static enum cli_exit by_id(struct cli *cli, const struct cli_found *found, size_t n)
{
    Hearth__V1__SpanProfileRequest request;
    Hearth__V1__SpanProfileResponse *answer = NULL;

    hearth__v1__span_profile_request__init(&request);
    request.profile_type = cli_field(cli, cli->type);
    request.explain = cli->explain;
    request.format =
        cli_trace_wants_stacks(cli) ? HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_PPROF
        : cli->trace.top            ? HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_TOP
                         : HEARTH__V1__SPAN_PROFILE_FORMAT__SPAN_PROFILE_FORMAT_FLAMEGRAPH;
    enum hearth_status status = fill_selection(cli, found, n, &request);
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_TRACES "SpanProfile", &request,
                          &hearth__v1__span_profile_response__descriptor, &answer);
    }

    if (status != HEARTH_OK) {
        return cli_trace_fail(cli, status);
    }

    return cli->explain ? cli_print_plan(cli, cli->type, answer->plan) : print_answer(cli, answer);
}

enum cli_exit cli_trace_profile(struct cli *cli, const struct cli_found *found, size_t n)
{
    size_t n_exact = 0, n_types;

    for (size_t i = 0; i < n; i++) {
        n_exact += has_samples(cli, &found[i]);
    }
    for (size_t i = 0; n_exact > 0 && i < n; i++) {
        if (!has_samples(cli, &found[i])) {
            char note[160];
            (void)snprintf(note, sizeof note, "left out: no samples carry %.100s",
                           found[i].lookup->id);
            cli_say("note", note);
        }
    }
    const char *type = cli_trace_type(cli, found, n, &n_types);
    if (cli->type == NULL && n_types > 1) {
        (void)fprintf(stderr, "type: %s (of %zu; choose with --type)\n", type, n_types);
    }
    cli->type = type;
    if (n_exact > 0) {
        return by_id(cli, found, n);
    }

    return n == 1 ? whole_profiles(cli, found)
                  : cli_usage("no samples carry these ids; give one id at a time");
}
