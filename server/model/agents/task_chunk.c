/*
 * task_chunk.c -- stack traces of a task, gathered into chunks (contract:
 * hearth/model/task_chunk.h).
 *
 * Bytes, all numbers varints: 1 (version), kind, n_cut; strings: n, their lengths, their bytes;
 * stacks: n, their lengths, their frames; records: n, then by column: kernel stack + 1 (0: none),
 * the agent's id of it (zigzag), user stack + 1, its id, count, and for off-CPU the duration.
 */
#include "hearth/model/task_chunk.h"

#include "hearth/base/mem.h"
#include "hearth/base/varint.h"

#include <assert.h>

#define VERSION 1

/* A growing array in the arena. */
struct task_table {
    void *p;
    uint32_t n, cap;
};

struct hearth_task_builder {
    enum hearth_stack_kind kind;
    struct hearth_task_limits limits;
    struct hearth_arena *arena;
    struct hearth_idmap string_ids, stack_ids, record_ids;
    struct task_table strings, stacks, frames, records;
    uint64_t n_cut, seed;
    size_t n_text; /* bytes of all strings */
};

/* ---- gathering ---- */

struct hearth_task_builder *hearth_task_builder_new(enum hearth_stack_kind kind,
                                                    const struct hearth_task_limits *limits,
                                                    struct hearth_arena *arena)
{
    assert(limits != NULL && arena != NULL);

    struct hearth_task_builder *b = hearth_mem_zalloc(sizeof *b);

    if (b == NULL) {
        return NULL;
    }

    b->kind = kind;
    b->limits = *limits;
    b->arena = arena;
    b->seed = hearth_hash_process_seed();
    hearth_idmap_init(&b->string_ids);
    hearth_idmap_init(&b->stack_ids);
    hearth_idmap_init(&b->record_ids);

    return b;
}

void hearth_task_builder_free(struct hearth_task_builder *b)
{
    if (b != NULL) {
        hearth_idmap_release(&b->string_ids);
        hearth_idmap_release(&b->stack_ids);
        hearth_idmap_release(&b->record_ids);
        hearth_mem_free(b);
    }
}

/*
 * Make room for n more elements in the arena. Outgrown arrays stay there; together they are smaller
 * than the current one.
 */
static bool make_table_room(struct hearth_task_builder *b, struct task_table *table, size_t n,
                            size_t size)
{
    if (n <= table->cap - table->n) {
        return true;
    }

    size_t cap = table->cap == 0 ? 64 : (size_t)table->cap * 2;
    while (cap < table->n + n) {
        cap *= 2;
    }

    void *p = cap < UINT32_MAX ? hearth_arena_array(b->arena, cap, size) : NULL;
    if (p == NULL) {
        return false;
    }

    if (table->n > 0) {
        memcpy(p, table->p, table->n * size);
    }

    table->p = p;
    table->cap = (uint32_t)cap;

    return true;
}

/* Find or add a string. HEARTH_IDMAP_NONE: memory was refused. */
static uint32_t intern_task_string(struct hearth_task_builder *b, struct hearth_str text,
                                   struct hearth_task_notes *notes)
{
    /* Keep the tail of a long symbol. */
    if (b->limits.max_symbol_bytes > 0 && text.n > b->limits.max_symbol_bytes) {
        size_t cut = text.n - b->limits.max_symbol_bytes;
        while (cut < text.n && ((unsigned char)text.p[cut] & 0xc0) == 0x80) {
            cut++; /* start at a whole character */
        }
        text = hearth_str_n(text.p + cut, text.n - cut);
        notes->strings_cut++;
    }

    /* Find it, or copy it. */
    struct hearth_hash128 key = hearth_hash128(text.p, text.n, b->seed);
    uint32_t id = hearth_idmap_find(&b->string_ids, key);
    if (id != HEARTH_IDMAP_NONE) {
        return id;
    }

    struct hearth_str copy = hearth_arena_str(b->arena, text);
    bool inserted;
    if (copy.p == NULL || !make_table_room(b, &b->strings, 1, sizeof copy)) {
        return HEARTH_IDMAP_NONE;
    }

    id = hearth_idmap_intern(&b->string_ids, key, b->strings.n, &inserted);
    if (id != HEARTH_IDMAP_NONE) {
        ((struct hearth_str *)b->strings.p)[b->strings.n++] = copy;
        b->n_text += text.n + 1;
    }

    return id;
}

/* Find or add a stack. HEARTH_IDMAP_NONE: memory was refused. */
static uint32_t intern_stack(struct hearth_task_builder *b, const struct hearth_str *symbols,
                             size_t n, struct hearth_task_notes *notes)
{
    if (n > UINT32_MAX / 2 || !make_table_room(b, &b->frames, n, sizeof(uint32_t))) {
        return HEARTH_IDMAP_NONE;
    }

    /* Write its frames after those of the other stacks. */
    uint32_t *frames = (uint32_t *)b->frames.p + b->frames.n;
    for (size_t i = 0; i < n; i++) {
        frames[i] = intern_task_string(b, symbols[i], notes);
        if (frames[i] == HEARTH_IDMAP_NONE) {
            return HEARTH_IDMAP_NONE;
        }
    }

    /* Keep them only if the stack is new. */
    bool inserted;
    if (!make_table_room(b, &b->stacks, 1, sizeof(struct hearth_task_stack))) {
        return HEARTH_IDMAP_NONE;
    }

    uint32_t id = hearth_idmap_intern(
        &b->stack_ids, hearth_hash128(frames, n * sizeof *frames, b->seed), b->stacks.n, &inserted);
    if (id != HEARTH_IDMAP_NONE && inserted) {
        ((struct hearth_task_stack *)b->stacks.p)[b->stacks.n++] =
            (struct hearth_task_stack){b->frames.n, (uint32_t)n};
        b->frames.n += (uint32_t)n;
    }

    return id;
}

/* Cut a stack deeper than the limit at its leaf end, which begins with the kernel's frames. */
static void cut_depth(struct hearth_task_builder *b, struct hearth_task_datum *d,
                      struct hearth_task_notes *notes)
{
    size_t depth = d->n_kernel + d->n_user;

    if (b->limits.max_depth == 0 || depth <= b->limits.max_depth) {
        return;
    }

    size_t n = depth - b->limits.max_depth;
    size_t of_kernel = n < d->n_kernel ? n : d->n_kernel;
    d->n_kernel -= of_kernel;
    d->n_user -= n - of_kernel;
    /* A part without frames may have no array. */
    d->kernel = d->n_kernel > 0 ? d->kernel + of_kernel : NULL;
    d->user = d->n_user > 0 ? d->user + (n - of_kernel) : NULL;
    notes->stacks_cut++;
    notes->frames_cut += n;
}

static enum hearth_status add_record(struct hearth_task_builder *b,
                                     const struct hearth_task_datum *d,
                                     struct hearth_task_record *record,
                                     struct hearth_task_notes *notes, struct hearth_err *err)
{
    if (d->n_kernel > 0) {
        record->kernel = intern_stack(b, d->kernel, d->n_kernel, notes);
    }

    if (d->n_user > 0) {
        record->user = intern_stack(b, d->user, d->n_user, notes);
    }

    bool failed = (d->n_kernel > 0 && record->kernel == HEARTH_IDMAP_NONE) ||
                  (d->n_user > 0 && record->user == HEARTH_IDMAP_NONE);
    if (failed || !make_table_room(b, &b->records, 1, sizeof *record)) {
        return HEARTH_FAIL_ARENA(err, b->arena);
    }

    /* The first record with these numbers is kept. */
    bool inserted;
    uint32_t id = hearth_idmap_intern(&b->record_ids, hearth_task_record_key(record), b->records.n,
                                      &inserted);
    if (id == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to gather stack traces");
    }

    if (inserted) {
        ((struct hearth_task_record *)b->records.p)[b->records.n++] = *record;
    } else {
        notes->n_repeated++;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_task_builder_add(struct hearth_task_builder *b,
                                           const struct hearth_task_datum *datum,
                                           struct hearth_task_notes *notes, struct hearth_err *err)
{
    assert(b != NULL && datum != NULL && notes != NULL);

    if (datum->count < 0 || datum->duration_ns < 0) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "a stack trace was counted %lld times, for %lld nanoseconds: neither may "
            "be negative",
            (long long)datum->count, (long long)datum->duration_ns);
    }

    /* Use only the parts that the datum has; ignore it if it is empty. */
    struct hearth_task_datum d = *datum;
    struct hearth_task_record record = {
        .kernel = HEARTH_NO_STACK,
        .user = HEARTH_NO_STACK,
        .kernel_id = d.has_kernel ? d.kernel_id : 0,
        .user_id = d.has_user ? d.user_id : 0,
        .count = d.count,
        .duration_ns = b->kind == HEARTH_STACKS_OFF_CPU ? d.duration_ns : 0,
    };
    d.n_kernel = d.has_kernel ? d.n_kernel : 0;
    d.n_user = d.has_user ? d.n_user : 0;
    if (d.n_kernel + d.n_user == 0 || (record.count == 0 && record.duration_ns == 0)) {
        notes->n_empty++;
        return HEARTH_OK;
    }

    /* Cut and add it. */
    uint64_t before = notes->stacks_cut + notes->strings_cut;
    cut_depth(b, &d, notes);
    HEARTH_TRY(add_record(b, &d, &record, notes, err));
    b->n_cut += notes->stacks_cut + notes->strings_cut != before;

    return HEARTH_OK;
}

void hearth_task_builder_chunk(const struct hearth_task_builder *b, struct hearth_task_chunk *ret)
{
    *ret = (struct hearth_task_chunk){
        .kind = b->kind,
        .n_cut = b->n_cut,
        .strings = b->strings.p,
        .n_strings = b->strings.n,
        .stacks = b->stacks.p,
        .n_stacks = b->stacks.n,
        .frames = b->frames.p,
        .n_frames = b->frames.n,
        .records = b->records.p,
        .n_records = b->records.n,
    };
}

size_t hearth_task_builder_bytes(const struct hearth_task_builder *b)
{
    return b->n_text + b->frames.n * sizeof(uint32_t) +
           b->records.n * sizeof(struct hearth_task_record);
}

/* ---- bytes ---- */

struct hearth_hash128 hearth_task_record_key(const struct hearth_task_record *record)
{
    const int32_t parts[4] = {record->kernel_id, record->user_id, record->kernel != HEARTH_NO_STACK,
                              record->user != HEARTH_NO_STACK};
    return hearth_hash128(parts, sizeof parts, 0);
}

/* Hash of a stack's texts; 0 for HEARTH_NO_STACK. */
static struct hearth_hash128 hash_task_stack(const struct hearth_task_chunk *chunk, uint32_t stack)
{
    struct hearth_hash128 hash = {0};

    if (stack == HEARTH_NO_STACK) {
        return hash;
    }

    const struct hearth_task_stack *s = &chunk->stacks[stack];
    for (uint32_t i = 0; i < s->n; i++) {
        struct hearth_str text = chunk->strings[chunk->frames[s->first + i]];
        const struct hearth_hash128 parts[2] = {hash, hearth_hash128(text.p, text.n, 0)};
        hash = hearth_hash128(parts, sizeof parts, 0);
    }

    return hash;
}

struct hearth_hash128 hearth_task_chunk_hash(const struct hearth_task_chunk *chunk)
{
    struct hearth_hash128 sum = {(uint64_t)chunk->kind, chunk->n_records};

    for (uint32_t i = 0; i < chunk->n_records; i++) {
        const struct hearth_task_record *r = &chunk->records[i];
        const struct {
            struct hearth_hash128 key, kernel, user;
            int64_t count, duration_ns;
        } parts = {hearth_task_record_key(r), hash_task_stack(chunk, r->kernel),
                   hash_task_stack(chunk, r->user), r->count, r->duration_ns};

        struct hearth_hash128 hash = hearth_hash128(&parts, sizeof parts, 0);
        sum.lo += hash.lo; /* a sum, because the order of records is irrelevant */
        sum.hi += hash.hi;
    }

    return hearth_hash128(&sum, sizeof sum, 0);
}

static void put_stack_index(struct hearth_buf *out, uint32_t stack)
{
    hearth_buf_varint(out, stack == HEARTH_NO_STACK ? 0 : (uint64_t)stack + 1);
}

void hearth_task_chunk_encode(const struct hearth_task_chunk *c, struct hearth_buf *out)
{
    assert(c != NULL && out != NULL);

    /* Head and strings. */
    hearth_buf_varint(out, VERSION);
    hearth_buf_varint(out, (uint64_t)c->kind);
    hearth_buf_varint(out, c->n_cut);
    hearth_buf_varint(out, c->n_strings);
    for (uint32_t i = 0; i < c->n_strings; i++) {
        hearth_buf_varint(out, c->strings[i].n);
    }

    for (uint32_t i = 0; i < c->n_strings; i++) {
        hearth_buf_str(out, c->strings[i]);
    }

    /* Stacks. */
    hearth_buf_varint(out, c->n_stacks);
    for (uint32_t i = 0; i < c->n_stacks; i++) {
        hearth_buf_varint(out, c->stacks[i].n);
    }

    for (uint32_t i = 0; i < c->n_stacks; i++) {
        for (uint32_t k = 0; k < c->stacks[i].n; k++) {
            hearth_buf_varint(out, c->frames[c->stacks[i].first + k]);
        }
    }

    /* Records, column by column. */
    const struct hearth_task_record *r = c->records;
    hearth_buf_varint(out, c->n_records);
    for (uint32_t i = 0; i < c->n_records; i++) {
        put_stack_index(out, r[i].kernel);
    }

    for (uint32_t i = 0; i < c->n_records; i++) {
        hearth_buf_varint(out, hearth_zigzag(r[i].kernel_id));
    }

    for (uint32_t i = 0; i < c->n_records; i++) {
        put_stack_index(out, r[i].user);
    }

    for (uint32_t i = 0; i < c->n_records; i++) {
        hearth_buf_varint(out, hearth_zigzag(r[i].user_id));
    }

    for (uint32_t i = 0; i < c->n_records; i++) {
        hearth_buf_varint(out, (uint64_t)r[i].count);
    }

    for (uint32_t i = 0; c->kind == HEARTH_STACKS_OFF_CPU && i < c->n_records; i++) {
        hearth_buf_varint(out, (uint64_t)r[i].duration_ns);
    }
}

/* ---- reading ---- */

struct chunk_reader {
    const uint8_t *at, *end;
    struct hearth_arena *arena;
    struct hearth_err *err;
    const char *what; /* part that is being read, for messages */
};

static enum hearth_status fail_chunk(const struct chunk_reader *r)
{
    return HEARTH_FAIL(r->err, HEARTH_CORRUPT, "a chunk of stack traces is damaged: %s", r->what);
}

/* Read a number of at most `max`. */
static enum hearth_status take_number(struct chunk_reader *r, uint64_t max, uint64_t *ret)
{
    return hearth_varint_read(&r->at, r->end, ret) && *ret <= max ? HEARTH_OK : fail_chunk(r);
}

/*
 * Read the number of elements that follow. Each has at least one byte, so memory is proportional to
 * the bytes.
 */
static enum hearth_status take_count(struct chunk_reader *r, const char *what, uint32_t *ret)
{
    uint64_t n;

    r->what = what;
    HEARTH_TRY(take_number(r, (uint64_t)(r->end - r->at), &n));
    if (n > (uint64_t)(r->end - r->at) || n >= UINT32_MAX) {
        return fail_chunk(r);
    }

    *ret = (uint32_t)n;

    return HEARTH_OK;
}

static enum hearth_status take_strings(struct chunk_reader *r, struct hearth_task_chunk *c)
{
    HEARTH_TRY(take_count(r, "strings", &c->n_strings));
    c->strings = hearth_arena_array(r->arena, c->n_strings, sizeof *c->strings);
    if (c->strings == NULL) {
        return HEARTH_FAIL_ARENA(r->err, r->arena);
    }

    /* Lengths, then bytes. */
    uint64_t n, sum = 0;
    for (uint32_t i = 0; i < c->n_strings; i++) {
        HEARTH_TRY(take_number(r, (uint64_t)(r->end - r->at), &n));
        c->strings[i].n = (size_t)n;
        sum += n; /* no overflow: each is below the number of bytes */
    }

    if (sum > (uint64_t)(r->end - r->at)) {
        return fail_chunk(r);
    }

    for (uint32_t i = 0; i < c->n_strings; i++) {
        c->strings[i].p = (const char *)r->at;
        r->at += c->strings[i].n;
    }

    return HEARTH_OK;
}

static enum hearth_status take_stacks(struct chunk_reader *r, struct hearth_task_chunk *c)
{
    HEARTH_TRY(take_count(r, "stacks", &c->n_stacks));
    c->stacks = hearth_arena_array(r->arena, c->n_stacks, sizeof *c->stacks);
    if (c->stacks == NULL) {
        return HEARTH_FAIL_ARENA(r->err, r->arena);
    }

    /* Lengths. */
    uint64_t n, sum = 0;
    for (uint32_t i = 0; i < c->n_stacks; i++) {
        HEARTH_TRY(take_number(r, (uint64_t)(r->end - r->at), &n));
        if (sum + n >= UINT32_MAX) {
            return fail_chunk(r);
        }

        c->stacks[i] = (struct hearth_task_stack){(uint32_t)sum, (uint32_t)n};
        sum += n;
    }

    if (sum > (uint64_t)(r->end - r->at)) {
        return fail_chunk(r);
    }

    /* Frames. */
    c->n_frames = (uint32_t)sum;
    c->frames = hearth_arena_array(r->arena, c->n_frames, sizeof *c->frames);
    if (c->frames == NULL) {
        return HEARTH_FAIL_ARENA(r->err, r->arena);
    }

    for (uint32_t i = 0; i < c->n_frames; i++) {
        HEARTH_TRY(take_number(r, UINT32_MAX, &n));
        if (n >= c->n_strings) {
            return fail_chunk(r);
        }

        c->frames[i] = (uint32_t)n;
    }

    return HEARTH_OK;
}

static enum hearth_status take_stack_index(struct chunk_reader *r,
                                           const struct hearth_task_chunk *c, uint32_t *ret)
{
    uint64_t n;
    HEARTH_TRY(take_number(r, c->n_stacks, &n));
    *ret = n == 0 ? HEARTH_NO_STACK : (uint32_t)(n - 1);
    return HEARTH_OK;
}

static enum hearth_status take_id(struct chunk_reader *r, int32_t *ret)
{
    uint64_t n;
    HEARTH_TRY(take_number(r, UINT32_MAX, &n));
    *ret = (int32_t)hearth_unzigzag(n);
    return HEARTH_OK;
}

static enum hearth_status take_amount(struct chunk_reader *r, int64_t *ret)
{
    uint64_t n;
    HEARTH_TRY(take_number(r, INT64_MAX, &n));
    *ret = (int64_t)n;
    return HEARTH_OK;
}

static enum hearth_status take_records(struct chunk_reader *r, struct hearth_task_chunk *c)
{
    HEARTH_TRY(take_count(r, "records", &c->n_records));
    c->records = hearth_arena_calloc(r->arena, c->n_records, sizeof *c->records);
    if (c->records == NULL) {
        return HEARTH_FAIL_ARENA(r->err, r->arena);
    }

    /* The kernel's stacks and ids. */
    for (uint32_t i = 0; i < c->n_records; i++) {
        HEARTH_TRY(take_stack_index(r, c, &c->records[i].kernel));
    }

    for (uint32_t i = 0; i < c->n_records; i++) {
        HEARTH_TRY(take_id(r, &c->records[i].kernel_id));
    }

    /* The program's stacks and ids. */
    for (uint32_t i = 0; i < c->n_records; i++) {
        HEARTH_TRY(take_stack_index(r, c, &c->records[i].user));
        if (c->records[i].user == HEARTH_NO_STACK && c->records[i].kernel == HEARTH_NO_STACK) {
            return fail_chunk(r);
        }
    }

    for (uint32_t i = 0; i < c->n_records; i++) {
        HEARTH_TRY(take_id(r, &c->records[i].user_id));
    }

    /* Counts and durations. */
    for (uint32_t i = 0; i < c->n_records; i++) {
        HEARTH_TRY(take_amount(r, &c->records[i].count));
    }

    for (uint32_t i = 0; c->kind == HEARTH_STACKS_OFF_CPU && i < c->n_records; i++) {
        HEARTH_TRY(take_amount(r, &c->records[i].duration_ns));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_task_chunk_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                            struct hearth_task_chunk *ret, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL);

    struct chunk_reader r = {(const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n, arena,
                             err, "head"};
    uint64_t version, kind;

    *ret = (struct hearth_task_chunk){.kind = (enum hearth_stack_kind)0};
    /* Head. */
    HEARTH_TRY(take_number(&r, UINT64_MAX, &version));
    HEARTH_TRY(take_number(&r, HEARTH_STACKS_OFF_CPU, &kind));
    HEARTH_TRY(take_number(&r, UINT64_MAX, &ret->n_cut));
    if (version != VERSION || kind == 0) {
        return fail_chunk(&r);
    }

    /* Tables. */
    ret->kind = (enum hearth_stack_kind)kind;
    HEARTH_TRY(take_strings(&r, ret));
    HEARTH_TRY(take_stacks(&r, ret));
    HEARTH_TRY(take_records(&r, ret));
    r.what = "more bytes than records";

    return r.at == r.end ? HEARTH_OK : fail_chunk(&r);
}
