/*
 * scrape_targets.c -- the list of targets: fixed addresses, and addresses of names, which are
 * resolved by threads of their own: a name server that does not answer may delay no push.
 */
#include "hearth/base/log.h"
#include "hearth/base/mem.h"

#include "scrape/scrape_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <stdio.h>

#define RESOLVE_EACH_NS (30 * HEARTH_NS_PER_SEC)
#define MAX_ADDRESSES   1000 /* of one name */

/* ---- targets ---- */

static struct hearth_hash128 hash_target(const struct scrape *scrape)
{
    const char *const parts[] = {scrape->job->tenant, scrape->job->name, scrape->address,
                                 scrape->path->path};
    struct hearth_hash128 hash = {0, 0};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
        hash = hearth_hash128(parts[i], strlen(parts[i]) + 1, hearth_hash_mix(hash.lo, hash.hi));
    }

    return hash;
}

/* Finds the target with this key. A second one in the configuration would share its claim. */
static struct scrape *find_target(const struct hearth_scraper *scraper, struct hearth_hash128 key)
{
    for (size_t i = 0; i < scraper->n_scrapes; i++) {
        if (hearth_hash128_eq(scraper->scrapes[i]->key, key)) {
            return scraper->scrapes[i];
        }
    }

    return NULL;
}

/* Those that are gone will be freed, and make room already. */
static size_t count_present(const struct hearth_scraper *scraper)
{
    size_t n = 0;

    for (size_t i = 0; i < scraper->n_scrapes; i++) {
        n += scraper->scrapes[i]->is_gone ? 0 : 1;
    }

    return n;
}

static bool is_room_for_target(struct hearth_scraper *scraper)
{
    if (count_present(scraper) < (size_t)scraper->options.max_targets) {
        return true;
    }

    if (!scraper->is_over_limit) {
        HEARTH_LOG(HEARTH_LOG_WARN, "scrape",
                   "there are more targets than max-scrape-targets allows; the rest is ignored",
                   "limit", hearth_log_i64(scraper->options.max_targets), NULL);
        scraper->is_over_limit = true;
    }

    return false;
}

/* Appends a target, due at a moment of its interval that depends on its key. */
static bool append_target(struct hearth_scraper *scraper, struct scrape *scrape)
{
    if (scraper->n_scrapes == scraper->cap_scrapes) {
        size_t cap = scraper->cap_scrapes == 0 ? 64 : 2 * scraper->cap_scrapes;
        struct scrape **grown =
            hearth_mem_realloc(scraper->scrapes, cap * sizeof *scraper->scrapes);
        if (grown == NULL) {
            return false;
        }
        scraper->scrapes = grown;
        scraper->cap_scrapes = cap;
    }

    scrape->due_mono_ns =
        hearth_clock_mono_ns() + (int64_t)(scrape->key.lo % (uint64_t)scrape->job->interval_ns);
    scraper->scrapes[scraper->n_scrapes++] = scrape;

    return true;
}

/* Makes a target, or marks the one that is there as present. Returns false without memory. */
static bool add_target(struct hearth_scraper *scraper, const struct scrape *like)
{
    struct hearth_hash128 key = hash_target(like);
    struct scrape *scrape = find_target(scraper, key);

    if (scrape != NULL) {
        scrape->is_gone = false;
        return true;
    }
    if (!is_room_for_target(scraper)) {
        return true;
    }

    scrape = hearth_mem_zalloc(sizeof *scrape);
    if (scrape == NULL) {
        return false;
    }

    *scrape = *like;
    scrape->scraper = scraper;
    scrape->key = key;
    if (!append_target(scraper, scrape)) {
        hearth_mem_free(scrape);
        return false;
    }

    return true;
}

/* Adds a target for each path of the job. */
static bool add_address(struct hearth_scraper *scraper, const struct hearth_scrape_job *job,
                        const struct hearth_scrape_group *group, const char *address)
{
    struct scrape like = {.job = job, .group = group};

    (void)snprintf(like.address, sizeof like.address, "%s", address);
    for (size_t i = 0; i < job->n_paths; i++) {
        like.path = &job->paths[i];
        if (!add_target(scraper, &like)) {
            return false;
        }
    }

    return true;
}

/* Marks the targets of an address that are known as present. */
static void keep_address(const struct hearth_scraper *scraper, const struct hearth_scrape_job *job,
                         const struct hearth_scrape_group *group, const char *address)
{
    struct scrape like = {.job = job, .group = group};

    (void)snprintf(like.address, sizeof like.address, "%s", address);
    for (size_t i = 0; i < job->n_paths; i++) {
        like.path = &job->paths[i];
        struct scrape *scrape = find_target(scraper, hash_target(&like));
        if (scrape != NULL) {
            scrape->is_gone = false;
        }
    }
}

static void free_target(struct scrape *scrape)
{
    assert(!scrape->is_running);
    hearth_profile_totals_free(scrape->totals);
    hearth_buf_release(&scrape->body);
    hearth_mem_free(scrape);
}

void hearth_scrape_targets_sweep(struct hearth_scraper *scraper)
{
    size_t n = 0;

    for (size_t i = 0; i < scraper->n_scrapes; i++) {
        struct scrape *scrape = scraper->scrapes[i];
        if (scrape->is_gone && !scrape->is_running) {
            free_target(scrape);
        } else {
            scraper->scrapes[n++] = scrape;
        }
    }

    scraper->n_scrapes = n;
}

/* ---- names ---- */

/* Writes "HOST:PORT" of an address; false for one of an unknown family. */
static bool write_address(const struct addrinfo *found, uint16_t port,
                          char out[HEARTH_SCRAPE_ADDRESS_BYTES])
{
    char host[INET6_ADDRSTRLEN];

    if (getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host, NULL, 0,
                    NI_NUMERICHOST) != 0) {
        return false;
    }

    bool is_ip6 = found->ai_family == AF_INET6;
    (void)snprintf(out, HEARTH_SCRAPE_ADDRESS_BYTES, "%s%s%s:%u", is_ip6 ? "[" : "", host,
                   is_ip6 ? "]" : "", port);

    return true;
}

/* Stores the addresses of a name; those of an earlier time stay if there is no memory. */
static void store_addresses(struct scrape_name *name, const struct addrinfo *found)
{
    size_t n = 0;

    for (const struct addrinfo *at = found; at != NULL && n < MAX_ADDRESSES; at = at->ai_next) {
        n++;
    }

    char(*addresses)[HEARTH_SCRAPE_ADDRESS_BYTES] = hearth_mem_calloc(n + 1, sizeof *addresses);
    if (addresses == NULL) {
        return;
    }

    size_t n_written = 0;
    for (const struct addrinfo *at = found; at != NULL && n_written < n; at = at->ai_next) {
        n_written += write_address(at, name->group->port, addresses[n_written]) ? 1 : 0;
    }

    hearth_mutex_lock(&name->scraper->lock);
    hearth_mem_free(name->addresses);
    name->addresses = addresses;
    name->n_addresses = n_written;
    name->is_fresh = true;
    hearth_mutex_unlock(&name->scraper->lock);
}

static void resolve_name(struct hearth_job *job)
{
    struct scrape_name *name = HEARTH_CONTAINER_OF(job, struct scrape_name, resolve_job);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    /* The stop runs all queued jobs, and a name server may take its time. */
    bool is_stopping = atomic_load(&name->scraper->cancel.cancelled);
    int rc = is_stopping ? 0 : getaddrinfo(name->name, NULL, &hints, &found);
    if (is_stopping) {
        /* The addresses are not needed any more. */
    } else if (rc == 0) {
        store_addresses(name, found);
        freeaddrinfo(found);
    } else {
        HEARTH_LOG(HEARTH_LOG_WARN, "scrape", "a name has no addresses; its targets stay", "name",
                   name->name, "reason", gai_strerror(rc), NULL);
    }

    hearth_mutex_lock(&name->scraper->lock);
    name->is_running = false;
    hearth_mutex_unlock(&name->scraper->lock);
}

/* Makes targets of the addresses of a name and of its group; the caller holds the lock. */
static void take_addresses(const struct scrape_name *name)
{
    struct hearth_scraper *scraper = name->scraper;

    hearth_mutex_assert_held(&scraper->lock);
    for (size_t i = 0; i < scraper->n_scrapes; i++) {
        if (scraper->scrapes[i]->group == name->group) {
            scraper->scrapes[i]->is_gone = true;
        }
    }

    /* All names of the group: they share its targets. Known ones stay before others are added. */
    for (size_t i = 0; i < scraper->n_names; i++) {
        const struct scrape_name *other = &scraper->names[i];
        for (size_t k = 0; other->group == name->group && k < other->n_addresses; k++) {
            keep_address(scraper, other->job, other->group, other->addresses[k]);
        }
    }

    for (size_t i = 0; i < scraper->n_names; i++) {
        struct scrape_name *other = &scraper->names[i];
        if (other->group != name->group) {
            continue;
        }

        other->is_fresh = false;
        for (size_t k = 0; k < other->n_addresses; k++) {
            (void)add_address(scraper, other->job, other->group, other->addresses[k]);
        }
    }
}

void hearth_scrape_targets_refresh(struct hearth_scraper *scraper, int64_t now_mono_ns)
{
    hearth_mutex_lock(&scraper->lock);
    for (size_t i = 0; i < scraper->n_names; i++) {
        struct scrape_name *name = &scraper->names[i];
        if (name->is_fresh) {
            take_addresses(name);
        }

        if (!name->is_running && now_mono_ns >= name->due_mono_ns) {
            name->due_mono_ns = now_mono_ns + RESOLVE_EACH_NS;
            name->is_running = hearth_workers_submit(scraper->resolvers, &name->resolve_job);
        }
    }
    hearth_mutex_unlock(&scraper->lock);
}

/* ---- all ---- */

static size_t count_names(const struct hearth_scrape_options *options)
{
    size_t n = 0;

    for (size_t i = 0; i < options->n_jobs; i++) {
        for (size_t k = 0; k < options->jobs[i].n_groups; k++) {
            const struct hearth_scrape_group *group = &options->jobs[i].groups[k];
            n += group->is_dns ? group->n_addresses : 0;
        }
    }

    return n;
}

static bool add_group(struct hearth_scraper *scraper, const struct hearth_scrape_job *job,
                      const struct hearth_scrape_group *group)
{
    for (size_t i = 0; i < group->n_addresses; i++) {
        if (group->is_dns) {
            scraper->names[scraper->n_names++] =
                (struct scrape_name){.scraper = scraper,
                                     .job = job,
                                     .group = group,
                                     .name = group->addresses[i],
                                     .resolve_job = {.run = resolve_name}};
        } else if (!add_address(scraper, job, group, group->addresses[i])) {
            return false;
        }
    }

    return true;
}

enum hearth_status hearth_scrape_targets_init(struct hearth_scraper *scraper,
                                              struct hearth_err *err)
{
    const struct hearth_scrape_options *options = &scraper->options;
    size_t n_names = count_names(options);

    scraper->names = hearth_mem_calloc(n_names + 1, sizeof *scraper->names);
    bool is_done = scraper->names != NULL;
    for (size_t i = 0; is_done && i < options->n_jobs; i++) {
        const struct hearth_scrape_job *job = &options->jobs[i];
        for (size_t k = 0; is_done && k < job->n_groups; k++) {
            is_done = add_group(scraper, job, &job->groups[k]);
        }
    }

    return is_done ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the targets to scrape");
}

void hearth_scrape_targets_free(struct hearth_scraper *scraper)
{
    for (size_t i = 0; i < scraper->n_scrapes; i++) {
        free_target(scraper->scrapes[i]);
    }
    for (size_t i = 0; i < scraper->n_names; i++) {
        hearth_mem_free(scraper->names[i].addresses);
    }

    hearth_mem_free(scraper->scrapes);
    hearth_mem_free(scraper->names);
}
