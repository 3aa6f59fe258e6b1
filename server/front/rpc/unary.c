/* unary.c -- makes and ends the answers of unary methods. */
#include "rpc/unary.h"

static enum hearth_status answer_unary(struct hearth_rpc *rpc)
{
    const ProtobufCMessageDescriptor *type = rpc->method->response;
    ProtobufCMessage *answer = hearth_arena_alloc(&rpc->arena, type->sizeof_message);
    if (answer == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* The handler fills the answer. Allocations that it did not check are checked here. */
    protobuf_c_message_init(type, answer);
    HEARTH_TRY(rpc->method->unary(rpc, rpc->request, answer));
    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    if (!rpc->is_packed) {
        rpc->answer = answer;
    }

    return HEARTH_OK;
}

void hearth_rpc_run_unary(struct hearth_rpc *rpc)
{
    assert(rpc->method->unary != NULL && rpc->request != NULL);
    hearth_rpc_end(rpc, answer_unary(rpc));
}
