/*
 * ingest_dict.h -- the dictionaries that ingest appends to (private to the store).
 *
 * Contract of hearth_store_dict_acquire, _release and _resolve: hearth/store/store.h.
 *
 * Threads: safe; hearth_ingest_dict_cut and _commit are for the committer of the service.
 */
#ifndef HEARTH_STORE_INGEST_DICT_H
#define HEARTH_STORE_INGEST_DICT_H

#include "hearth/base/sync.h"
#include "hearth/store/store.h"

struct hearth_ingest_dicts;

struct hearth_ingest_dict {
    int32_t service_id, day, writer_id;
    struct hearth_mutex lock; /* "dict.lock": guards writer */
    struct hearth_dict_writer *writer;
    _Atomic uint32_t refs; /* of items and callers; changed under dicts.lock; evicted at 0 */
    struct hearth_ingest_dict *lru_prev, *lru_next, *hash_next; /* under dicts.lock */
    size_t n_bytes;           /* as last added to dicts->n_bytes; under dicts.lock */
    bool unlinked;            /* out of the table; under dicts.lock. Its last release frees it */
    _Atomic size_t bytes_now; /* after the last resolve */
    _Atomic bool retired;     /* the next acquire replaces it */
};

HEARTH_MUST_CHECK enum hearth_status hearth_ingest_dicts_new(struct hearth_store *store,
                                                             struct hearth_ingest_dicts **ret_dicts,
                                                             struct hearth_err *err);
void hearth_ingest_dicts_free(struct hearth_ingest_dicts *dicts); /* NULL-safe */

/*
 * For the committer of the service. Append the pending stacks to `out` as one chunk, from *ret_from
 * to *ret_upto. Returns false if no stack is pending; then only *ret_from is set.
 */
HEARTH_MUST_CHECK bool hearth_ingest_dict_cut(struct hearth_ingest_dict *dict,
                                              struct hearth_buf *out,
                                              struct hearth_dict_mark *ret_from,
                                              struct hearth_dict_mark *ret_upto);

/* For the committer of the service: the chunk up to `upto` is committed. */
void hearth_ingest_dict_commit(struct hearth_ingest_dict *dict, struct hearth_dict_mark upto);

/* No further profile uses the dictionary: the next acquire makes another. */
void hearth_ingest_dict_retire(struct hearth_ingest_dict *dict);

#endif
