/* commit_lanes.c -- whose rows are committed next (contract: commit_lanes.h). */
#include "commit/commit_lanes.h"

#include "hearth/base/hash.h"

#include <assert.h>

unsigned hearth_commit_lane_of(struct hearth_str tenant)
{
    return (unsigned)(hearth_hash64(tenant.p, tenant.n, hearth_hash_process_seed()) %
                      HEARTH_COMMIT_LANES);
}

static uint64_t bit_of_lane(unsigned lane)
{
    return UINT64_C(1) << lane;
}

void hearth_commit_lanes_append(struct hearth_commit_lanes *lanes, struct hearth_push_item *item)
{
    assert(item->lane < HEARTH_COMMIT_LANES);

    struct hearth_commit_lane *lane = &lanes->lanes[item->lane];
    item->prev = lane->tail;
    item->next = NULL;
    *(item->prev == NULL ? &lane->head : &item->prev->next) = item;
    lane->tail = item;
    lanes->waiting |= bit_of_lane(item->lane);
}

void hearth_commit_lanes_unlink(struct hearth_commit_lanes *lanes, struct hearth_push_item *item)
{
    struct hearth_commit_lane *lane = &lanes->lanes[item->lane];

    *(item->prev == NULL ? &lane->head : &item->prev->next) = item->next;
    *(item->next == NULL ? &lane->tail : &item->next->prev) = item->prev;
    if (lane->head == NULL) {
        lanes->waiting &= ~bit_of_lane(item->lane);
        lane->credit_bytes = 0; /* a pause earns and owes nothing */
    }
}

/* The first waiting lane after `lane`, in a circle. */
static unsigned find_next_turn(const struct hearth_commit_lanes *lanes, unsigned lane)
{
    uint64_t after = lane + 1 < HEARTH_COMMIT_LANES ? lanes->waiting >> (lane + 1) : 0;
    assert(lanes->waiting != 0);

    return after != 0 ? lane + 1 + (unsigned)__builtin_ctzll(after)
                      : (unsigned)__builtin_ctzll(lanes->waiting);
}

struct hearth_push_item *hearth_commit_lanes_next(struct hearth_commit_lanes *lanes)
{
    if (lanes->waiting == 0) {
        return NULL;
    }

    /* A lane alone needs no turn. */
    if ((lanes->waiting & (lanes->waiting - 1)) == 0) {
        lanes->turn = (unsigned)__builtin_ctzll(lanes->waiting);
        lanes->lanes[lanes->turn].credit_bytes = HEARTH_COMMIT_QUANTUM;
        return lanes->lanes[lanes->turn].head;
    }

    /* An item of at most 32 MiB makes its lane miss 512 turns, each of a few instructions. */
    while ((lanes->waiting & bit_of_lane(lanes->turn)) == 0 ||
           lanes->lanes[lanes->turn].credit_bytes <= 0) {
        lanes->turn = find_next_turn(lanes, lanes->turn);
        lanes->lanes[lanes->turn].credit_bytes += HEARTH_COMMIT_QUANTUM;
    }

    return lanes->lanes[lanes->turn].head;
}

void hearth_commit_lanes_take(struct hearth_commit_lanes *lanes, struct hearth_push_item *item)
{
    assert(item == lanes->lanes[lanes->turn].head);

    lanes->lanes[lanes->turn].credit_bytes -= (int64_t)item->n_bytes;
    hearth_commit_lanes_unlink(lanes, item);
}
