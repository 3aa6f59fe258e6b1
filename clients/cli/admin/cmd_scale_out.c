/* cmd_scale_out.c -- hearth admin scale-out: nodes of a distributed database; what would move. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/layout.pb-c.h"

#include "admin/scale_sample.h"
#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"
#include "text.h"

#include <inttypes.h>

/* Citus ends prepared transactions in seconds; older ones were left. */
#define LEFT_SECONDS 60

static void add_node(struct cli_listing *list, const Hearth__V1__DataNode *node)
{
    bool answers = node->failure[0] == '\0';

    cli_list_text(list, "node");
    cli_list_text(list, node->name);
    cli_list_number(list, node->bytes);
    cli_list_number(list, node->shards);
    cli_list_absent(list);
    cli_list_text(list, node->citus_version);
    cli_list_text(list, !answers                                       ? node->failure
                        : node->oldest_prepared_seconds > LEFT_SECONDS ? "prepared"
                                                                       : "answers");
}

static void add_table(struct cli_listing *list, const Hearth__V1__DataTable *table)
{
    cli_list_text(list, "table");
    cli_list_text(list, table->table);
    cli_list_number(list, table->bytes);
    cli_list_absent(list);
    cli_list_number(list, table->move_seconds * HEARTH_NS_PER_SEC);
    cli_list_absent(list);
    cli_list_text(list, "here");
}

/* What must be done before hearthd scale-out can move anything; NULL: nothing. */
static const char *missing_before_move(const Hearth__V1__GetLayoutResponse *layout)
{
    bool can_hold = false;
    for (size_t i = 0; i < layout->n_nodes; i++) {
        can_hold = can_hold || layout->nodes[i]->holds_data;
    }

    return layout->citus_version[0] == '\0' ? "the database lacks the extension citus"
           : !can_hold                      ? "no node may hold rows: citus_add_node adds one"
                                            : NULL;
}

static void add_plan_foot(struct cli_listing *list, const Hearth__V1__GetLayoutResponse *layout)
{
    int64_t n_bytes = 0, seconds = 0;
    char size[48];
    for (size_t i = 0; i < layout->n_tables; i++) {
        if (!layout->tables[i]->distributed) {
            n_bytes += layout->tables[i]->bytes;
            seconds += layout->tables[i]->move_seconds;
        }
    }

    cli_value((double)n_bytes, HEARTH_STR("bytes"), size);
    hearth_buf_printf(&list->foot,
                      "%s move in about %" PRId64 " s. No hearthd may run meanwhile: nothing is "
                      "pushed or answered.\n",
                      size, seconds);
    const char *missing = missing_before_move(layout);
    if (missing != NULL) {
        hearth_buf_printf(&list->foot, "Not possible yet: %s (docs/how-to/scale-out.md).\n",
                          missing);
    }
    hearth_buf_cstr(&list->foot, "Stop every hearthd; then, on one of their machines:\n"
                                 "  hearthd scale-out --database-url URL\n");
}

static void add_nodes_foot(struct cli_listing *list, const Hearth__V1__GetLayoutResponse *layout)
{
    if (layout->distributed_tables == 0) {
        hearth_buf_cstr(&list->foot, "no table is distributed; --dry-run shows what would move\n");
        return;
    }

    hearth_buf_printf(&list->foot, "%" PRId64 " of %zu tables are distributed%s\n",
                      layout->distributed_tables, layout->n_tables,
                      layout->distributed_tables < (int64_t)layout->n_tables
                          ? ": stop every hearthd and run hearthd scale-out --database-url URL"
                          : "");
    if (layout->largest_bytes > 0) {
        char size[48];
        cli_value((double)layout->largest_bytes, HEARTH_STR("bytes"), size);
        hearth_buf_printf(&list->foot,
                          "the largest group of services that moves as a whole: %s on %s (", size,
                          layout->largest_node);
        cli_fit(hearth_str_c(layout->largest_services), 200, false, &list->foot);
        hearth_buf_cstr(&list->foot, ")\n");
    }
}

static void add_layout(struct cli_listing *list, const Hearth__V1__GetLayoutResponse *layout)
{
    list->empty = "one PostgreSQL holds everything; --dry-run shows what would move to nodes";
    for (size_t i = 0; i < layout->n_nodes; i++) {
        add_node(list, layout->nodes[i]);
    }
    if (layout->n_nodes > 0) {
        add_nodes_foot(list, layout);
    }
}

static void add_plan(struct cli_listing *list, const Hearth__V1__GetLayoutResponse *layout)
{
    list->empty = "all tables that grow are distributed";
    for (size_t i = 0; i < layout->n_tables; i++) {
        if (!layout->tables[i]->distributed) {
            add_table(list, layout->tables[i]);
        }
    }
    if (layout->distributed_tables < (int64_t)layout->n_tables) {
        add_plan_foot(list, layout);
    }
}

enum cli_exit cli_admin_scale_out(struct cli *cli)
{
    Hearth__V1__GetLayoutRequest request;
    Hearth__V1__GetLayoutResponse *answer = NULL;
    struct hearth_buf sample;

    hearth_buf_init(&sample, 0);
    hearth__v1__get_layout_request__init(&request);
    enum hearth_status status = cli_call(cli, "hearth.v1.AdminService/GetLayout", &request,
                                         &hearth__v1__get_layout_response__descriptor, &answer);
    if (status == HEARTH_OK && cli->sample) {
        status = cli_resolve_range(cli);
        status = status == HEARTH_OK ? cli_sample_answers(cli, &sample) : status;
    }
    if (status != HEARTH_OK) {
        hearth_buf_release(&sample);
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    if (cli->dry_run) {
        add_plan(&list, answer);
    } else {
        add_layout(&list, answer);
    }
    hearth_buf_str(&list.foot, hearth_buf_view(&sample));
    hearth_buf_release(&sample);

    return cli_list_end(&list, &answer->base);
}
