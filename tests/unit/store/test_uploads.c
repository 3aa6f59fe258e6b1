/* test_uploads.c -- uploads of people: parts, quotas, the queue with its leases, retention. */
#include "hearth/store/store_uploads.h"

#include "step_fixture.h"
#include "store_scope.h"

#define ID_A "0123456789abcdef0123456789abcdef"
#define ID_B "1123456789abcdef0123456789abcdef"
#define ID_C "2123456789abcdef0123456789abcdef"

static const struct hearth_scope *scope_of(struct fixture *fix, const char *tenant)
{
    static struct hearth_scope scope;
    scope = (struct hearth_scope){
        .store = fix->store, .tenant = hearth_str_c(tenant), .arena = &fix->arena};
    return &scope;
}

static enum hearth_status create(struct fixture *fix, const char *tenant, const char *id,
                                 int64_t n_bytes)
{
    struct hearth_property labels[] = {
        {HEARTH_STR("service_name"), HEARTH_STR("shop")},
        {HEARTH_STR("env"), HEARTH_STR("test")},
    };
    const struct hearth_profile_upload upload = {
        .upload_id = hearth_str_c(id),
        .file_name = HEARTH_STR("a.jfr"),
        .format = HEARTH_STR(""),
        .labels = labels,
        .n_labels = 2,
        .from_ns = 7,
        .n_bytes = n_bytes,
        .part_bytes = 4,
        .sha256 = HEARTH_STR(""),
        .created_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
    };
    const struct hearth_upload_quota quota = {.max_uploads = 2, .max_bytes = 100};
    struct hearth_err err = HEARTH_ERR_INIT;
    return hearth_store_upload_create(scope_of(fix, tenant), &upload, &quota, &err);
}

static struct hearth_profile_upload get(struct fixture *fix, const char *id)
{
    struct hearth_profile_upload upload = {0};
    assert_ok(hearth_store_upload_get(scope_of(fix, "t"), hearth_str_c(id), &upload, &err));
    return upload;
}

static enum hearth_status put(struct fixture *fix, const char *id, int32_t part, const char *bytes)
{
    struct hearth_profile_upload upload = get(fix, id);
    struct hearth_err err = HEARTH_ERR_INIT;
    return hearth_store_upload_part(scope_of(fix, "t"), &upload, part, hearth_str_c(bytes), &err);
}

static void queue(struct fixture *fix, const char *id)
{
    assert_ok(
        hearth_store_upload_queue(scope_of(fix, "t"), hearth_str_c(id), HEARTH_STR("5a"), &err));
}

static bool claim(struct fixture *fix, int64_t lease_ms, struct hearth_profile_upload *ret)
{
    bool found = false;
    *ret = (struct hearth_profile_upload){0};
    assert_ok(hearth_store_upload_claim(scope_of(fix, ""), lease_ms, ret, &found, &err));
    return found;
}

static enum hearth_status begin_text(void *context, struct hearth_err *err)
{
    (void)err;
    ((char *)context)[0] = '\0';
    return HEARTH_OK;
}

static enum hearth_status add_text(void *context, struct hearth_str bytes, struct hearth_err *err)
{
    (void)err;
    strncat(context, bytes.p, bytes.n);
    return HEARTH_OK;
}

static void parts_arrive_in_any_order_and_again_until_the_upload_is_queued(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    assert_int_equal(create(&fix, "t", ID_A, 10), HEARTH_OK);
    assert_int_equal(create(&fix, "t", ID_A, 10), HEARTH_OK); /* after a lost answer */
    assert_int_equal(put(&fix, ID_A, 2, "ij"), HEARTH_OK);
    assert_int_equal(put(&fix, ID_A, 0, "wxyz"), HEARTH_OK);
    assert_int_equal(put(&fix, ID_A, 0, "abcd"), HEARTH_OK);

    /* Progress, and what is missing. */
    struct hearth_profile_upload upload = get(&fix, ID_A);
    assert_int_equal(upload.n_received_bytes, 6);
    assert_int_equal(upload.n_labels, 2);
    assert_string_equal(upload.labels[0].name.p, "service_name");
    assert_int_equal(upload.from_ns, 7);
    int32_t *missing;
    size_t n;
    assert_ok(hearth_store_upload_missing(scope_of(&fix, "t"), &upload, 10, &missing, &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(missing[0], 1);

    /* The bytes. */
    assert_int_equal(put(&fix, ID_A, 1, "efgh"), HEARTH_OK);
    char text[16] = "";
    const struct hearth_upload_reader reader = {text, begin_text, add_text};
    assert_ok(
        hearth_store_upload_read(scope_of(&fix, "t"), upload.upload_no, 0, 100, &reader, &err));
    assert_string_equal(text, "abcdefghij");
    assert_ok(hearth_store_upload_read(scope_of(&fix, "t"), upload.upload_no, 1, 1, &reader, &err));
    assert_string_equal(text, "efgh");

    queue(&fix, ID_A);
    assert_int_equal(put(&fix, ID_A, 1, "late"), HEARTH_FAILED_PRECONDITION);
    assert_int_equal(get(&fix, ID_A).state, HEARTH_PROFILE_UPLOAD_QUEUED);
    close_fixture(&fix);
}

static void a_tenant_has_as_many_uploads_and_bytes_as_its_quota_allows(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    assert_int_equal(create(&fix, "t", ID_A, 60), HEARTH_OK);
    assert_int_equal(create(&fix, "t", ID_B, 41), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(create(&fix, "t", ID_B, 40), HEARTH_OK);
    assert_int_equal(create(&fix, "t", ID_C, 1), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(create(&fix, "u", ID_C, 100), HEARTH_OK); /* of another tenant */

    /* Deletion makes room. */
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_upload_delete(scope_of(&fix, "u"), HEARTH_STR(ID_A), &err),
                     HEARTH_NOT_FOUND);
    assert_ok(hearth_store_upload_delete(scope_of(&fix, "t"), HEARTH_STR(ID_A), &err));
    assert_int_equal(create(&fix, "t", ID_C, 1), HEARTH_OK);
    struct hearth_profile_upload *uploads;
    size_t n;
    assert_ok(hearth_store_uploads(scope_of(&fix, "t"), 10, &uploads, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(uploads[0].upload_id.p, ID_C);
    close_fixture(&fix);
}

static void an_upload_is_claimed_by_one_server_until_its_lease_ends(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_profile_upload first, second;
    assert_int_equal(create(&fix, "t", ID_A, 2), HEARTH_OK);
    assert_false(claim(&fix, 60000, &first)); /* it is still received */
    queue(&fix, ID_A);
    assert_true(claim(&fix, 60000, &first));
    assert_string_equal(first.tenant.p, "t");
    assert_int_equal(first.n_lost, 0);
    assert_false(claim(&fix, 60000, &second));

    /* The lease ends: another claim, and the first one is worth nothing. */
    assert_ok(hearth_store_upload_extend(scope_of(&fix, "t"), &first, 0, &err));
    assert_true(claim(&fix, 60000, &second));
    assert_int_equal(second.n_lost, 1);
    struct hearth_err err = HEARTH_ERR_INIT;
    first.state = HEARTH_PROFILE_UPLOAD_DONE;
    assert_int_equal(hearth_store_upload_end(scope_of(&fix, "t"), &first, &err), HEARTH_ABORTED);
    assert_int_equal(hearth_store_upload_progress(scope_of(&fix, "t"), &first, NULL, 0, &err),
                     HEARTH_ABORTED);
    assert_int_equal(hearth_store_upload_extend(scope_of(&fix, "t"), &first, 9, &err),
                     HEARTH_ABORTED);

    /* Later, then the end. */
    second.reason = HEARTH_STR("busy");
    assert_ok(hearth_store_upload_again(scope_of(&fix, "t"), &second, 0, &err));
    assert_string_equal(get(&fix, ID_A).reason.p, "busy");
    assert_true(claim(&fix, 60000, &second));
    assert_int_equal(second.n_lost, 1);
    second.state = HEARTH_PROFILE_UPLOAD_FAILED;
    second.reason = HEARTH_STR("damaged");
    assert_ok(hearth_store_upload_end(scope_of(&fix, "t"), &second, &err));
    assert_string_equal(get(&fix, ID_A).reason.p, "damaged");
    assert_false(claim(&fix, 60000, &second));
    close_fixture(&fix);
}

struct claimer {
    struct fixture *fix;
    bool found;
};

static void *claim_one(void *arg)
{
    struct claimer *claimer = arg;
    struct hearth_arena arena;
    struct hearth_profile_upload upload;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    (void)!hearth_store_upload_claim(STORE_SCOPE(claimer->fix->store, HEARTH_STR(""), &arena),
                                     60000, &upload, &claimer->found, &err);
    hearth_arena_release(&arena);
    return NULL;
}

static void concurrent_claimers_share_the_queue(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    assert_int_equal(create(&fix, "t", ID_A, 2), HEARTH_OK);
    assert_int_equal(create(&fix, "t", ID_B, 2), HEARTH_OK);
    queue(&fix, ID_A);
    queue(&fix, ID_B);
    struct claimer claimers[6];
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        claimers[i] = (struct claimer){&fix, false};
        assert_int_equal(pthread_create(&threads[i], NULL, claim_one, &claimers[i]), 0);
    }
    int n = 0;
    for (int i = 0; i < 6; i++) {
        (void)pthread_join(threads[i], NULL);
        n += claimers[i].found;
    }
    assert_in_range(n, 1, 2); /* a row that is locked at that moment is skipped */
    struct hearth_profile_upload upload;
    assert_int_equal(claim(&fix, 60000, &upload), n == 1);
    assert_int_equal(get(&fix, ID_A).claim, 1);
    assert_int_equal(get(&fix, ID_B).claim, 1);
    close_fixture(&fix);
}

static void progress_and_results_are_written_once(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_profile_upload upload;
    assert_int_equal(create(&fix, "t", ID_A, 2), HEARTH_OK);
    queue(&fix, ID_A);
    assert_true(claim(&fix, 60000, &upload));
    upload.n_profiles = 3;
    upload.n_samples = 40;
    upload.n_settled = upload.n_stored = 1;
    upload.storing_ms = 5;
    upload.dropped = HEARTH_STR("skipped_lines=1");
    const struct hearth_profile_upload_result results[] = {
        {0, 0, HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds"), 4, 9, 40, 4000},
        {0, 1, HEARTH_STR("process_cpu:samples:count:cpu:nanoseconds"), 4, 9, 40, 40},
    };
    for (int i = 0; i < 2; i++) {
        assert_ok(hearth_store_upload_progress(scope_of(&fix, "t"), &upload, results, 2, &err));
    }
    struct hearth_profile_upload read = get(&fix, ID_A);
    assert_int_equal(read.n_profiles, 3);
    assert_int_equal(read.n_settled, 1);
    assert_int_equal(read.storing_ms, 5);
    assert_string_equal(read.dropped.p, "skipped_lines=1");
    struct hearth_profile_upload_result *rows;
    size_t n;
    assert_ok(hearth_store_upload_results(scope_of(&fix, "t"), read.upload_no, &rows, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(rows[1].total, 40);
    assert_int_equal(rows[1].profile_no, 9);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_arrive_in_any_order_and_again_until_the_upload_is_queued),
        cmocka_unit_test(a_tenant_has_as_many_uploads_and_bytes_as_its_quota_allows),
        cmocka_unit_test(an_upload_is_claimed_by_one_server_until_its_lease_ends),
        cmocka_unit_test(concurrent_claimers_share_the_queue),
        cmocka_unit_test(progress_and_results_are_written_once),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
