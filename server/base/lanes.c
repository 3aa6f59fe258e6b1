/*
 * lanes.c -- start-time fair queuing over lanes (contract: lanes.h).
 *
 * A lane is in the heap while it has a queued job and may start one. It enters with the virtual
 * time at least, so that a pause earns nothing. All lanes with queued jobs are in a list by their
 * number, so that the longest is known at once: a number changes by one, and so does the maximum.
 */
#include "hearth/base/lanes.h"

#include "hearth/base/hash.h"
#include "hearth/base/mem.h"

#include <assert.h>

#define FIRST_TABLE   64u
#define FIRST_COST_NS 1000000         /* charged to a lane none of whose jobs has ended */
#define MAX_LENGTHS   ((size_t)65536) /* longer lanes are in the last list */
#define NOT_IN_HEAP   SIZE_MAX

struct hearth_lane {
    uint64_t hash;
    struct hearth_lane *next_in_bucket;
    struct hearth_lane *next_of_length, *prev_of_length; /* also: the list of idle lanes */
    struct hearth_job *head, *tail;
    size_t n_queued, n_running;
    size_t max_running;
    int64_t start_ns;    /* virtual start time of its next job */
    int64_t mean_ns;     /* what its jobs take; 0: none has ended */
    uint64_t activation; /* orders lanes of the same start time */
    size_t heap_idx;     /* or NOT_IN_HEAP */
    size_t n_name;
    char name[];
};

/* ---- the heap ---- */

static bool starts_before(const struct hearth_lane *a, const struct hearth_lane *b)
{
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->activation < b->activation;
}

static void put_in_heap(struct hearth_lanes *lanes, size_t i, struct hearth_lane *lane)
{
    lanes->heap[i] = lane;
    lane->heap_idx = i;
}

/* Move the lane to its place after its start time has changed. */
static void settle_in_heap(struct hearth_lanes *lanes, struct hearth_lane *lane)
{
    size_t i = lane->heap_idx;

    while (i > 0 && starts_before(lane, lanes->heap[(i - 1) / 2])) {
        put_in_heap(lanes, i, lanes->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }

    for (size_t child = 2 * i + 1; child < lanes->n_heap; child = 2 * i + 1) {
        if (child + 1 < lanes->n_heap &&
            starts_before(lanes->heap[child + 1], lanes->heap[child])) {
            child++;
        }
        if (!starts_before(lanes->heap[child], lane)) {
            break;
        }
        put_in_heap(lanes, i, lanes->heap[child]);
        i = child;
    }

    put_in_heap(lanes, i, lane);
}

static void leave_heap(struct hearth_lanes *lanes, struct hearth_lane *lane)
{
    size_t i = lane->heap_idx;
    struct hearth_lane *last = lanes->heap[--lanes->n_heap];

    assert(i <= lanes->n_heap);
    lane->heap_idx = NOT_IN_HEAP;
    if (last != lane) {
        put_in_heap(lanes, i, last);
        settle_in_heap(lanes, last);
    }
}

/* Put the lane into the heap, or take it out, according to its state. */
static void update_heap(struct hearth_lanes *lanes, struct hearth_lane *lane)
{
    bool may_start =
        lane->n_queued > 0 && (lane->max_running == 0 || lane->n_running < lane->max_running);
    bool is_in = lane->heap_idx != NOT_IN_HEAP;

    if (is_in && !may_start) {
        leave_heap(lanes, lane);
    } else if (is_in) {
        settle_in_heap(lanes, lane);
    } else if (may_start) {
        assert(lanes->n_heap < lanes->cap_heap);
        lane->start_ns = lane->start_ns > lanes->vtime_ns ? lane->start_ns : lanes->vtime_ns;
        lane->activation = lanes->n_activations++;
        put_in_heap(lanes, lanes->n_heap, lane);
        lanes->n_heap++;
        settle_in_heap(lanes, lane);
    }
}

/* ---- lanes ---- */

static void unlink_lane(struct hearth_lane **first, struct hearth_lane *lane)
{
    *(lane->prev_of_length == NULL ? first : &lane->prev_of_length->next_of_length) =
        lane->next_of_length;
    if (lane->next_of_length != NULL) {
        lane->next_of_length->prev_of_length = lane->prev_of_length;
    }
    lane->next_of_length = lane->prev_of_length = NULL;
}

static struct hearth_lane **find_length_list(struct hearth_lanes *lanes, size_t n)
{
    return &lanes->by_length[n < lanes->n_lengths ? n : lanes->n_lengths - 1];
}

static void change_length(struct hearth_lanes *lanes, struct hearth_lane *lane, size_t n)
{
    struct hearth_lane **from = find_length_list(lanes, lane->n_queued);
    struct hearth_lane **to = find_length_list(lanes, n);

    if (lane->n_queued > 0) {
        unlink_lane(from, lane);
    }

    if (n > 0) {
        lane->next_of_length = *to;
        if (*to != NULL) {
            (*to)->prev_of_length = lane;
        }
        *to = lane;
    }

    lane->n_queued = n;
    lanes->longest = n > lanes->longest ? n : lanes->longest;
    while (lanes->longest > 0 && *find_length_list(lanes, lanes->longest) == NULL) {
        lanes->longest--;
    }
}

static struct hearth_lane **find_bucket(const struct hearth_lanes *lanes, uint64_t hash)
{
    return &lanes->table[hash & (lanes->n_table - 1)];
}

static uint64_t hash_lane_name(struct hearth_str name)
{
    return hearth_hash64(name.p, name.n, hearth_hash_process_seed());
}

static struct hearth_lane *find_lane(const struct hearth_lanes *lanes, struct hearth_str name,
                                     uint64_t hash)
{
    struct hearth_lane *lane = *find_bucket(lanes, hash);

    while (lane != NULL && (lane->hash != hash || lane->n_name != name.n ||
                            (name.n > 0 && memcmp(lane->name, name.p, name.n) != 0))) {
        lane = lane->next_in_bucket;
    }

    return lane;
}

static void free_lane(struct hearth_lanes *lanes, struct hearth_lane *lane)
{
    struct hearth_lane **at = find_bucket(lanes, lane->hash);

    assert(lane->n_queued == 0 && lane->n_running == 0 && lane->heap_idx == NOT_IN_HEAP);
    while (*at != lane) {
        at = &(*at)->next_in_bucket;
    }
    *at = lane->next_in_bucket;
    lanes->n_lanes--;
    hearth_mem_free(lane);
}

static void leave_idle(struct hearth_lanes *lanes, struct hearth_lane *lane)
{
    if (lanes->idle_last == lane) {
        lanes->idle_last = lane->prev_of_length;
    }
    unlink_lane(&lanes->idle_first, lane);
    lanes->n_idle--;
}

/* The lane has no jobs. The lane that has been idle longest makes room. */
static void enter_idle(struct hearth_lanes *lanes, struct hearth_lane *lane)
{
    lane->prev_of_length = lanes->idle_last;
    *(lanes->idle_last == NULL ? &lanes->idle_first : &lanes->idle_last->next_of_length) = lane;
    lanes->idle_last = lane;
    if (++lanes->n_idle > HEARTH_LANES_IDLE) {
        struct hearth_lane *oldest = lanes->idle_first;
        leave_idle(lanes, oldest);
        free_lane(lanes, oldest);
    }
}

/* Make room for one more lane in the table, whose chains stay short, and in the heap. */
static bool grow_lanes(struct hearth_lanes *lanes)
{
    if (lanes->n_lanes < lanes->cap_heap) {
        return true;
    }

    size_t n = lanes->n_table == 0 ? FIRST_TABLE : 2 * lanes->n_table;
    struct hearth_lane **heap = hearth_mem_calloc(n, sizeof heap[0]);
    struct hearth_lane **table = hearth_mem_calloc(n, sizeof table[0]);
    if (heap == NULL || table == NULL) {
        hearth_mem_free(heap);
        hearth_mem_free(table);
        return false;
    }

    /* Move the lanes. */
    for (size_t i = 0; i < lanes->n_table; i++) {
        for (struct hearth_lane *lane = lanes->table[i], *next; lane != NULL; lane = next) {
            next = lane->next_in_bucket;
            lane->next_in_bucket = table[lane->hash & (n - 1)];
            table[lane->hash & (n - 1)] = lane;
        }
    }

    for (size_t i = 0; i < lanes->n_heap; i++) {
        heap[i] = lanes->heap[i];
    }

    hearth_mem_free(lanes->table);
    hearth_mem_free(lanes->heap);
    lanes->table = table;
    lanes->heap = heap;
    lanes->n_table = lanes->cap_heap = n;

    return true;
}

static struct hearth_lane *make_lane(struct hearth_lanes *lanes, struct hearth_str name,
                                     uint64_t hash)
{
    if (!grow_lanes(lanes)) {
        return NULL;
    }

    struct hearth_lane *lane = hearth_mem_zalloc(sizeof *lane + name.n);
    if (lane == NULL) {
        return NULL;
    }

    lane->hash = hash;
    lane->heap_idx = NOT_IN_HEAP;
    lane->n_name = name.n;
    if (name.n > 0) {
        memcpy(lane->name, name.p, name.n);
    }

    struct hearth_lane **bucket = find_bucket(lanes, hash);
    lane->next_in_bucket = *bucket;
    *bucket = lane;
    lanes->n_lanes++;
    enter_idle(lanes, lane);

    return lane;
}

/* ---- the queue ---- */

bool hearth_lanes_init(struct hearth_lanes *lanes, size_t max_queued)
{
    *lanes = (struct hearth_lanes){.max_queued = max_queued};
    lanes->n_lengths = max_queued < MAX_LENGTHS ? max_queued + 1 : 2;
    if (max_queued >= MAX_LENGTHS && max_queued < SIZE_MAX) {
        lanes->n_lengths = MAX_LENGTHS;
    }
    lanes->by_length = hearth_mem_calloc(lanes->n_lengths, sizeof lanes->by_length[0]);

    if (lanes->by_length == NULL || !grow_lanes(lanes)) {
        hearth_lanes_release(lanes);
        return false;
    }

    return true;
}

void hearth_lanes_release(struct hearth_lanes *lanes)
{
    assert(lanes->n_queued == 0 && lanes->n_running == 0);

    while (lanes->idle_first != NULL) {
        struct hearth_lane *lane = lanes->idle_first;
        leave_idle(lanes, lane);
        free_lane(lanes, lane);
    }

    assert(lanes->n_lanes == 0);
    hearth_mem_free(lanes->table);
    hearth_mem_free(lanes->heap);
    hearth_mem_free(lanes->by_length);
    *lanes = (struct hearth_lanes){0};
}

/* Unlink the newest job of the longest lane. NULL: it keeps its place. */
static struct hearth_job *drop_newest(struct hearth_lanes *lanes)
{
    struct hearth_lane *lane = *find_length_list(lanes, lanes->longest);
    assert(lane != NULL && lane->n_queued > 0);

    struct hearth_job *job = lane->tail;
    if (job->drop == NULL) {
        return NULL;
    }

    lane->tail = job->prev;
    *(job->prev == NULL ? &lane->head : &job->prev->next) = NULL;
    change_length(lanes, lane, lane->n_queued - 1);
    lanes->n_queued--;
    update_heap(lanes, lane);
    assert(lane->n_queued > 0); /* it was longer than another lane */

    return job;
}

static void append_job(struct hearth_lanes *lanes, struct hearth_lane *lane, struct hearth_job *job)
{
    if (lane->n_queued == 0 && lane->n_running == 0) {
        leave_idle(lanes, lane);
    }

    job->next = NULL;
    job->prev = lane->tail;
    *(lane->tail == NULL ? &lane->head : &lane->tail->next) = job;
    lane->tail = job;
    lanes->n_queued++;
    change_length(lanes, lane, lane->n_queued + 1);
}

enum hearth_queued hearth_lanes_add(struct hearth_lanes *lanes, struct hearth_job *job,
                                    const struct hearth_lane_key *key, struct hearth_job **ret_drop)
{
    uint64_t hash = hash_lane_name(key->name);
    struct hearth_lane *lane = find_lane(lanes, key->name, hash);

    *ret_drop = NULL;
    if (lane != NULL && key->max_queued > 0 && lane->n_queued >= key->max_queued) {
        return HEARTH_QUEUE_LANE_FULL;
    }

    /* The whole queue is full: a longer lane makes room. */
    bool is_full = lanes->n_queued >= lanes->max_queued;
    if (is_full && (lane == NULL ? 0 : lane->n_queued) + 1 >= lanes->longest) {
        return HEARTH_QUEUE_FULL;
    }

    lane = lane != NULL ? lane : make_lane(lanes, key->name, hash);
    if (lane == NULL) {
        return HEARTH_QUEUE_FULL;
    }

    if (is_full) {
        *ret_drop = drop_newest(lanes);
        if (*ret_drop == NULL) {
            return HEARTH_QUEUE_FULL;
        }
    }

    lane->max_running = key->max_running;
    append_job(lanes, lane, job);
    update_heap(lanes, lane);

    return HEARTH_QUEUED;
}

bool hearth_lanes_take(struct hearth_lanes *lanes, struct hearth_lane_run *ret)
{
    if (lanes->n_heap == 0) {
        return false;
    }

    /* The first job of the lane with the earliest start. */
    struct hearth_lane *lane = lanes->heap[0];
    struct hearth_job *job = lane->head;
    assert(job != NULL && lane->n_queued > 0);
    lane->head = job->next;
    *(job->next == NULL ? &lane->tail : &job->next->prev) = NULL;
    change_length(lanes, lane, lane->n_queued - 1);
    lane->n_running++;
    lanes->n_queued--;
    lanes->n_running++;

    /* Charge what it is expected to take. */
    *ret = (struct hearth_lane_run){job, lane, lane->mean_ns > 0 ? lane->mean_ns : FIRST_COST_NS};
    lanes->vtime_ns = lane->start_ns > lanes->vtime_ns ? lane->start_ns : lanes->vtime_ns;
    lane->start_ns += ret->charged_ns;
    update_heap(lanes, lane);

    return true;
}

void hearth_lanes_end(struct hearth_lanes *lanes, const struct hearth_lane_run *run,
                      int64_t cost_ns)
{
    struct hearth_lane *lane = run->lane;
    assert(lane->n_running > 0 && lanes->n_running > 0 && cost_ns >= 0);

    lane->n_running--;
    lanes->n_running--;
    lane->start_ns += cost_ns - run->charged_ns;
    lane->start_ns = lane->start_ns > lanes->vtime_ns ? lane->start_ns : lanes->vtime_ns;
    lane->mean_ns = lane->mean_ns == 0 ? cost_ns : lane->mean_ns + (cost_ns - lane->mean_ns) / 8;
    update_heap(lanes, lane);
    if (lane->n_queued == 0 && lane->n_running == 0) {
        enter_idle(lanes, lane);
    }
}

struct hearth_lane_counts hearth_lanes_count(const struct hearth_lanes *lanes,
                                             struct hearth_str name)
{
    const struct hearth_lane *lane = find_lane(lanes, name, hash_lane_name(name));
    return lane == NULL ? (struct hearth_lane_counts){0, 0}
                        : (struct hearth_lane_counts){lane->n_queued, lane->n_running};
}
