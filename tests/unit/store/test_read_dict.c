/* test_read_dict.c -- the dictionaries of queries: loading, extending, keeping, damage. */
#include "hearth/codec/compress.h"

#include "pg/pg.h"
#include "read_fixture.h"
#include "session/partitions.h"
#include "store_scope.h"
#include "synth_profile.h"

#define DAY_OF_TEST 20411

/* ---- a dictionary that is written piece by piece, as ingest does ---- */

struct author {
    const char *url;
    int32_t service_id;
    struct hearth_arena arena;
    struct synth_world world;
    struct hearth_dict_writer *writer;
    struct hearth_dict *twin; /* what a reader has to see */
};

static void author_init(struct author *author, const char *url, int32_t service_id)
{
    *author = (struct author){.url = url, .service_id = service_id};
    hearth_arena_init(&author->arena, 0);
    synth_world_init(&author->world, (uint64_t)service_id, 300, 900, 3000, 12, &author->arena);
    author->writer = hearth_dict_writer_new();
    author->twin = hearth_dict_new();
    assert_true(author->writer != NULL && author->twin != NULL);
}

static void author_release(struct author *author)
{
    hearth_dict_writer_free(author->writer);
    hearth_dict_free(author->twin);
    hearth_arena_release(&author->arena);
}

static void insert_chunk(const struct author *author, struct hearth_dict_mark from,
                         int32_t n_stacks, struct hearth_str payload)
{
    struct hearth_arena arena;
    struct hearth_pg_params params;
    struct hearth_pg pg = {.url = test_secret(author->url)};
    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32(&params, author->service_id);
    hearth_pg_param_i32(&params, DAY_OF_TEST);
    hearth_pg_param_i32(&params, 1);
    hearth_pg_param_i32(&params, (int32_t)from.n_stacks);
    hearth_pg_param_i32(&params, (int32_t)from.n_strings);
    hearth_pg_param_i32(&params, n_stacks);
    hearth_pg_param_bytes(&params, payload);
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    assert_ok(hearth_pg_exec(&pg,
                             "INSERT INTO hearth_data.dict_chunk (service_id, day, writer_id,"
                             " first_stack, first_string, n_stacks, payload)"
                             " VALUES ($1, $2, $3, $4, $5, $6, $7)",
                             &params, NULL, NULL, NULL, &err));
    hearth_pg_close(&pg);
    hearth_arena_release(&arena);
}

/* Meet n_samples stacks, most of them new, and store what is new as one chunk. How many stacks
 * there are now. */
static uint32_t author_write(struct author *author, uint32_t n_samples)
{
    struct hearth_arena arena;
    struct hearth_stack_keys keys;
    struct hearth_buf chunk, payload;
    struct hearth_dict_mark from = hearth_dict_writer_committed(author->writer), upto;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&chunk, 0);
    hearth_buf_init(&payload, 0);
    struct hearth_profile profile = synth_profile(&author->world, n_samples, 1, &arena, NULL);
    uint32_t *ids = hearth_arena_array(&arena, n_samples, sizeof *ids);
    assert_ok(hearth_stack_keys_make(&profile, &arena, &keys, &err));
    assert_ok(hearth_dict_writer_resolve(author->writer, &profile, &keys, ids, &err));
    hearth_dict_writer_cut(author->writer, &chunk, &upto);
    assert_ok(hearth_zstd(hearth_buf_view(&chunk), 1, &payload, &err));
    insert_chunk(author, from, (int32_t)(upto.n_stacks - from.n_stacks), hearth_buf_view(&payload));
    hearth_dict_writer_commit(author->writer, upto);
    assert_ok(hearth_dict_apply(author->twin, hearth_buf_view(&chunk), &err));
    assert_ok(hearth_dict_build_tree(author->twin, &err));
    hearth_buf_release(&chunk);
    hearth_buf_release(&payload);
    hearth_arena_release(&arena);
    return upto.n_stacks;
}

/* A chunk that holds one string and nothing else: what is left of a profile that was given up
 * half-way. */
static void author_write_string(struct author *author)
{
    struct hearth_buf chunk, payload;
    hearth_buf_init(&chunk, 0);
    hearth_buf_init(&payload, 0);
    struct hearth_dict_mark mark = hearth_dict_writer_committed(author->writer);
    uint32_t starts[5] = {mark.n_strings, mark.n_mappings, mark.n_functions, mark.n_locations,
                          mark.n_stacks};
    hearth_buf_byte(&chunk, 1);
    for (int t = 0; t < 5; t++) {
        hearth_buf_varint(&chunk, starts[t]);
        hearth_buf_varint(&chunk, t == 0 ? 1 : 0);
        hearth_buf_varint(&chunk, t == 0 ? 5 : 0);
    }
    hearth_buf_append(&chunk, "\4lone", 5);
    assert_ok(hearth_zstd(hearth_buf_view(&chunk), 1, &payload, &err));
    insert_chunk(author, mark, 0, hearth_buf_view(&payload));
    hearth_buf_release(&chunk);
    hearth_buf_release(&payload);
}

static void ensure_day(struct hearth_store *store, const char *url)
{
    struct hearth_pg pg = {.url = test_secret(url)};
    assert_ok(hearth_pg_connect(&pg, CONNECT_MS, &err));
    assert_ok(hearth_partitions_ensure(store, &pg, HEARTH_LEAVES_ALL, DAY_OF_TEST, &err));
    hearth_pg_close(&pg);
}

static struct hearth_store *open_with_cache(const char *url, size_t read_dict_bytes)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.url = test_secret(url);
    options.read_dict_bytes = read_dict_bytes;
    struct hearth_store *store = open_ready(url, &options);
    ensure_day(store, url);
    return store;
}

static const struct hearth_dict *acquire(struct hearth_store *store, int32_t service_id,
                                         uint32_t min_stacks)
{
    const struct hearth_dict *dict = NULL;
    assert_ok(hearth_store_read_dict(STORE_OWNER(store, NULL),
                                     (struct hearth_dict_key){service_id, DAY_OF_TEST, 1},
                                     min_stacks, &dict, &err));
    assert_true(dict->n_tree_stacks >= min_stacks);
    return dict;
}

static uint32_t parent_of(const struct hearth_dict *dict, uint32_t node)
{
    return hearth_name_tree_node(dict->tree, node).parent;
}

static struct hearth_str name_of(const struct hearth_dict *dict, uint32_t node)
{
    return hearth_name_tree_name(dict->tree, hearth_name_tree_node(dict->tree, node).name);
}

/* The same names from the leaf to the root for every stack of `b`. */
static bool same_stacks(const struct hearth_dict *a, const struct hearth_dict *b)
{
    if (a->n_tree_stacks < b->n_tree_stacks) {
        return false;
    }
    for (uint32_t s = 0; s < b->n_tree_stacks; s++) {
        uint32_t x = a->stack_node[s], y = b->stack_node[s];
        while (x != 0 && y != 0) {
            if (!hearth_str_eq(name_of(a, x), name_of(b, y))) {
                return false;
            }
            x = parent_of(a, x);
            y = parent_of(b, y);
        }
        if (x != y) {
            return false;
        }
    }
    return true;
}

static int64_t misses(void)
{
    return hearth_metric_value(HEARTH_M_CACHE_MISSES);
}

/* ---- tests ---- */

static void a_dictionary_holds_the_contents_of_its_chunks(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    author_init(&author, url, 3);
    uint32_t n = 0;
    for (int i = 0; i < 12; i++) {
        n = author_write(&author, 150);
    }
    assert_true(n > 500);
    const struct hearth_dict *dict = acquire(store, 3, n);
    assert_int_equal(dict->n_stacks, n);
    assert_true(same_stacks(dict, author.twin));
    assert_true(hearth_metric_value(HEARTH_M_CACHE_BYTES) > 1000);

    int64_t before = misses();
    assert_ptr_equal(acquire(store, 3, n - 1), dict);
    assert_ptr_equal(acquire(store, 3, 0), dict);
    assert_int_equal(misses(), before);
    for (int i = 0; i < 3; i++) {
        hearth_store_read_dict_release(store, dict);
    }
    author_release(&author);
    close_store(store);
    assert_int_equal(hearth_metric_value(HEARTH_M_CACHE_BYTES), 0);
}

static void more_stacks_are_loaded_when_they_are_needed(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    author_init(&author, url, 4);
    uint32_t n1 = author_write(&author, 200);
    const struct hearth_dict *first = acquire(store, 4, n1);
    hearth_store_read_dict_release(store, first);

    uint32_t n2 = author_write(&author, 400);
    const struct hearth_dict *second = acquire(store, 4, n2);
    assert_ptr_equal(second, first); /* nobody held it: extended in place */
    assert_true(same_stacks(second, author.twin));

    uint32_t n3 = author_write(&author, 900);
    const struct hearth_dict *third = acquire(store, 4, n3);
    assert_ptr_not_equal(third, second);
    assert_int_equal(second->n_stacks, n2); /* held: it must not change */
    assert_true(same_stacks(third, author.twin));
    assert_ptr_equal(acquire(store, 4, n2), third);
    hearth_store_read_dict_release(store, third);
    hearth_store_read_dict_release(store, second);
    hearth_store_read_dict_release(store, third);
    author_release(&author);
    close_store(store);
}

static void a_chunk_without_stacks_is_accepted(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    author_init(&author, url, 5);
    uint32_t n = author_write(&author, 100);
    const struct hearth_dict *dict = acquire(store, 5, n);
    hearth_store_read_dict_release(store, dict);
    author_write_string(&author);
    for (int i = 0; i < 2; i++) { /* it asks for more than there is, each time anew */
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_store_read_dict(STORE_OWNER(store, NULL),
                                                (struct hearth_dict_key){5, DAY_OF_TEST, 1}, n + 1,
                                                &dict, &err),
                         HEARTH_CORRUPT);
        assert_non_null(strstr(err.msg, "service 5"));
    }
    dict = acquire(store, 5, n);
    assert_int_equal(dict->n_stacks, n);
    assert_true(same_stacks(dict, author.twin));
    assert_true(hearth_str_eq_c(dict->strings[dict->n_strings - 1], "lone"));
    hearth_store_read_dict_release(store, dict);
    author_release(&author);
    close_store(store);
}

/* ---- the tree that the dictionaries of a service share ---- */

static const struct hearth_dict *acquire_writer(struct hearth_store *store, int32_t service_id,
                                                int32_t writer_id, uint32_t n)
{
    const struct hearth_dict *dict = NULL;
    assert_ok(hearth_store_read_dict(STORE_OWNER(store, NULL),
                                     (struct hearth_dict_key){service_id, DAY_OF_TEST, writer_id},
                                     n, &dict, &err));
    return dict;
}

/* The dictionary of service 6 three times, as of three writers. */
static uint32_t write_thrice(struct author *author, const char *url)
{
    author_init(author, url, 6);
    uint32_t n = author_write(author, 400);
    pg_cluster_run(url, "INSERT INTO hearth_data.dict_chunk (service_id, day, writer_id,"
                        " first_stack, first_string, n_stacks, payload)"
                        " SELECT service_id, day, w, first_stack, first_string, n_stacks, payload"
                        " FROM hearth_data.dict_chunk, generate_series(2, 3) w");
    return n;
}

static void dictionaries_of_a_service_share_a_tree(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    uint32_t n = write_thrice(&author, url);
    const struct hearth_dict *first = acquire_writer(store, 6, 1, n);
    int64_t one = hearth_metric_value(HEARTH_M_CACHE_BYTES);
    uint32_t size = hearth_name_tree_size(first->tree);
    const struct hearth_dict *second = acquire_writer(store, 6, 2, n);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(first->tree, second->tree);
    assert_memory_equal(first->stack_node, second->stack_node, n * sizeof(uint32_t));
    assert_int_equal(hearth_name_tree_size(first->tree), size);
    int64_t two = hearth_metric_value(HEARTH_M_CACHE_BYTES);
    /* The tree counts once. */
    assert_in_range(two - one, 1, one - (int64_t)hearth_name_tree_bytes(first->tree));
    hearth_store_read_dict_release(store, first);
    hearth_store_read_dict_release(store, second);
    author_release(&author);
    close_store(store);
    assert_int_equal(hearth_metric_value(HEARTH_M_CACHE_BYTES), 0);
}

static void a_stale_tree_gets_no_new_dictionaries(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    uint32_t n = write_thrice(&author, url);
    const struct hearth_dict *first = acquire_writer(store, 6, 1, n);
    struct hearth_name_tree *old = first->tree;
    hearth_name_tree_begin(old); /* what a hundred deployments leave behind */
    uint32_t name = hearth_name_tree_intern(old, HEARTH_STR("gone"));
    for (uint32_t i = 0, node = 0; i < 80000; i++) {
        node = hearth_name_tree_child(old, node, name);
        assert_int_not_equal(node, HEARTH_NO_INDEX);
    }
    hearth_name_tree_end(old);
    assert_true(hearth_name_tree_is_stale(old));
    const struct hearth_dict *second = acquire_writer(store, 6, 2, n);
    const struct hearth_dict *third = acquire_writer(store, 6, 3, n);
    assert_ptr_not_equal(second->tree, old);
    assert_ptr_equal(third->tree, second->tree);
    assert_true(hearth_name_tree_size(second->tree) < 80000);
    assert_true(same_stacks(first, author.twin) && same_stacks(second, author.twin));
    hearth_store_read_dict_release(store, first);
    hearth_store_read_dict_release(store, second);
    hearth_store_read_dict_release(store, third);
    author_release(&author);
    close_store(store);
    assert_int_equal(hearth_metric_value(HEARTH_M_CACHE_BYTES), 0);
}

/* ---- readers while it grows ---- */

#define N_READERS 6

struct reader {
    struct hearth_store *store;
    _Atomic uint32_t *n_written; /* [2], of services 10 and 11 */
    _Atomic bool *stop;
    int number, n_rounds, n_wrong;
};

/* Every frame of every stack ends at the root and has a name. */
static bool is_whole(const struct hearth_dict *dict)
{
    for (uint32_t s = 0; s < dict->n_tree_stacks; s++) {
        for (uint32_t i = dict->stack_node[s]; i != 0; i = parent_of(dict, i)) {
            if (i >= hearth_name_tree_size(dict->tree) || parent_of(dict, i) >= i ||
                name_of(dict, i).n == 0) {
                return false;
            }
        }
    }
    return true;
}

/* Holds one dictionary while it asks for the other, in either order. */
static void *run_reader(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(r->stop)) {
        int first = (r->number + r->n_rounds) % 2;
        uint32_t want[2] = {atomic_load(&r->n_written[0]), atomic_load(&r->n_written[1])};
        const struct hearth_dict *dicts[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++) {
            int which = i == 0 ? first : 1 - first;
            if (hearth_store_read_dict(STORE_OWNER(r->store, NULL),
                                       (struct hearth_dict_key){10 + which, DAY_OF_TEST, 1},
                                       want[which], &dicts[which], NULL) != HEARTH_OK) {
                r->n_wrong++;
            }
        }
        for (int i = 0; i < 2; i++) {
            uint32_t n = dicts[i] == NULL ? 0 : dicts[i]->n_stacks;
            if (dicts[i] == NULL || n < want[i] || !is_whole(dicts[i]) || n != dicts[i]->n_stacks) {
                r->n_wrong++;
            }
            hearth_store_read_dict_release(r->store, dicts[i]);
        }
        r->n_rounds++;
    }
    return NULL;
}

static void a_dictionary_grows_while_others_read_it(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, 400000); /* evicts now and then, too */
    struct author authors[2];
    static _Atomic uint32_t n_written[2];
    static _Atomic bool stop;
    for (int i = 0; i < 2; i++) {
        author_init(&authors[i], url, 10 + i);
        atomic_store(&n_written[i], author_write(&authors[i], 50));
    }
    struct reader readers[N_READERS];
    pthread_t threads[N_READERS];
    for (int i = 0; i < N_READERS; i++) {
        readers[i] = (struct reader){store, n_written, &stop, i, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, run_reader, &readers[i]), 0);
    }
    for (int i = 0; i < 60; i++) {
        uint32_t n = author_write(&authors[i % 2], 60 + (uint32_t)i * 4);
        atomic_store(&n_written[i % 2], n);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < N_READERS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].n_wrong, 0);
        assert_true(readers[i].n_rounds > 5);
    }
    for (int i = 0; i < 2; i++) {
        const struct hearth_dict *dict = acquire(store, 10 + i, n_written[i]);
        assert_true(same_stacks(dict, authors[i].twin));
        hearth_store_read_dict_release(store, dict);
        author_release(&authors[i]);
    }
    close_store(store);
}

static void the_least_recently_used_entry_is_evicted_when_memory_is_short(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author authors[6];
    uint32_t n[6];
    for (int i = 0; i < 6; i++) {
        author_init(&authors[i], url, 20 + i);
        n[i] = author_write(&authors[i], 300);
    }
    hearth_store_read_dict_release(store, acquire(store, 20, n[0]));
    int64_t one = hearth_metric_value(HEARTH_M_CACHE_BYTES);
    close_store(store);
    store = open_with_cache(url, (size_t)(3 * one + one / 2)); /* three have room */
    for (int i = 0; i < 6; i++) {
        hearth_store_read_dict_release(store, acquire(store, 20 + i, n[i]));
        assert_in_range(hearth_metric_value(HEARTH_M_CACHE_BYTES), 0, 3 * one + one / 2);
    }
    int64_t before = misses();
    for (int i = 5; i >= 3; i--) {
        hearth_store_read_dict_release(store, acquire(store, 20 + i, n[i]));
    }
    assert_int_equal(misses(), before);
    hearth_store_read_dict_release(store, acquire(store, 20, n[0]));
    assert_int_equal(misses(), before + 1);

    /* Held ones stay, however many. */
    const struct hearth_dict *held[6];
    for (int i = 0; i < 6; i++) {
        held[i] = acquire(store, 20 + i, n[i]);
    }
    assert_true(hearth_metric_value(HEARTH_M_CACHE_BYTES) > 5 * one);
    for (int i = 0; i < 6; i++) {
        assert_true(same_stacks(held[i], authors[i].twin));
        hearth_store_read_dict_release(store, held[i]);
        author_release(&authors[i]);
    }
    assert_in_range(hearth_metric_value(HEARTH_M_CACHE_BYTES), 0, 3 * one + one / 2);
    close_store(store);
}

/* ---- damage ---- */

static void assert_corrupt(struct hearth_store *store, uint32_t min_stacks, const char *what)
{
    const struct hearth_dict *dict = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = hearth_store_read_dict(STORE_OWNER(store, NULL),
                                                       (struct hearth_dict_key){30, DAY_OF_TEST, 1},
                                                       min_stacks, &dict, &err);
    if (status != HEARTH_CORRUPT) {
        print_error("%s: %s %s\n", what, hearth_status_name(status), err.msg);
    }
    assert_int_equal(status, HEARTH_CORRUPT);
    assert_int_equal(err.status, HEARTH_CORRUPT);
    assert_non_null(strstr(err.msg, "service 30, day 20411, writer 1"));
    assert_null(dict);
}

static void a_damaged_chunk_is_an_error_and_the_server_lives(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE hearth_data.dict_chunk SET payload = 'not zstd' WHERE first_stack > 0",
        "UPDATE hearth_data.dict_chunk SET payload = substring(payload, 1, length(payload) / 2)"
        " WHERE first_stack > 0",
        "UPDATE hearth_data.dict_chunk SET payload = '' WHERE first_stack > 0",
        /* A gap, and a chunk in another's place. */
        "DELETE FROM hearth_data.dict_chunk WHERE first_stack = (SELECT min(first_stack)"
        " FROM hearth_data.dict_chunk WHERE first_stack > 0)",
        "UPDATE hearth_data.dict_chunk SET payload = (SELECT payload FROM saved WHERE"
        " first_stack = 0) WHERE first_stack > 0",
        "DELETE FROM hearth_data.dict_chunk",
    };
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    author_init(&author, url, 30);
    uint32_t n1 = author_write(&author, 100), n = 0;
    for (int i = 0; i < 3; i++) {
        n = author_write(&author, 300);
    }
    pg_cluster_run(url, "CREATE TABLE saved AS SELECT * FROM hearth_data.dict_chunk");
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(damages); i++) {
        close_store(store);
        store = open_with_cache(url, (size_t)64 << 20);
        pg_cluster_run(url, damages[i]);
        assert_corrupt(store, n, damages[i]);
        assert_corrupt(store, n, damages[i]);
        if (i + 1 < HEARTH_ARRAY_LEN(damages)) { /* what comes before the damage serves */
            hearth_store_read_dict_release(store, acquire(store, 30, n1));
        }
        pg_cluster_run(url, "BEGIN; DELETE FROM hearth_data.dict_chunk;"
                            "INSERT INTO hearth_data.dict_chunk SELECT * FROM saved; COMMIT");
        const struct hearth_dict *dict = acquire(store, 30, n);
        assert_true(same_stacks(dict, author.twin));
        hearth_store_read_dict_release(store, dict);
    }
    author_release(&author);
    close_store(store);
}

static void a_chunk_that_inflates_beyond_its_cap_is_refused(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    author_init(&author, url, 30);
    size_t n_bytes = ((size_t)256 << 20) + 1;
    char *zeros = hearth_mem_zalloc(n_bytes);
    struct hearth_buf payload;
    hearth_buf_init(&payload, 0);
    assert_ok(hearth_zstd(hearth_str_n(zeros, n_bytes), 1, &payload, &err));
    hearth_mem_free(zeros);
    insert_chunk(&author, (struct hearth_dict_mark){.n_strings = 1}, 1, hearth_buf_view(&payload));
    hearth_buf_release(&payload);
    assert_corrupt(store, 1, "bomb");
    author_release(&author);
    close_store(store);
}

static void a_dictionary_that_was_never_written_is_missed(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    assert_corrupt(store, 1, "nothing there");
    const struct hearth_dict *dict = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_read_dict(STORE_OWNER(store, NULL),
                                            (struct hearth_dict_key){1, 1, 1}, 1, &dict, &err),
                     HEARTH_CORRUPT);
    dict = acquire(store, 31, 0); /* no sample, no stack: an empty one will do */
    assert_int_equal(dict->n_tree_stacks, 0);
    hearth_store_read_dict_release(store, dict);
    hearth_store_read_dict_release(store, NULL);
    close_store(store);
}

static void loading_ends_with_its_request(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, (size_t)64 << 20);
    struct author author;
    author_init(&author, url, 40);
    uint32_t n = author_write(&author, 100);
    PGconn *locker = pg_cluster_connect(url);
    PQclear(PQexec(locker, "BEGIN; LOCK TABLE hearth_data.dict_chunk IN ACCESS EXCLUSIVE MODE"));
    struct hearth_cancel cancel;
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + 150 * HEARTH_NS_PER_MS);
    const struct hearth_dict *dict = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_read_dict(STORE_OWNER(store, &cancel),
                                            (struct hearth_dict_key){40, DAY_OF_TEST, 1}, n, &dict,
                                            &err),
                     HEARTH_DEADLINE_EXCEEDED);
    PQfinish(locker);
    hearth_store_read_dict_release(store, acquire(store, 40, n));
    author_release(&author);
    close_store(store);
}

static void refused_memory_is_an_error_and_the_cache_stays_usable(void **state)
{
    (void)state;
    char url[256];
    pg_cluster_database(&g_cluster, url);
    struct hearth_store *store = open_with_cache(url, 0); /* nothing stays */
    struct author author;
    author_init(&author, url, 50);
    uint32_t n = 0;
    for (int i = 0; i < 3; i++) {
        n = author_write(&author, 40);
    }
    int n_refused = 0, n_ok_in_a_row = 0;
    for (uint64_t at = 1; at < 1000 && n_ok_in_a_row < 3; at++) {
        const struct hearth_dict *dict = NULL;
        hearth_mem_fail_after(at);
        enum hearth_status status = hearth_store_read_dict(
            STORE_OWNER(store, NULL), (struct hearth_dict_key){50, DAY_OF_TEST, 1}, n, &dict, NULL);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        n_refused += status != HEARTH_OK;
        n_ok_in_a_row = status == HEARTH_OK ? n_ok_in_a_row + 1 : 0;
        hearth_store_read_dict_release(store, dict);
        dict = acquire(store, 50, n);
        assert_true(same_stacks(dict, author.twin));
        hearth_store_read_dict_release(store, dict);
    }
    assert_true(n_refused > 10);
    author_release(&author);
    close_store(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dictionary_holds_the_contents_of_its_chunks),
        cmocka_unit_test(more_stacks_are_loaded_when_they_are_needed),
        cmocka_unit_test(a_chunk_without_stacks_is_accepted),
        cmocka_unit_test(dictionaries_of_a_service_share_a_tree),
        cmocka_unit_test(a_stale_tree_gets_no_new_dictionaries),
        cmocka_unit_test(a_dictionary_grows_while_others_read_it),
        cmocka_unit_test(the_least_recently_used_entry_is_evicted_when_memory_is_short),
        cmocka_unit_test(a_damaged_chunk_is_an_error_and_the_server_lives),
        cmocka_unit_test(a_chunk_that_inflates_beyond_its_cap_is_refused),
        cmocka_unit_test(a_dictionary_that_was_never_written_is_missed),
        cmocka_unit_test(loading_ends_with_its_request),
        cmocka_unit_test(refused_memory_is_an_error_and_the_cache_stays_usable),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
