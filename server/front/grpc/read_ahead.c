/* read_ahead.c -- a ring of messages with a count of their bytes. */
#include "grpc/read_ahead.h"

#include <grpc/grpc.h>

#include <assert.h>

bool hearth_ahead_has_room(const struct hearth_ahead *ahead)
{
    return ahead->n < HEARTH_AHEAD_MAX_MESSAGES && ahead->n_bytes < HEARTH_AHEAD_MAX_BYTES &&
           !ahead->is_short;
}

/* True if the budget is needed for messages in work rather than for messages read ahead. */
static bool is_budget_short(const struct hearth_budget *budget)
{
    return budget->limit_bytes > 0 &&
           atomic_load_explicit(&budget->used_bytes, memory_order_relaxed) >
               budget->limit_bytes / 2;
}

void hearth_ahead_put(struct hearth_ahead *ahead, struct hearth_budget *budget,
                      grpc_byte_buffer *body)
{
    HEARTH_ASSERT(ahead->n < HEARTH_AHEAD_MAX_MESSAGES);
    assert(body != NULL);
    size_t n_bytes = grpc_byte_buffer_length(body);
    bool is_held = hearth_budget_take(budget, n_bytes);
    ahead->ring[(ahead->begin + ahead->n) % HEARTH_AHEAD_MAX_MESSAGES] =
        (struct hearth_ahead_message){.body = body, .held = is_held ? n_bytes : 0};
    ahead->n++;
    ahead->n_bytes += n_bytes;
    ahead->is_short = !is_held || is_budget_short(budget);
}

struct hearth_ahead_message hearth_ahead_take(struct hearth_ahead *ahead)
{
    HEARTH_ASSERT(ahead->n > 0);
    struct hearth_ahead_message message = ahead->ring[ahead->begin];
    ahead->begin = (ahead->begin + 1) % HEARTH_AHEAD_MAX_MESSAGES;
    ahead->n--;
    ahead->is_short = ahead->is_short && ahead->n > 0;
    hearth_ahead_done(ahead);
    ahead->work_bytes = grpc_byte_buffer_length(message.body);
    return message;
}

void hearth_ahead_done(struct hearth_ahead *ahead)
{
    assert(ahead->work_bytes <= ahead->n_bytes);
    ahead->n_bytes -= ahead->work_bytes;
    ahead->work_bytes = 0;
}

void hearth_ahead_clear(struct hearth_ahead *ahead, struct hearth_budget *budget)
{
    while (ahead->n > 0) {
        struct hearth_ahead_message message = hearth_ahead_take(ahead);
        hearth_budget_give(budget, message.held);
        grpc_byte_buffer_destroy(message.body);
    }
    hearth_ahead_done(ahead);
}
