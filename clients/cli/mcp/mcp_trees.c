/*
 * mcp_trees.c -- tools whose answers are frames: parts of flame graphs, sandwiches, differences.
 *
 * The handle of a frame is a hash of the names from the root to it. It is the same on every machine
 * and for every range, so that a frame can be followed over several calls and compared later.
 */
#include "hearth/base/hash.h"

#include "cli_call.h"
#include "cmd_diff.h"
#include "mcp.h"
#include "why.h"

#define QUERY        "hearth.v1.QueryService/"
#define MAX_NODES    16384 /* of the graph that a slice is cut from */
#define DEFAULT_ROWS 15
#define BEYOND_Q     0.05 /* hearth/v1/query.proto */

/* ---- flame_slice ---- */

/* Handles of all nodes: parents stand before their children. */
static uint64_t *make_handles(struct hearth_arena *arena, const struct hearth_client_flame *flame)
{
    uint64_t *handles = hearth_arena_array(arena, flame->n_nodes, sizeof *handles);

    for (size_t i = 0; handles != NULL && i < flame->n_nodes; i++) {
        const struct hearth_client_node *node = &flame->nodes[i];
        handles[i] =
            i == 0 ? 0 : hearth_hash64(node->name, strlen(node->name), handles[node->parent]);
    }

    return handles;
}

static enum hearth_status find_frame(struct mcp_call *call, const struct mcp_tree *tree,
                                     size_t *ret)
{
    uint64_t wanted = 0;

    if (call->frame == NULL) {
        *ret = 0;
        return HEARTH_OK;
    }
    if (!hearth_str_hex_to_u64(hearth_str_c(call->frame), &wanted)) {
        return HEARTH_FAIL(&call->cli.err, HEARTH_INVALID_ARGUMENT,
                           "\"%.40s\" is not the handle of a frame, which has 16 hexadecimal "
                           "digits; leave it out to begin at the root",
                           call->frame);
    }
    for (size_t i = 0; i < tree->n; i++) {
        if (tree->handles[i] == wanted) {
            *ret = i;
            return HEARTH_OK;
        }
    }

    return HEARTH_FAIL(&call->cli.err, HEARTH_NOT_FOUND,
                       "the flame graph of this selection has no frame %.20s among its %d largest; "
                       "use the same selector, type and filters as in the answer that named it",
                       call->frame, MAX_NODES);
}

/* The names above a frame, the root excepted. */
static enum hearth_status put_callers_of(struct mcp_call *call, const struct mcp_tree *tree,
                                         size_t node)
{
    size_t n = 0;

    for (size_t i = node; i != 0; i = tree->nodes[i].parent) {
        n++;
    }
    const char **names = hearth_arena_array(&call->cli.arena, n, sizeof *names);
    if (names == NULL) {
        return HEARTH_FAIL_ARENA(&call->cli.err, &call->cli.arena);
    }
    size_t at = n;
    for (size_t i = node; i != 0; i = tree->nodes[i].parent) {
        names[--at] = tree->nodes[i].name;
    }
    hearth_json_key_c(&call->answer, "path");
    hearth_json_array(&call->answer);
    for (size_t i = 0; i < n; i++) {
        hearth_json_string_c(&call->answer, names[i]);
    }
    hearth_json_array_end(&call->answer);

    return HEARTH_OK;
}

enum hearth_status mcp_flame_slice(struct mcp_call *call)
{
    Hearth__V1__MergeRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__MergeResponse *answer;
    struct hearth_client_flame flame;
    size_t node;

    /* Ask for the graph. */
    HEARTH_TRY(mcp_selection(call, &selection));
    hearth__v1__merge_request__init(&request);
    request.selection = &selection;
    request.max_nodes = MAX_NODES;
    HEARTH_TRY(cli_call(&call->cli, QUERY "Merge", &request,
                        &hearth__v1__merge_response__descriptor, &answer));
    if (answer->flamegraph == NULL || answer->flamegraph->total == 0) {
        return cli_fail_no_data(&call->cli);
    }
    HEARTH_TRY(hearth_call_flame(answer->flamegraph, &call->cli.arena, &flame, &call->cli.err));

    /* Find the frame. */
    struct mcp_tree tree = {.nodes = flame.nodes,
                            .n = flame.n_nodes,
                            .whole = flame.total,
                            .handles = make_handles(&call->cli.arena, &flame)};
    if (tree.handles == NULL) {
        return HEARTH_FAIL_ARENA(&call->cli.err, &call->cli.arena);
    }
    HEARTH_TRY(find_frame(call, &tree, &node));

    /* Write it with what is below it. */
    mcp_put_query(call, "query", &selection, answer->unit);
    mcp_put_count(call, "whole", flame.total);
    HEARTH_TRY(put_callers_of(call, &tree, node));
    mcp_put_count(call, "self", flame.nodes[node].self);
    mcp_put_count(call, "total", flame.nodes[node].total);
    mcp_put_percent(call, "percent", (double)flame.nodes[node].total, (double)flame.total);

    return mcp_put_children(call, "children", &tree, node);
}

/* ---- sandwich ---- */

/* A side as a tree, whose first node is the function. */
static enum hearth_status read_side(struct mcp_call *call, Hearth__V1__SandwichNode *const *side,
                                    size_t n, int64_t whole, struct mcp_tree *ret)
{
    struct hearth_client_node *nodes = hearth_arena_array(&call->cli.arena, n, sizeof *nodes);

    if (nodes == NULL) {
        return HEARTH_FAIL_ARENA(&call->cli.err, &call->cli.arena);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t parent = i == 0 ? 0 : side[i]->parent;
        if (parent < 0 || (i > 0 && (size_t)parent >= i)) {
            return HEARTH_FAIL(&call->cli.err, HEARTH_INTERNAL, "the server sent a malformed tree");
        }
        nodes[i] = (struct hearth_client_node){.name = side[i]->name,
                                               .self = side[i]->self,
                                               .total = side[i]->total,
                                               .parent = (uint32_t)parent};
    }
    *ret = (struct mcp_tree){.nodes = nodes, .n = n, .whole = whole};

    return HEARTH_OK;
}

enum hearth_status mcp_sandwich(struct mcp_call *call)
{
    Hearth__V1__SandwichRequest request;
    Hearth__V1__Selection selection;
    Hearth__V1__SandwichResponse *answer;
    struct mcp_tree callers, callees;

    HEARTH_TRY(mcp_selection(call, &selection));
    hearth__v1__sandwich_request__init(&request);
    request.selection = &selection;
    request.function = cli_field(&call->cli, call->function);
    request.max_nodes = MAX_NODES;
    HEARTH_TRY(cli_call(&call->cli, QUERY "Sandwich", &request,
                        &hearth__v1__sandwich_response__descriptor, &answer));
    if (answer->whole == 0) {
        return cli_fail_no_data(&call->cli);
    }
    if (answer->total == 0) {
        return cli_fail_no_function(&call->cli, &selection, call->function);
    }
    HEARTH_TRY(read_side(call, answer->callers, answer->n_callers, answer->whole, &callers));
    HEARTH_TRY(read_side(call, answer->callees, answer->n_callees, answer->whole, &callees));

    mcp_put_query(call, "query", &selection, answer->unit);
    mcp_put_count(call, "whole", answer->whole);
    mcp_put_count(call, "self", answer->self);
    mcp_put_count(call, "total", answer->total);
    mcp_put_percent(call, "percent", (double)answer->total, (double)answer->whole);
    hearth_json_key_c(&call->answer, "callers");
    hearth_json_object(&call->answer);
    HEARTH_TRY(mcp_put_children(call, "frames", &callers, 0));
    hearth_json_object_end(&call->answer);
    hearth_json_key_c(&call->answer, "callees");
    hearth_json_object(&call->answer);
    HEARTH_TRY(mcp_put_children(call, "frames", &callees, 0));
    hearth_json_object_end(&call->answer);

    return HEARTH_OK;
}

/* ---- diff ---- */

static void put_noise(struct mcp_call *call, const Hearth__V1__DiffNoise *noise)
{
    static const char *const methods[] = {"unknown", "parts", "poisson"};
    size_t method = noise == NULL ? 0 : (size_t)noise->method;

    hearth_json_key_c(&call->answer, "noise");
    hearth_json_object(&call->answer);
    mcp_put_text(call, "method", methods[method < HEARTH_ARRAY_LEN(methods) ? method : 0]);
    if (noise != NULL && noise->reason[0] != '\0') {
        mcp_put_text(call, "reason", noise->reason);
    }
    if (noise != NULL) {
        mcp_put_count(call, "judged_functions", noise->judged_functions);
        mcp_put_count(call, "changed_functions", noise->changed_functions);
    }
    hearth_json_object_end(&call->answer);
}

static void put_change(struct mcp_call *call, const Hearth__V1__FunctionChange *change,
                       const Hearth__V1__DiffNoise *noise, const int64_t whole[2])
{
    bool is_judged = noise->method != HEARTH__V1__NOISE_METHOD__NOISE_METHOD_UNSPECIFIED;

    hearth_json_object(&call->answer);
    mcp_put_name(call, "function", change->name);
    mcp_put_count(call, "base_self", change->left_self);
    mcp_put_percent(call, "base_percent", (double)change->left_self, (double)whole[0]);
    mcp_put_count(call, "self", change->right_self);
    mcp_put_percent(call, "percent", (double)change->right_self, (double)whole[1]);
    mcp_put_percent(call, "change_points", change->change, 1);
    if (is_judged) {
        mcp_put_percent(call, "low_points", change->low, 1);
        mcp_put_percent(call, "high_points", change->high, 1);
    }
    mcp_put_text(call, "verdict",
                 !is_judged              ? "unknown"
                 : change->q <= BEYOND_Q ? "beyond noise"
                                         : "within noise");
    hearth_json_object_end(&call->answer);
}

/* The arguments as those of `hearth diff`, whose second selector is the one of today. */
static enum hearth_status read_sides(struct mcp_call *call, Hearth__V1__Selection *left,
                                     Hearth__V1__Selection *right)
{
    struct cli *cli = &call->cli;
    const char *now = call->selector != NULL ? call->selector : "{}";

    cli->args[0] = call->base_selector != NULL ? call->base_selector : now;
    cli->args[1] = now;
    cli->n_args = call->base_selector != NULL ? 2 : 1;

    return cli_diff_sides(cli, left, right);
}

enum hearth_status mcp_diff(struct mcp_call *call)
{
    Hearth__V1__DiffRequest request;
    Hearth__V1__Selection left, right;
    Hearth__V1__DiffResponse *answer;

    HEARTH_TRY(read_sides(call, &left, &right));
    hearth__v1__diff_request__init(&request);
    request.left = &left;
    request.right = &right;
    request.noise = true;
    request.max_nodes = MAX_NODES;
    HEARTH_TRY(cli_call(&call->cli, QUERY "Diff", &request, &hearth__v1__diff_response__descriptor,
                        &answer));
    if (answer->flamegraph == NULL || answer->flamegraph->total == 0) {
        return cli_fail_no_data(&call->cli);
    }

    const Hearth__V1__DiffNoise *noise = answer->noise;
    const int64_t whole[2] = {answer->flamegraph->leftticks, answer->flamegraph->rightticks};
    mcp_put_query(call, "base", &left, answer->unit);
    mcp_put_query(call, "query", &right, answer->unit);
    mcp_put_count(call, "base_total", whole[0]);
    mcp_put_count(call, "total", whole[1]);
    put_noise(call, noise);

    int64_t n = noise == NULL ? 0 : (int64_t)noise->n_functions;
    int64_t limit = mcp_limit(call, DEFAULT_ROWS), shown = n < limit ? n : limit;
    hearth_json_key_c(&call->answer, "functions");
    hearth_json_array(&call->answer);
    for (int64_t i = 0; i < shown; i++) {
        put_change(call, noise->functions[i], noise, whole);
    }
    hearth_json_array_end(&call->answer);
    mcp_put_cut(call, "functions", 0, shown, n);

    return HEARTH_OK;
}
