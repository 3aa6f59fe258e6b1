/*
 * spool_internal.h -- the parts of a spool (private to the room; contract: hearth/engine/spool.h).
 *
 *   spool_file.c    the file: opening, reading, marking
 *   spool.c         the writer, the threads
 *   spool_replay.c  the threads that push waiting records
 *   push_spool.c    from the profiles of a push to a record
 */
#ifndef HEARTH_ENGINE_SPOOL_INTERNAL_H
#define HEARTH_ENGINE_SPOOL_INTERNAL_H

#include "hearth/base/cancel.h"
#include "hearth/base/sync.h"
#include "hearth/engine/spool.h"
#include "hearth/format/spool_record.h"

#define HEARTH_SPOOL_REPLAYERS 8

/* A record that waits for the disk. The caller fills `record` and `done`. */
struct hearth_spool_write {
    struct hearth_spool_write *next;
    struct hearth_buf record; /* whole: hearth_spool_end was called */
    int64_t received_ns;
    /* Called once, by the writer's thread: OK if the record is on the disk. May free the write. */
    void (*done)(struct hearth_spool_write *write, enum hearth_status status,
                 const struct hearth_err *err);
};

/* Work for the writer's thread, which may end in a write. The caller fills `run`. */
struct hearth_spool_job {
    struct hearth_spool_job *next;
    void (*run)(struct hearth_spool_job *job); /* called once; may free the job */
};

struct hearth_spool {
    int fd;
    struct hearth_spool_key key; /* of headers; never changes */
    int64_t max_bytes;
    struct hearth_ingest *ingest;
    struct hearth_store *store;
    hearth_spool_refused_fn *refused; /* may be NULL */
    void *refused_context;
    struct hearth_mutex lock; /* guards what follows */
    pthread_cond_t written, waiting;
    struct hearth_spool_write *first, **last; /* for the writer */
    struct hearth_spool_job *first_job, **last_job;
    int64_t end;                  /* of the records that are on the disk */
    int64_t n_reserved;           /* bytes of those that are not there yet */
    int64_t n_waiting, oldest_ns; /* records; time of the first; 0: unknown */
    int64_t cursor;               /* the next record to look at */
    int64_t next_pass_mono_ns, pause_ns;
    unsigned n_active;  /* records that are being pushed */
    bool is_pass_first; /* no waiting record was found in this pass yet */
    bool has_progress;  /* a record was settled in this pass */
    bool is_broken;     /* an fsync failed: nothing more is written */
    bool is_stopping;
    struct hearth_cancel cancel; /* of pushes, at the stop */
    pthread_t writer, replayers[HEARTH_SPOOL_REPLAYERS];
    unsigned n_threads;
};

/* Whether a record of n bytes fits. */
bool hearth_spool_has_room(struct hearth_spool *spool, size_t n);
/* Queue a record. UNAVAILABLE: it does not fit, and `done` is not called. */
HEARTH_MUST_CHECK
enum hearth_status hearth_spool_submit(struct hearth_spool *spool, struct hearth_spool_write *write,
                                       struct hearth_err *err);

/* Queue a job; false: the spool stops, and it is not run. */
HEARTH_MUST_CHECK bool hearth_spool_run(struct hearth_spool *spool, struct hearth_spool_job *job);

/*
 * Read the file from *at on, up to `end`, to the next header. False: no header follows, or the disk
 * cannot be read, which says nothing about the records there (*ret_errno is then not 0).
 */
bool hearth_spool_find(const struct hearth_spool *spool, int64_t *at, int64_t end,
                       struct hearth_spool_header *ret, int *ret_errno);
/* Change the state of a record in place. */
void hearth_spool_mark(struct hearth_spool *spool, int64_t at, enum hearth_spool_state state);
/* Empty the file if no record waits. The caller holds the lock. */
void hearth_spool_trim(struct hearth_spool *spool);
/* Publish the gauges. The caller holds the lock. */
void hearth_spool_publish(struct hearth_spool *spool);

void *hearth_spool_replay(void *arg);

#endif
