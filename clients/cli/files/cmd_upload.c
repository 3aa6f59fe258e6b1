/*
 * cmd_upload.c -- push files: pprof as it is, files of all other formats turned into pprof, one for
 * each profile of a file.
 *
 * Only the time of a pprof may have to change; since the last of a repeated scalar field wins in
 * protobuf, a new time_nanos is appended and the rest of the file stays untouched.
 *
 * The id of a push is made of the file's content and not of the time that it gets: so the same command
 * can be repeated after a failure that leaves open whether the profile was stored.
 */
#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/codec/compress.h"
#include "hearth/format/pprof.h"
#include "hearth/format/profile_file.h"
#include "hearth/pb/push/v1/push.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_uploads.h"
#include "open_profile.h"
#include "progress.h"
#include "side_by_side.h"
#include "text.h"

#include <stdio.h>

#define WINDOW_NS      (7 * HEARTH_NS_PER_DAY) /* the server's default */
#define TIME_NANOS_KEY (9u << 3)               /* Profile.time_nanos, a varint */
#define REPEATED       "repeated_profiles="    /* in hearth-dropped */
#define NO_SERVICE     "hearth-upload"         /* the service of files without a name */

/* What the upload is about, for guesses and messages. */
struct upload {
    const char *path;
    struct hearth_hash128 content; /* of the inflated file */
    bool is_moved;                 /* to now */
    size_t part, n_parts;          /* number of the profile in the file, from 0; of n_parts */
    int64_t before_ns;             /* time of the profile before it in the file; 0: the first */
    const char *name;              /* __name__ */
    const char *event;             /* what async-profiler sampled; "" if the file does not say */
    struct hearth_buf wire;        /* plain pprof */
    struct hearth_profile profile;
};

/* Decide the time; append it when it is not the file's own. */
static enum hearth_status set_time(struct cli *cli, struct upload *u)
{
    bool too_old = u->profile.time_ns > 0 && u->profile.time_ns < cli->now_ns - WINDOW_NS;
    bool now = cli->time_mode == NULL ? u->profile.time_ns <= 0 || too_old
                                      : strcmp(cli->time_mode, "now") == 0;

    if (!now) {
        return HEARTH_OK;
    }
    u->is_moved = true;
    if (cli->time_mode == NULL && too_old && u->profile.time_ns != u->before_ns) {
        char when[32];
        hearth_clock_format(u->profile.time_ns, when);
        (void)fprintf(stderr,
                      "%s: recorded at %s, which is older than servers accept by default "
                      "(reject-older-than, 7 days): stored as of now\n",
                      u->path, when);
    }
    hearth_buf_byte(&u->wire, TIME_NANOS_KEY);
    hearth_buf_varint(&u->wire, (uint64_t)hearth_clock_wall_ns());

    return hearth_buf_failed(&u->wire)
               ? HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the profile")
               : HEARTH_OK;
}

static enum hearth_status add_labels(struct cli *cli, const struct upload *u,
                                     Push__V1__RawProfileSeries *series)
{
    const char *name = cli->name != NULL ? cli->name : u->name;
    const char *own[] = {
        hearth_arena_printf(&cli->arena, "__name__=%s", name),
        u->event[0] == '\0' ? NULL : hearth_arena_printf(&cli->arena, "jfr_event=%s", u->event),
        "service_name=" NO_SERVICE};

    return cli_label_pairs(cli, own, HEARTH_ARRAY_LEN(own), &series->labels, &series->n_labels);
}

/* What makes a repeated push harmless. A file that was moved to now is another one than as it was recorded. */
static char *push_id(struct cli *cli, const struct upload *u)
{
    char *id = cli->id != NULL ? cli_field(cli, cli->id)
                               : hearth_arena_printf(&cli->arena, "%016llx%016llx%s",
                                                     (unsigned long long)u->content.hi,
                                                     (unsigned long long)u->content.lo,
                                                     u->is_moved ? "-now" : "");

    /* Profiles of a file may have the same labels. */
    return u->part == 0 || id == NULL ? id
                                      : hearth_arena_printf(&cli->arena, "%s-%zu", id, u->part);
}

/* Adds to the error what is known about the profile, and what to do. */
static void say_what_is_known(struct cli *cli, enum hearth_status status)
{
    char text[sizeof cli->err.msg];
    const char *known =
        status == HEARTH_DEADLINE_EXCEEDED ? "; the profile may still be stored" : "";
    /* hearth record would record another one; it says itself how to send this one. */
    const char *again = cli->program == NULL && cli->pid == NULL && cli->pprof_url == NULL
                            ? "; run the same command again: within an hour, it is stored once"
                            : "";
    if (status != HEARTH_DEADLINE_EXCEEDED && status != HEARTH_UNAVAILABLE) {
        return;
    }
    (void)snprintf(text, sizeof text, "%s", cli->err.msg);
    (void)HEARTH_FAIL(&cli->err, status, "%.300s%s%s", text, known, again);
}

void cli_put_dropped(const char *dropped, struct hearth_buf *out)
{
    static const char merged[] = "merged_samples=";
    bool is_first = true;

    for (const char *at = dropped; *at != '\0'; at += strspn(at, ", ")) {
        int n = (int)strcspn(at, ",");
        if (strncmp(at, merged, sizeof merged - 1) == 0) {
            hearth_buf_printf(out, "; %.*s added to equal ones", n - (int)sizeof merged + 1,
                              at + sizeof merged - 1);
        }
        at += n;
    }
    for (const char *at = dropped; *at != '\0'; at += strspn(at, ", ")) {
        int n = (int)strcspn(at, ",");
        if (strncmp(at, merged, sizeof merged - 1) != 0) {
            hearth_buf_printf(out, "%s%.*s", is_first ? "; dropped or cut: " : ", ", n, at);
            is_first = false;
        }
        at += n;
    }
}

static void print_stored(const struct upload *u, const char *dropped)
{
    char samples[64], types[64];
    struct hearth_buf lost;

    if (dropped != NULL && strstr(dropped, REPEATED) != NULL) {
        cli_print_result("%s: stored already within the last hour, not stored again; "
                         "another --id stores it once more\n",
                         u->path);
        return;
    }
    cli_number(u->profile.n_samples, "sample", "samples", samples);
    cli_number(u->profile.n_types, "sample type", "sample types", types);
    hearth_buf_init(&lost, 0);
    cli_put_dropped(dropped == NULL ? "" : dropped, &lost);
    cli_print_result("%s: %s%s%s, %s%.*s\n", u->path, u->n_parts > 1 ? u->name : "",
                     u->n_parts > 1 ? ", " : "", samples, types, (int)lost.n,
                     lost.n > 0 ? lost.p : "");
    hearth_buf_release(&lost);
}

static enum hearth_status push_profile(struct cli *cli, struct upload *u)
{
    struct hearth_buf packed;

    hearth_buf_init(&packed, 0);
    enum hearth_status status = hearth_gzip(hearth_buf_view(&u->wire), 6, &packed, &cli->err);
    Push__V1__RawSample sample;
    push__v1__raw_sample__init(&sample);
    Push__V1__RawSample *samples[] = {&sample};
    Push__V1__RawProfileSeries one;
    push__v1__raw_profile_series__init(&one);
    Push__V1__RawProfileSeries *series[] = {&one};
    Push__V1__PushRequest request;
    push__v1__push_request__init(&request);
    if (status == HEARTH_OK) {
        status = add_labels(cli, u, &one);
    }
    sample.id = push_id(cli, u);
    if (status == HEARTH_OK && sample.id == NULL) {
        status = HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    if (status == HEARTH_OK) {
        sample.raw_profile = (ProtobufCBinaryData){packed.n, (uint8_t *)packed.p};
        one.samples = samples;
        one.n_samples = 1;
        request.series = series;
        request.n_series = 1;
        cli->uploading = u->path;
        struct ProtobufCMessage *answer;
        struct hearth_call call = {.method = "push.v1.PusherService/Push"};
        status = hearth_call_message(cli->client, &call, &request.base,
                                     &push__v1__push_response__descriptor, &cli->arena, &answer,
                                     &cli->err);
        cli->uploading = NULL;
        if (status == HEARTH_OK) {
            print_stored(u, call.dropped);
        } else {
            say_what_is_known(cli, status);
        }
    }
    hearth_buf_release(&packed);

    return status;
}

/* Pushes one profile of a file, encoded in u->wire. */
static enum hearth_status push_part(struct cli *cli, struct upload *u)
{
    HEARTH_TRY(set_time(cli, u));

    return push_profile(cli, u);
}

/* Turns one profile of a file into pprof and pushes it. */
static enum hearth_status encode_part(struct cli *cli, struct upload *u)
{
    hearth_buf_init(&u->wire, 0);
    hearth_pprof_encode(&u->profile, &u->wire);
    enum hearth_status status = HEARTH_OK;
    if (hearth_buf_failed(&u->wire)) {
        status = HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the profile");
    } else {
        status = push_part(cli, u);
    }
    hearth_buf_release(&u->wire);

    return status;
}

static enum hearth_status push_file(struct cli *cli, const char *path, struct hearth_buf *plain)
{
    struct hearth_file_profiles file;

    HEARTH_TRY(cli_open_profile(cli, path, plain, &file));
    bool is_pprof = strcmp(file.format, "pprof") == 0;
    struct hearth_hash128 content = hearth_hash128(plain->p, plain->n, 0);
    for (size_t i = 0; i < file.n_profiles; i++) {
        struct upload part = {.path = path,
                              .content = content,
                              .part = i,
                              .n_parts = file.n_profiles,
                              .before_ns = i > 0 ? file.profiles[i - 1].profile.time_ns : 0,
                              .profile = file.profiles[i].profile};
        part.name =
            hearth_arena_strndup(&cli->arena, file.profiles[i].name.p, file.profiles[i].name.n);
        part.event =
            file.event.n == 0 ? "" : hearth_arena_strndup(&cli->arena, file.event.p, file.event.n);
        if (part.name == NULL || part.event == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }

        if (is_pprof) { /* its own bytes, which may have fields that are not decoded */
            part.wire = *plain;
            enum hearth_status status = push_part(cli, &part);
            *plain = part.wire;
            return status;
        }
        HEARTH_TRY(encode_part(cli, &part));
    }

    return HEARTH_OK;
}

static enum cli_exit upload_file(struct cli *cli, const char *path)
{
    struct hearth_buf plain;

    hearth_buf_init(&plain, 0);
    enum hearth_status status = push_file(cli, path, &plain);
    hearth_buf_release(&plain);
    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "%s", path);
        return cli_fail(cli, status);
    }

    return CLI_OK;
}

enum cli_exit cli_upload(struct cli *cli)
{
    if (cli->id != NULL && (cli->n_args > 1 || cli->id[0] == '\0')) {
        return cli_usage("--id requires exactly one file");
    }

    enum cli_exit code = cli_each_file(cli, upload_file);
    if (code == CLI_OK && !cli_names_service(cli)) {
        cli_say("stored as service " NO_SERVICE, "name another one with -l service_name=NAME");
    }

    return code;
}
