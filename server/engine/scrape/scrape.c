/* scrape.c -- claims of targets, and the push of fetched profiles (contract: engine/scrape.h). */
#include "hearth/engine/scrape.h"

#include "hearth/base/clock.h"
#include "hearth/engine/ingest_files.h"
#include "hearth/store/store_scrape.h"

#include "common/call_internal.h"
#include "common/shown.h"
#include "ingest/push_wait.h"

#include <assert.h>

/* ---- claims ---- */

enum hearth_status hearth_scrape_claim(const struct hearth_call *call, struct hearth_hash128 holder,
                                       int64_t hold_ns, const struct hearth_scrape_target *targets,
                                       size_t n, bool *ret_claimed, struct hearth_err *err)
{
    assert(targets != NULL && ret_claimed != NULL);

    const struct hearth_scrape_claims claims = {holder, hold_ns, targets, n};

    return hearth_store_scrape_claim(HEARTH_CALL_SCOPE(call), &claims, ret_claimed, err);
}

enum hearth_status hearth_scrape_release(const struct hearth_call *call,
                                         struct hearth_hash128 holder, struct hearth_err *err)
{
    return hearth_store_scrape_release(HEARTH_CALL_SCOPE(call), holder, err);
}

enum hearth_status hearth_scrape_targets(const struct hearth_call *call,
                                         struct hearth_scrape_target **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    /* A target belongs to no service: its job gives the labels. */
    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_scrape_targets(HEARTH_CALL_SCOPE(call), ret, ret_n, err);
}

/* ---- pushing ---- */

/*
 * Makes the profile a difference. *ret_totals: the totals of the profile, which the caller owns;
 * NULL if it has none.
 */
static enum hearth_status take_difference(struct hearth_profile *profile,
                                          const struct hearth_profile_totals *earlier,
                                          struct hearth_profile_totals **ret_totals,
                                          struct hearth_err *err)
{
    bool is_restarted;

    *ret_totals = NULL;
    if (!hearth_profile_has_totals(profile)) {
        return HEARTH_OK;
    }

    struct hearth_profile_totals *totals = hearth_profile_totals_new(profile);
    if (totals == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a profile");
    }

    /* The first profile has nothing to be compared with: its totals become 0. */
    enum hearth_status status =
        hearth_profile_subtract(profile, earlier != NULL ? earlier : totals, &is_restarted, err);
    if (status != HEARTH_OK) {
        hearth_profile_totals_free(totals);
        return status;
    }

    *ret_totals = totals;

    return HEARTH_OK;
}

/* Sets the time of the profile by this server's clock. */
static void set_scrape_time(const struct hearth_scraped *scraped, struct hearth_profile *profile)
{
    bool is_difference = scraped->before_ns > 0 && scraped->before_ns < scraped->at_ns;

    profile->time_ns = scraped->at_ns;
    if (profile->duration_ns <= 0 && is_difference) {
        profile->duration_ns = scraped->at_ns - scraped->before_ns;
    }
}

enum hearth_status hearth_scrape_push(const struct hearth_call *call, struct hearth_ingest *ingest,
                                      const struct hearth_scraped *scraped,
                                      struct hearth_profile_totals **totals, struct hearth_err *err)
{
    assert(scraped != NULL && totals != NULL);

    const struct hearth_file_upload upload = {
        .tenant = scraped->tenant,
        .bytes = scraped->bytes,
        .n_bytes = scraped->n_bytes,
        .labels = scraped->labels,
        .n_labels = scraped->n_labels,
    };
    struct hearth_push_request request = {.tenant = scraped->tenant, .view = call->view};
    uint64_t discards[HEARTH_N_DISCARDS] = {0};

    HEARTH_TRY(hearth_ingest_read_file(ingest, &upload, call->arena, discards, &request, err));
    hearth_discards_count(discards);

    /* Only files with a single profile have totals. */
    struct hearth_profile_totals *later = NULL;
    for (size_t i = 0; i < request.n_series; i++) {
        struct hearth_profile *profile = hearth_arena_alloc(call->arena, sizeof *profile);
        if (profile == NULL) {
            return HEARTH_FAIL_ARENA(err, call->arena);
        }

        *profile = *request.series[i].samples[0].decoded;
        request.series[i].samples[0].decoded = profile;
        if (request.n_series == 1) {
            HEARTH_TRY(take_difference(profile, *totals, &later, err));
        }
        set_scrape_time(scraped, profile);
    }

    enum hearth_status status = request.n_series == 0
                                    ? HEARTH_OK
                                    : hearth_push_wait(ingest, &request, call->cancel, NULL, err);

    /* The totals are those of the latest profile that was stored. */
    struct hearth_profile_totals *old = status == HEARTH_OK && later != NULL ? *totals : later;
    if (status == HEARTH_OK && later != NULL) {
        *totals = later;
    }
    hearth_profile_totals_free(old);

    return status;
}
