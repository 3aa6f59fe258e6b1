/* svc_layout.c -- hearth.v1.AdminService: where the data tables lie, and the nodes of Citus. */
#include "hearth/engine/admin.h"
#include "hearth/pb/hearth/v1/layout.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(data_node, struct hearth_node, Hearth__V1__DataNode);
static const struct hearth_message_member data_node_members[] = {
    HEARTH_MAP(data_node, name, name),
    HEARTH_MAP(data_node, is_coordinator, coordinator),
    HEARTH_MAP(data_node, holds_data, holds_data),
    HEARTH_MAP(data_node, failure, failure),
    HEARTH_MAP(data_node, n_shards, shards),
    HEARTH_MAP(data_node, n_bytes, bytes),
    HEARTH_MAP(data_node, postgres, postgres_version),
    HEARTH_MAP(data_node, citus, citus_version),
    HEARTH_MAP(data_node, n_prepared, prepared),
    HEARTH_MAP(data_node, oldest_prepared_s, oldest_prepared_seconds),
};
static const struct hearth_message_map data_node_map =
    HEARTH_MESSAGE_MAP(data_node, hearth__v1__data_node__descriptor);

HEARTH_MAP_TYPES(data_table, struct hearth_data_table, Hearth__V1__DataTable);
static const struct hearth_message_member data_table_members[] = {
    HEARTH_MAP(data_table, table, table),
    HEARTH_MAP(data_table, is_distributed, distributed),
    HEARTH_MAP(data_table, n_bytes, bytes),
    HEARTH_MAP(data_table, move_s, move_seconds),
};
static const struct hearth_message_map data_table_map =
    HEARTH_MESSAGE_MAP(data_table, hearth__v1__data_table__descriptor);

HEARTH_MAP_TYPES(layout, struct hearth_node_layout, Hearth__V1__GetLayoutResponse);
static const struct hearth_message_member layout_members[] = {
    HEARTH_MAP(layout, citus, citus_version),
    HEARTH_MAP_LIST(layout, nodes, n_nodes, nodes, &data_node_map),
    HEARTH_MAP_LIST(layout, tables, n_tables, tables, &data_table_map),
    HEARTH_MAP(layout, n_distributed, distributed_tables),
    HEARTH_MAP(layout, n_largest_bytes, largest_bytes),
    HEARTH_MAP(layout, largest_node, largest_node),
    HEARTH_MAP(layout, largest_services, largest_services),
};
static const struct hearth_message_map layout_map =
    HEARTH_MESSAGE_MAP(layout, hearth__v1__get_layout_response__descriptor);

HEARTH_UNARY(hearth_svc_admin_layout, Hearth__V1__GetLayoutRequest, Hearth__V1__GetLayoutResponse)
{
    struct hearth_node_layout layout = {0};

    HEARTH_TRY(hearth_admin_layout(rpc->front->admin, &rpc->arena, &layout, &rpc->err));
    hearth_rpc_map_into(rpc, &layout_map, &layout, out);

    return HEARTH_OK;
}
