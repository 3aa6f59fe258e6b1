/* client_waits.c -- a doubly linked list, in the order of arrival (contract: client_waits.h). */
#include "grpc/client_waits.h"

#include "hearth/base/clock.h"

#include <assert.h>

void hearth_client_waits_add(struct hearth_client_waits *waits, struct hearth_client_wait *wait,
                             grpc_call *call, int64_t until_mono_ns)
{
    assert(call != NULL && wait->call == NULL);

    *wait = (struct hearth_client_wait){
        .prev = waits->newest, .call = call, .until_mono_ns = until_mono_ns};
    *(wait->prev != NULL ? &wait->prev->next : &waits->oldest) = wait;
    waits->newest = wait;
}

void hearth_client_waits_remove(struct hearth_client_waits *waits, struct hearth_client_wait *wait)
{
    if (wait->call == NULL) {
        return;
    }

    *(wait->prev != NULL ? &wait->prev->next : &waits->oldest) = wait->next;
    *(wait->next != NULL ? &wait->next->prev : &waits->newest) = wait->prev;
    *wait = (struct hearth_client_wait){.call = NULL};
}

size_t hearth_client_waits_take_overdue(struct hearth_client_waits *waits, int64_t now_mono_ns,
                                        grpc_call **out, size_t max)
{
    size_t n = 0;
    struct hearth_client_wait *wait = waits->oldest;

    while (wait != NULL && n < max) {
        struct hearth_client_wait *next = wait->next;
        if (wait->until_mono_ns <= now_mono_ns) {
            out[n++] = wait->call;
            hearth_client_waits_remove(waits, wait);
        }
        wait = next;
    }

    return n;
}

int64_t hearth_client_answer_limit(int64_t now_mono_ns, size_t n_bytes, int64_t head_timeout_ns,
                                   int64_t bytes_per_s)
{
    int64_t until;

    if (head_timeout_ns <= 0 || bytes_per_s <= 0 ||
        __builtin_mul_overflow(n_bytes / (uint64_t)bytes_per_s + 1, HEARTH_NS_PER_SEC, &until) ||
        __builtin_add_overflow(until, head_timeout_ns, &until) ||
        __builtin_add_overflow(until, now_mono_ns, &until)) {
        return INT64_MAX;
    }

    return until;
}
