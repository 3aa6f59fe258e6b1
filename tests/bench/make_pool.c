/*
 * make_pool.c -- profiles of realistic shape, made from recorded ones:
 *     make_pool OUT SERVICES PROFILES [--heap] [--stacks N] [--builds N] SEED...
 *
 * Each service takes the stacks of one recorded pprof in order of weight, and more of them made by splicing two
 * stacks at a location they share (so every frame has callers and callees it really has). A profile is a
 * resample: stacks drawn with weights like Zipf's until 330 to 990 different ones were hit, with what they
 * refer to and nothing else, as a profiler writes it.
 *
 * --heap: four values as Go's heap profiles have, for CPU time. --stacks: so many of each service, all different and less
 * uneven in weight. --builds: profiles take
 * turns between builds of the program, each with a build id of its own.
 */
#include "hearth/base/mem.h"
#include "hearth/format/pprof.h"

#include "pool.h"
#include "test_files.h"

enum {
    MIN_SAMPLES = 330,
    MAX_SAMPLES = 990,
    LEAST_STACKS = 4000, /* of the first service; each next one has MORE_STACKS more */
    MORE_STACKS = 1700,
    MAX_DEPTH = 128,
    GZIP_LEVEL =
        6, /* gives the 34 KB of the reference profiles; Go itself writes level 1, a quarter more */
};

static uint64_t g_rng = 0x9e3779b97f4a7c15u;

static uint32_t below(uint32_t n)
{
    g_rng ^= g_rng << 13;
    g_rng ^= g_rng >> 7;
    g_rng ^= g_rng << 17;
    return (uint32_t)((g_rng >> 32) * n >> 32);
}

static void must(enum hearth_status status, const struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "make_pool: %s\n", err->msg);
        exit(1);
    }
}

static void *array(struct hearth_arena *arena, size_t n, size_t size)
{
    void *p = hearth_arena_calloc(arena, n == 0 ? 1 : n, size);
    if (p == NULL) {
        (void)fprintf(stderr, "make_pool: no memory\n");
        exit(1);
    }
    return p;
}

/* The stacks that one service can have. */
struct world {
    struct hearth_profile seed;
    uint32_t *first, *locs; /* stack i: locs[first[i] .. first[i + 1]) */
    uint32_t n_stacks, n_own;
    double *upto; /* cumulated weights */
};

static const struct hearth_profile *g_sorted; /* by_weight's */

static int by_weight(const void *a, const void *b)
{
    int64_t x = g_sorted->values[(size_t) * (const uint32_t *)a * g_sorted->n_types];
    int64_t y = g_sorted->values[(size_t) * (const uint32_t *)b * g_sorted->n_types];
    return (x < y) - (x > y);
}

static void add_loc(struct world *world, uint32_t loc)
{
    world->locs[world->first[world->n_stacks + 1]++] = loc;
}

static void end_stack(struct world *world)
{
    world->n_stacks++;
    world->first[world->n_stacks + 1] = world->first[world->n_stacks];
}

static void copy_stacks(struct world *world, uint32_t max, struct hearth_arena *arena)
{
    const struct hearth_profile *seed = &world->seed;
    uint32_t *order = array(arena, seed->n_samples, sizeof order[0]);
    for (uint32_t i = 0; i < seed->n_samples; i++) {
        order[i] = i;
    }
    g_sorted = seed;
    qsort(order, seed->n_samples, sizeof order[0], by_weight);
    for (uint32_t i = 0; i < seed->n_samples && world->n_stacks < max; i++) {
        uint32_t from = seed->stack_first[order[i]], to = seed->stack_first[order[i] + 1];
        to = to - from > MAX_DEPTH ? from + MAX_DEPTH : to;
        for (uint32_t l = from; l < to; l++) {
            add_loc(world, seed->stack_locs[l]);
        }
        end_stack(world);
    }
    world->n_own = world->n_stacks;
}

/* Whether the last stack, which is not counted yet, is a new one. A set of hashes, open addressing, a power of two. */
static bool is_new(const struct world *world, uint64_t *seen, size_t n_seen)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = world->first[world->n_stacks]; i < world->first[world->n_stacks + 1]; i++) {
        hash = (hash ^ world->locs[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    size_t at = hash & (n_seen - 1);
    while (seen[at] != 0 && seen[at] != hash) {
        at = (at + 1) & (n_seen - 1);
    }
    bool is = seen[at] == 0;
    seen[at] = hash;
    return is;
}

/*
 * The leaf side of one own stack and the root side of another that passes through the same location. `distinct`: not the same
 * stack twice, as far as a hundred tries for each find others.
 */
static void splice_stacks(struct world *world, uint32_t n, bool distinct,
                          struct hearth_arena *arena)
{
    uint32_t n_places = world->first[world->n_own];
    uint32_t *place_first =
        array(arena, (size_t)world->seed.n_locations + 2, sizeof place_first[0]);
    uint32_t *places = array(arena, n_places, sizeof places[0]);
    uint32_t *stack_of = array(arena, n_places, sizeof stack_of[0]);
    for (uint32_t i = 0; i < n_places; i++) {
        place_first[world->locs[i] + 2]++;
    }
    for (uint32_t l = 0; l < world->seed.n_locations; l++) {
        place_first[l + 2] += place_first[l + 1];
    }
    for (uint32_t s = 0; s < world->n_own; s++) {
        for (uint32_t i = world->first[s]; i < world->first[s + 1]; i++) {
            places[place_first[world->locs[i] + 1]++] = i;
            stack_of[i] = s;
        }
    }
    size_t n_seen = 1 << 20;
    uint64_t *seen = array(arena, distinct ? n_seen : 1, sizeof seen[0]), n_tries = 0;
    while (world->n_stacks < n && n_tries++ < (uint64_t)n * 100) {
        uint32_t at = below(n_places), loc = world->locs[at];
        uint32_t other = places[place_first[loc] + below(place_first[loc + 1] - place_first[loc])];
        uint32_t from = world->first[stack_of[at]], to = world->first[stack_of[other] + 1];
        if (at - from + to - other > MAX_DEPTH) {
            continue;
        }
        for (uint32_t i = from; i < at; i++) {
            add_loc(world, world->locs[i]);
        }
        for (uint32_t i = other; i < to; i++) {
            add_loc(world, world->locs[i]);
        }
        if (distinct && !is_new(world, seen, n_seen)) {
            world->first[world->n_stacks + 1] = world->first[world->n_stacks];
            continue;
        }
        end_stack(world);
    }
}

static void make_world(const char *path, uint32_t n, bool distinct, struct hearth_arena *arena,
                       struct world *world)
{
    static const struct hearth_pprof_limits no_limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pprof_notes notes = {0};
    struct hearth_buf *raw = array(arena, 1, sizeof *raw); /* lives as long as the texts */
    hearth_buf_init(raw, 0);
    if (!read_inflated(path, raw, &err)) {
        (void)fprintf(stderr, "make_pool: cannot read %s: %s\n", path, err.msg);
        exit(1);
    }
    must(hearth_pprof_decode(hearth_buf_view(raw), &no_limits, arena, &world->seed, &notes, &err),
         &err);
    world->first = array(arena, (size_t)n + 2, sizeof world->first[0]);
    world->locs = array(arena, (size_t)n * MAX_DEPTH, sizeof world->locs[0]);
    world->upto = array(arena, n, sizeof world->upto[0]);
    copy_stacks(world, n, arena);
    splice_stacks(world, n, distinct, arena);
    double sum = 0, flat = distinct ? n / 10.0 : 10; /* all of many stacks are to be met */
    for (uint32_t i = 0; i < world->n_stacks; i++) {
        sum += 1.0 / ((double)i + flat);
        world->upto[i] = sum;
    }
}

static uint32_t draw(const struct world *world)
{
    double at = world->upto[world->n_stacks - 1] * (double)below(UINT32_MAX) / 4294967295.0;
    uint32_t low = 0, high = world->n_stacks - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (world->upto[middle] < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Indices of the seed to those of the profile, + 1. */
struct remap {
    const struct hearth_profile *from;
    struct hearth_profile *to;
    uint32_t *string, *mapping, *function, *location;
};

static uint32_t map_string(struct remap *m, uint32_t i)
{
    if (m->string[i] == 0) {
        m->to->strings[m->to->n_strings] = m->from->strings[i];
        m->string[i] = ++m->to->n_strings;
    }
    return m->string[i] - 1;
}

static uint32_t map_mapping(struct remap *m, uint32_t i)
{
    if (i == HEARTH_NO_INDEX) {
        return i;
    }
    if (m->mapping[i] == 0) {
        struct hearth_mapping mapping = m->from->mappings[i];
        mapping.filename = map_string(m, mapping.filename);
        mapping.build_id = map_string(m, mapping.build_id);
        m->to->mappings[m->to->n_mappings] = mapping;
        m->mapping[i] = ++m->to->n_mappings;
    }
    return m->mapping[i] - 1;
}

static uint32_t map_function(struct remap *m, uint32_t i)
{
    if (i == HEARTH_NO_INDEX) {
        return i;
    }
    if (m->function[i] == 0) {
        struct hearth_function function = m->from->functions[i];
        function.name = map_string(m, function.name);
        function.system_name = map_string(m, function.system_name);
        function.filename = map_string(m, function.filename);
        m->to->functions[m->to->n_functions] = function;
        m->function[i] = ++m->to->n_functions;
    }
    return m->function[i] - 1;
}

static uint32_t map_location(struct remap *m, uint32_t i)
{
    if (m->location[i] == 0) {
        struct hearth_location location = m->from->locations[i];
        const struct hearth_line *lines = m->from->lines + location.first_line;
        location.mapping = map_mapping(m, location.mapping);
        location.first_line = m->to->n_lines;
        for (uint32_t l = 0; l < location.n_lines; l++) {
            m->to->lines[m->to->n_lines++] =
                (struct hearth_line){map_function(m, lines[l].function), lines[l].line};
        }
        m->to->locations[m->to->n_locations] = location;
        m->location[i] = ++m->to->n_locations;
    }
    return m->location[i] - 1;
}

static uint32_t own_string(struct hearth_profile *p, const char *text)
{
    p->strings[p->n_strings] = hearth_str_c(text);
    return p->n_strings++;
}

/* Draw until n different stacks were hit; they stand in hit[] in the order they came. */
static void draw_samples(const struct world *world, uint32_t n, uint32_t *hit, uint32_t *counts)
{
    for (uint32_t n_hit = 0; n_hit < n;) {
        uint32_t s = draw(world);
        if (counts[s]++ == 0) {
            hit[n_hit++] = s;
        }
    }
}

static void add_type(struct hearth_profile *p, const char *type, const char *unit)
{
    uint32_t name = own_string(p, type);
    p->types[p->n_types++] = (struct hearth_value_type){name, own_string(p, unit)};
}

/* Of a stack that was drawn `count` times. A stack allocates objects of one size; most are freed. */
static void set_values(struct hearth_profile *p, uint32_t sample, uint32_t stack, uint32_t count)
{
    int64_t *values = p->values + (size_t)sample * p->n_types;
    values[0] = count;
    if (p->n_types == 2) {
        values[1] = count * p->period;
        return;
    }
    int64_t size = 16 << stack % 12;
    values[0] = (int64_t)count * (1 + below(2000));
    values[1] = values[0] * size;
    values[2] = below(3) == 0 ? values[0] / 16 : 0;
    values[3] = values[2] * size;
}

static struct hearth_profile make_profile(const struct world *world, uint32_t n,
                                          const struct pool_head *head, uint32_t build,
                                          struct hearth_arena *arena)
{
    const struct hearth_profile *seed = &world->seed;
    struct hearth_profile p = {.n_samples = n, .period = head->is_heap ? 524288 : 10000000};
    p.duration_ns = INT64_C(15000000000);
    p.strings = array(arena, (size_t)seed->n_strings + 16, sizeof p.strings[0]);
    p.types = array(arena, 4, sizeof p.types[0]);
    p.mappings = array(arena, seed->n_mappings, sizeof p.mappings[0]);
    p.functions = array(arena, seed->n_functions, sizeof p.functions[0]);
    p.lines = array(arena, seed->n_lines, sizeof p.lines[0]);
    p.locations = array(arena, seed->n_locations, sizeof p.locations[0]);
    p.stack_first = array(arena, (size_t)n + 1, sizeof p.stack_first[0]);
    p.stack_locs = array(arena, (size_t)n * MAX_DEPTH, sizeof p.stack_locs[0]);
    p.values = array(arena, (size_t)n * 4, sizeof p.values[0]);
    p.label_first = array(arena, (size_t)n + 1, sizeof p.label_first[0]);
    struct remap map = {
        .from = seed,
        .to = &p,
        .string = array(arena, seed->n_strings, sizeof map.string[0]),
        .mapping = array(arena, seed->n_mappings, sizeof map.mapping[0]),
        .function = array(arena, seed->n_functions, sizeof map.function[0]),
        .location = array(arena, seed->n_locations, sizeof map.location[0]),
    };
    (void)map_string(&map, 0);
    if (head->is_heap) {
        add_type(&p, "alloc_objects", "count");
        add_type(&p, "alloc_space", "bytes");
        add_type(&p, "inuse_objects", "count");
        add_type(&p, "inuse_space", "bytes");
        p.period_type = (struct hearth_value_type){own_string(&p, "space"), p.types[1].unit};
    } else {
        add_type(&p, "samples", "count");
        add_type(&p, "cpu", "nanoseconds");
        p.period_type = p.types[1];
    }
    uint32_t *hit = array(arena, n, sizeof hit[0]);
    uint32_t *counts = array(arena, world->n_stacks, sizeof counts[0]);
    draw_samples(world, n, hit, counts);
    for (uint32_t s = 0; s < n; s++) {
        for (uint32_t l = world->first[hit[s]]; l < world->first[hit[s] + 1]; l++) {
            p.stack_locs[p.n_stack_locs++] = map_location(&map, world->locs[l]);
        }
        p.stack_first[s + 1] = p.n_stack_locs;
        set_values(&p, s, hit[s], counts[hit[s]]);
    }
    if (head->n_builds > 1) {
        char *id = array(arena, 1, 32);
        (void)snprintf(id, 32, "build-%04u", build);
        uint32_t build_id = own_string(&p, id);
        for (uint32_t m = 0; m < p.n_mappings; m++) {
            p.mappings[m].build_id = build_id;
        }
    }
    return p;
}

/* A gzip member up to its last block. Returns its size. */
static uint32_t deflate_open(struct hearth_str raw, struct hearth_buf *out)
{
    z_stream z = {0};
    size_t room = raw.n + raw.n / 100 + 256;
    char *to = hearth_buf_reserve(out, room);
    if (to == NULL ||
        deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        (void)fprintf(stderr, "make_pool: no memory\n");
        exit(1);
    }
    z.next_in = (unsigned char *)(uintptr_t)raw.p;
    z.avail_in = (unsigned)raw.n;
    z.next_out = (unsigned char *)to;
    z.avail_out = (unsigned)room;
    if (deflate(&z, Z_SYNC_FLUSH) != Z_OK || z.avail_in > 0 || z.avail_out == 0) {
        (void)fprintf(stderr, "make_pool: cannot compress\n");
        exit(1);
    }
    uint32_t n = (uint32_t)(room - z.avail_out);
    (void)deflateEnd(&z);
    out->n += n;
    return n;
}

int main(int argc, char **argv)
{
    struct pool_head head = {.magic = POOL_MAGIC, .n_builds = 1};
    uint32_t n_stacks = 0;
    int seeds = 4;
    for (; seeds < argc && strncmp(argv[seeds], "--", 2) == 0; seeds++) {
        if (strcmp(argv[seeds], "--heap") == 0) {
            head.is_heap = 1;
        } else if (seeds + 1 < argc) {
            uint32_t n = (uint32_t)strtoul(argv[seeds + 1], NULL, 10);
            *(strcmp(argv[seeds], "--builds") == 0 ? &head.n_builds : &n_stacks) = n;
            seeds++;
        }
    }
    if (seeds >= argc || head.n_builds == 0) {
        (void)fprintf(stderr, "make_pool OUT SERVICES PROFILES [--heap] [--stacks N] [--builds N] "
                              "SEED...\n");
        return 2;
    }
    head.n_services = (uint32_t)strtoul(argv[2], NULL, 10);
    head.n_profiles = (uint32_t)strtoul(argv[3], NULL, 10);
    struct hearth_arena arena, scratch;
    hearth_arena_init(&arena, 0);
    hearth_arena_init(&scratch, 0);
    size_t n_entries = (size_t)head.n_services * head.n_profiles, at = 0;
    struct pool_entry *entries = array(&arena, n_entries, sizeof entries[0]);
    struct hearth_buf bodies, raw;
    hearth_buf_init(&bodies, 0);
    hearth_buf_init(&raw, 0);
    for (uint32_t s = 0; s < head.n_services; s++) {
        struct world world = {0};
        make_world(argv[seeds + (int)(s % (uint32_t)(argc - seeds))],
                   n_stacks > 0 ? n_stacks : LEAST_STACKS + s * MORE_STACKS, n_stacks > 0, &arena,
                   &world);
        for (uint32_t i = 0; i < head.n_profiles; i++, at++) {
            uint32_t n = MIN_SAMPLES + below(MAX_SAMPLES - MIN_SAMPLES + 1);
            struct hearth_profile profile =
                make_profile(&world, n, &head, i % head.n_builds, &scratch);
            hearth_buf_reset(&raw);
            hearth_pprof_encode(&profile, &raw);
            hearth_arena_reset(&scratch);
            entries[at] = (struct pool_entry){
                .offset = sizeof head + n_entries * sizeof entries[0] + bodies.n,
                .crc = (uint32_t)crc32(0, (const unsigned char *)raw.p, (unsigned)raw.n),
                .n_raw = (uint32_t)raw.n,
                .n_samples = n,
            };
            entries[at].n_bytes = deflate_open(hearth_buf_view(&raw), &bodies);
        }
    }
    FILE *out = fopen(argv[1], "wb");
    if (out == NULL || fwrite(&head, sizeof head, 1, out) != 1 ||
        fwrite(entries, sizeof entries[0], n_entries, out) != n_entries ||
        fwrite(bodies.p, 1, bodies.n, out) != bodies.n || fclose(out) != 0) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
