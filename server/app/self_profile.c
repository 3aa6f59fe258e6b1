/*
 * self_profile.c -- timers, the signal handler, and its samples as pprof.
 *
 * The handler only accesses its stack, the recording and the unwind tables. A recording is freed
 * when no handler runs: each handler counts itself before it reads the pointer to the recording.
 */
#include "self_profile.h"

#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/format/pprof.h"
#include "hearth/format/profile_builder.h"

#include "self_symbols.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#ifndef sigev_notify_thread_id
#    define sigev_notify_thread_id _sigev_un._tid
#endif

#define PERIOD_NS        (10 * HEARTH_NS_PER_MS)
#define POLL_NS          (50 * HEARTH_NS_PER_MS) /* to find new threads and a cancelled request */
#define MAX_DEPTH        128u
#define MAX_THREADS      4096u
#define MAX_RECORD_WORDS ((size_t)8 << 20) /* 64 MiB: 60 s of about thirty busy processors */
#define MIN_RECORD_WORDS ((size_t)256 << 10)
#define ARENA_BYTES      ((size_t)512 << 20)
#define GZIP_LEVEL       6

struct recording {
    size_t n_words;             /* capacity */
    _Atomic size_t used;        /* words taken, which may exceed the capacity */
    _Atomic uint64_t n_dropped; /* samples that did not fit */
    uintptr_t words[];          /* per sample: number of periods, depth, addresses (leaf first) */
};

struct watched_thread {
    pid_t tid;
    timer_t timer;
};

struct sampler {
    struct recording *recording;
    struct watched_thread *threads;
    size_t n_threads;
    int refused; /* errno of the latest timer that was refused */
};

static struct recording *_Atomic g_recording; /* NULL: handlers do nothing */
static _Atomic int g_n_handling;              /* handlers that are running */
static _Atomic bool g_is_busy;                /* a profile is being taken */

/* ---- the handler ---- */

struct stack_walk {
    uintptr_t interrupted;
    size_t n;
    bool has_begun;
    uintptr_t at[MAX_DEPTH];
};

static uintptr_t read_interrupted_address(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
#    error "the register with the interrupted address is unknown for this processor"
#endif
}

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
    struct stack_walk *walk = arg;
    int is_exact = 0;
    uintptr_t at = (uintptr_t)_Unwind_GetIPInfo(context, &is_exact);

    /* Skip the frames of the handler: the walk begins at the interrupted address. */
    if (!walk->has_begun) {
        walk->has_begun = at == walk->interrupted;
        if (!walk->has_begun) {
            return _URC_NO_REASON;
        }
        is_exact = 1;
    }

    if (walk->n == MAX_DEPTH || at == 0) {
        return _URC_END_OF_STACK;
    }

    walk->at[walk->n++] = is_exact != 0 ? at : at - 1; /* in the call, not after it */
    return _URC_NO_REASON;
}

static void take_sample(struct recording *recording, int n_missed, const ucontext_t *context)
{
    struct stack_walk walk = {.interrupted = read_interrupted_address(context)};

    (void)_Unwind_Backtrace(note_frame, &walk);
    if (walk.n == 0) {
        walk.at[walk.n++] = walk.interrupted;
    }

    size_t from = atomic_fetch_add(&recording->used, walk.n + 2);
    if (from > recording->n_words || recording->n_words - from < walk.n + 2) {
        (void)atomic_fetch_add(&recording->n_dropped, 1);
        return;
    }

    recording->words[from] = 1 + (n_missed > 0 ? (uintptr_t)n_missed : 0);
    recording->words[from + 1] = walk.n;
    memcpy(&recording->words[from + 2], walk.at, walk.n * sizeof walk.at[0]);
}

static void on_sigprof(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)number;
    (void)atomic_fetch_add(&g_n_handling, 1);
    struct recording *recording = atomic_load(&g_recording);
    if (recording != NULL && info->si_code == SI_TIMER) {
        take_sample(recording, info->si_overrun, context);
    }

    (void)atomic_fetch_sub(&g_n_handling, 1);
    errno = saved;
}

/* ---- timers ---- */

/* The clock of a thread's CPU time, in the numbering of the kernel. */
static clockid_t make_cpu_clock(pid_t tid)
{
    return (clockid_t)(~(unsigned)tid << 3 | 6u);
}

static bool is_watched(const struct sampler *sampler, pid_t tid)
{
    for (size_t i = 0; i < sampler->n_threads; i++) {
        if (sampler->threads[i].tid == tid) {
            return true;
        }
    }

    return false;
}

static void watch_thread(struct sampler *sampler, pid_t tid)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};

    event.sigev_notify_thread_id = tid;
    const struct itimerspec every = {.it_interval.tv_nsec = PERIOD_NS,
                                     .it_value.tv_nsec = PERIOD_NS};
    assert(sampler->n_threads < MAX_THREADS);
    struct watched_thread *watched = &sampler->threads[sampler->n_threads];
    if (timer_create(make_cpu_clock(tid), &event, &watched->timer) != 0) {
        sampler->refused = errno; /* or the thread has just ended */
        return;
    }

    watched->tid = tid;
    sampler->n_threads++;
    (void)timer_settime(watched->timer, 0, &every, NULL);
}

/* Timers of threads that have ended are deleted with the others, at the end. */
static void watch_new_threads(struct sampler *sampler)
{
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) {
        int64_t tid;
        if (sampler->n_threads < MAX_THREADS &&
            hearth_str_to_i64(hearth_str_c(entry->d_name), &tid) &&
            !is_watched(sampler, (pid_t)tid)) {
            watch_thread(sampler, (pid_t)tid);
        }
    }

    if (tasks != NULL) {
        (void)closedir(tasks);
    }
}

static enum hearth_status record_samples(struct sampler *sampler, int64_t duration_ns,
                                         struct hearth_cancel *cancel, struct hearth_err *err)
{
    int64_t until = hearth_clock_mono_ns() + duration_ns;
    struct sigaction action = {.sa_sigaction = on_sigprof, .sa_flags = SA_SIGINFO | SA_RESTART};

    (void)sigfillset(&action.sa_mask);
    (void)sigaction(SIGPROF, &action, NULL); /* the handler stays: a signal may arrive late */
    atomic_store(&g_recording, sampler->recording);
    enum hearth_status status = HEARTH_OK;

    /* Sleep in short steps; each thread is sampled by its own timer. */
    for (int64_t left = duration_ns; left > 0; left = until - hearth_clock_mono_ns()) {
        watch_new_threads(sampler);
        if (sampler->n_threads == 0) {
            status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot create timers: %s",
                                 strerrordesc_np(sampler->refused));
            break;
        }
        (void)usleep((useconds_t)((left < POLL_NS ? left : POLL_NS) / 1000) + 1);
        status = hearth_cancel_check(cancel, err);
        if (status != HEARTH_OK) {
            break;
        }
    }

    /* No new handler uses the recording; wait for the running ones. */
    atomic_store(&g_recording, NULL);
    for (size_t i = 0; i < sampler->n_threads; i++) {
        (void)timer_delete(sampler->threads[i].timer);
    }

    while (atomic_load(&g_n_handling) > 0) {
        (void)usleep(100);
    }

    return status;
}

/* ---- pprof ---- */

struct profile_writer {
    struct hearth_profile_builder *builder;
    const struct hearth_self_image *images;
    size_t n_images;
    uint32_t *mappings; /* index of each image's mapping; HEARTH_NO_INDEX until it is needed */
};

static uint32_t find_or_add_mapping(struct profile_writer *writer,
                                    const struct hearth_self_image *image)
{
    assert(image >= writer->images && image < writer->images + writer->n_images);

    uint32_t *index = &writer->mappings[image - writer->images];
    if (*index == HEARTH_NO_INDEX) {
        struct hearth_profile_builder *b = writer->builder;
        const struct hearth_mapping mapping = {
            .start = image->start,
            .limit = image->limit,
            .offset = image->offset,
            .filename = hearth_profile_builder_string(b, hearth_str_c(image->path)),
            .build_id = hearth_profile_builder_string(b, hearth_str_c(image->build_id)),
            .has_functions = image->n_symbols > 0,
        };
        *index = hearth_profile_builder_mapping(b, &mapping);
    }

    return *index;
}

static uint32_t find_or_add_location(struct profile_writer *writer, uint64_t address)
{
    struct hearth_profile_builder *b = writer->builder;
    const struct hearth_self_image *image =
        hearth_self_image_find(writer->images, writer->n_images, address);
    struct hearth_location location = {.mapping = HEARTH_NO_INDEX, .address = address};
    const char *name = NULL;
    if (image != NULL) {
        location.mapping = find_or_add_mapping(writer, image);
        name = hearth_self_symbol_find(image, address);
    }

    if (name == NULL) {
        return hearth_profile_builder_location(b, &location, NULL, 0);
    }

    uint32_t text = hearth_profile_builder_string(b, hearth_str_c(name));
    const struct hearth_function function = {.name = text, .system_name = text};
    const struct hearth_line line = {.function = hearth_profile_builder_function(b, &function)};

    return hearth_profile_builder_location(b, &location, &line, 1);
}

static enum hearth_status add_samples(struct profile_writer *writer,
                                      const struct recording *recording, struct hearth_err *err)
{
    size_t used = atomic_load(&recording->used);
    size_t end = used < recording->n_words ? used : recording->n_words;
    for (size_t at = 0; end - at > 2;) {
        size_t depth = recording->words[at + 1];
        if (depth == 0 || depth > MAX_DEPTH || depth > end - at - 2) {
            break; /* the first sample that did not fit */
        }

        uint32_t locations[MAX_DEPTH];
        for (size_t i = 0; i < depth; i++) {
            locations[i] = find_or_add_location(writer, recording->words[at + 2 + i]);
            if (locations[i] == HEARTH_NO_INDEX) {
                return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the profile");
            }
        }

        int64_t times = (int64_t)recording->words[at];
        const int64_t values[2] = {times, times * PERIOD_NS};
        HEARTH_TRY(hearth_profile_builder_sample(writer->builder, locations, (uint32_t)depth,
                                                 values, err));
        at += depth + 2;
    }

    return HEARTH_OK;
}

static enum hearth_status build_profile(struct profile_writer *writer,
                                        const struct recording *recording,
                                        struct hearth_profile *profile, struct hearth_err *err)
{
    struct hearth_profile_builder *b = writer->builder;
    uint32_t cpu = hearth_profile_builder_string(b, HEARTH_STR("cpu"));
    uint32_t nanoseconds = hearth_profile_builder_string(b, HEARTH_STR("nanoseconds"));

    if (writer->n_images > 0) {
        /* readers regard the first one as the program */
        (void)find_or_add_mapping(writer, &writer->images[0]);
    }

    (void)hearth_profile_builder_type(b, HEARTH_STR("samples"), HEARTH_STR("count"));
    if (hearth_profile_builder_type(b, HEARTH_STR("cpu"), HEARTH_STR("nanoseconds")) !=
        HEARTH_NO_INDEX) {
        HEARTH_TRY(add_samples(writer, recording, err));
    }

    HEARTH_TRY(hearth_profile_builder_finish(b, profile, err));
    profile->period_type = (struct hearth_value_type){cpu, nanoseconds};
    profile->period = PERIOD_NS;
    profile->default_type = cpu;

    return HEARTH_OK;
}

static enum hearth_status encode_profile(const struct recording *recording, int64_t began_ns,
                                         int64_t duration_ns, struct hearth_arena *arena,
                                         struct hearth_buf *out, struct hearth_err *err)
{
    struct profile_writer writer = {.builder = hearth_profile_builder_new(arena)};

    writer.images = hearth_self_images(arena, &writer.n_images);
    writer.mappings = hearth_arena_array(arena, writer.n_images, sizeof *writer.mappings);
    enum hearth_status status = HEARTH_OK;
    struct hearth_profile profile;
    if (writer.builder == NULL || writer.images == NULL || writer.mappings == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the profile");
    } else {
        memset(writer.mappings, 0xff, writer.n_images * sizeof *writer.mappings);
        status = build_profile(&writer, recording, &profile, err);
    }

    if (status == HEARTH_OK) {
        profile.time_ns = began_ns;
        profile.duration_ns = duration_ns;
        struct hearth_buf plain;
        hearth_buf_init(&plain, 0);
        hearth_pprof_encode(&profile, &plain);
        if (hearth_buf_failed(&plain)) {
            status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the profile");
        } else {
            status = hearth_gzip(hearth_buf_view(&plain), GZIP_LEVEL, out, err);
        }
        hearth_buf_release(&plain);
    }

    hearth_profile_builder_free(writer.builder);

    return status;
}

static size_t choose_record_words(int64_t duration_ns)
{
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t samples = (size_t)(duration_ns / PERIOD_NS + 1) * (n_cpus < 1 ? 1 : (size_t)n_cpus);
    size_t words = samples * (MAX_DEPTH / 2);

    return words < MIN_RECORD_WORDS   ? MIN_RECORD_WORDS
           : words > MAX_RECORD_WORDS ? MAX_RECORD_WORDS
                                      : words;
}

static enum hearth_status profile_once(int64_t duration_ns, struct hearth_cancel *cancel,
                                       struct hearth_buf *out, struct hearth_err *err)
{
    size_t n_words = choose_record_words(duration_ns);
    struct sampler sampler = {
        .recording = hearth_mem_zalloc(sizeof(struct recording) + n_words * sizeof(uintptr_t)),
        .threads = hearth_mem_zalloc(MAX_THREADS * sizeof(struct watched_thread)),
    };

    enum hearth_status status = HEARTH_NO_MEMORY;
    if (sampler.recording == NULL || sampler.threads == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the profile");
    } else {
        int64_t began_ns = hearth_clock_wall_ns();

        sampler.recording->n_words = n_words;
        status = record_samples(&sampler, duration_ns, cancel, err);
        struct hearth_arena arena;
        hearth_arena_init(&arena, ARENA_BYTES);
        if (status == HEARTH_OK) {
            status = encode_profile(sampler.recording, began_ns, duration_ns, &arena, out, err);
        }

        hearth_arena_release(&arena);
        HEARTH_LOG(HEARTH_LOG_INFO, "app", "took a CPU profile of this process", "status",
                   hearth_status_name(status), "seconds",
                   hearth_log_i64(duration_ns / HEARTH_NS_PER_SEC), "threads",
                   hearth_log_i64((int64_t)sampler.n_threads), "dropped",
                   hearth_log_i64((int64_t)atomic_load(&sampler.recording->n_dropped)), NULL);
    }

    hearth_mem_free(sampler.recording);
    hearth_mem_free(sampler.threads);

    return status;
}

enum hearth_status hearth_self_profile(int64_t duration_ns, struct hearth_cancel *cancel,
                                       struct hearth_buf *out, struct hearth_err *err)
{
    assert(duration_ns > 0);

    if (atomic_exchange(&g_is_busy, true)) {
        return HEARTH_FAIL(
            err, HEARTH_RESOURCE_EXHAUSTED,
            "a profile of this process is already being taken; retry when it has ended");
    }

    enum hearth_status status = profile_once(duration_ns, cancel, out, err);
    atomic_store(&g_is_busy, false);

    return status;
}
