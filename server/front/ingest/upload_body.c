/*
 * upload_body.c -- finds the profile of an upload to /ingest in its body: decompresses, reads
 * forms, and decides on the format.
 */
#include "hearth/base/limit.h"
#include "hearth/codec/compress.h"
#include "hearth/format/perf_data.h"
#include "hearth/format/profile_file.h"

#include "handlers.h"
#include "http/http_call.h"
#include "ingest/kept_originals.h"
#include "ingest/upload.h"
#include "rpc/client_family.h"

#include <assert.h>

#define MAX_INFLATIONS 2 /* a compressed profile in a compressed body */

#define MAX_CONTEXT_LABEL_BYTES (4u << 20)

/* Drops the body, unless it has the bytes of the file that is kept. */
static void replace_body(struct upload *u, struct hearth_buf plain)
{
    struct hearth_buf *body = &u->call->body, *sent = &u->call->sent;

    if (u->keeps && sent->p == NULL) {
        *sent = *body;
    } else {
        hearth_buf_release(body);
    }
    *body = plain;
}

/* Makes the decompressed bytes of `packed`, which may be a part of the body, the body. */
static enum hearth_status inflate_body(struct upload *u, struct hearth_str packed)
{
    struct hearth_rpc *rpc = u->rpc;
    struct hearth_buf *body = &u->call->body, plain;
    struct hearth_inflater *inflater = hearth_rpc_inflater();
    size_t cap = (size_t)rpc->front->options.max_request_bytes;

    if (inflater == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    hearth_buf_init(&plain, 0);
    plain.budget = body->budget;
    enum hearth_status status =
        hearth_inflate(inflater, hearth_compression_detect(packed), packed, cap, &plain, &rpc->err);
    if (status == HEARTH_OK) {
        replace_body(u, plain);
        return HEARTH_OK;
    }

    hearth_buf_release(&plain);
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        return HEARTH_FAIL(
            &rpc->err, HEARTH_TOO_LARGE,
            "request body inflates to more than the limit of %zu bytes" HEARTH_RAISE_OPTION(
                "max-request-bytes"),
            cap);
    }

    return status;
}

/* Replaces the labels of contexts, which live in the arena, by their decompressed bytes. */
static enum hearth_status inflate_context_labels(struct upload *u)
{
    struct hearth_rpc *rpc = u->rpc;
    enum hearth_compression compression = hearth_compression_detect(u->context_labels);

    if (compression == HEARTH_COMPRESSION_NONE) {
        return HEARTH_OK;
    }

    enum hearth_status status = hearth_inflate_in_arena(
        hearth_rpc_inflater(), compression, u->context_labels, MAX_CONTEXT_LABEL_BYTES,
        &u->call->arena, &u->context_labels, &rpc->err);
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                             "the part \"labels\" inflates to more than %u bytes",
                             MAX_CONTEXT_LABEL_BYTES);
    }

    return status;
}

/*
 * Takes the body from the request. The engine decompresses profiles, but forms, bodies with a
 * Content-Encoding, and formats that are recognised by their bytes are decompressed here.
 */
static enum hearth_status take_upload_body(struct upload *u)
{
    struct hearth_rpc *rpc = u->rpc;
    struct hearth_buf *body = &u->call->body;

    hearth_buf_str(body, rpc->body);
    if (hearth_buf_failed(body)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for the body");
    }

    if (rpc->drop_body != NULL) {
        rpc->drop_body(rpc);
        rpc->drop_body = NULL;
    }

    u->file.bytes = hearth_buf_view(body);
    enum hearth_ingest_format format = u->hints.format;
    bool is_ours = rpc->http->content_encoding.n > 0 || format == HEARTH_INGEST_MULTIPART ||
                   format == HEARTH_INGEST_JFR || format == HEARTH_INGEST_SPEEDSCOPE ||
                   format == HEARTH_INGEST_UNKNOWN;
    for (int i = 0; is_ours && i < MAX_INFLATIONS; i++) {
        if (hearth_compression_detect(hearth_buf_view(body)) == HEARTH_COMPRESSION_NONE) {
            break;
        }

        HEARTH_TRY(inflate_body(u, hearth_buf_view(body)));
    }

    u->profile = hearth_buf_view(body);

    return HEARTH_OK;
}

/* Keeps the file of a form instead of the whole body. */
static enum hearth_status keep_form_file(struct upload *u, const struct hearth_multipart_file *file)
{
    if (!u->keeps) {
        return HEARTH_OK;
    }

    /* The form lies in the body, so a compressed body is not needed any more. */
    hearth_buf_release(&u->call->sent);
    u->file.bytes = file->body;
    if (file->filename.n > 0) {
        u->file.name = hearth_original_name_of_client(&u->call->arena, file->filename);
        if (u->file.name.p == NULL) {
            return HEARTH_FAIL_ARENA(&u->rpc->err, &u->call->arena);
        }
    }

    return HEARTH_OK;
}

/* A form of the Java SDK: the recording, and the labels of its contexts. Both may be compressed. */
static enum hearth_status read_recording_form(struct upload *u)
{
    struct hearth_arena *arena = &u->call->arena;
    const struct hearth_multipart_file *jfr = hearth_multipart_find(&u->form, "jfr");
    const struct hearth_multipart_file *labels = hearth_multipart_find(&u->form, "labels");

    assert(jfr != NULL);
    u->hints.format = HEARTH_INGEST_JFR;
    u->profile = jfr->body;
    HEARTH_TRY(keep_form_file(u, jfr));

    /* The form borrows from the body, which the decompressed recording replaces. */
    if (labels != NULL) {
        u->context_labels = hearth_arena_str(arena, labels->body);
        if (u->context_labels.p == NULL) {
            return HEARTH_FAIL_ARENA(&u->rpc->err, arena);
        }
    }
    if (hearth_compression_detect(u->profile) != HEARTH_COMPRESSION_NONE) {
        HEARTH_TRY(inflate_body(u, u->profile));
        u->profile = hearth_buf_view(&u->call->body);
    }

    return inflate_context_labels(u);
}

/* The files "object" of a form whose profile is a perf.data: programs with names of functions. */
static enum hearth_status take_objects(struct upload *u)
{
    const struct hearth_multipart *form = &u->form;

    u->objects = hearth_arena_array(&u->call->arena, form->n_files, sizeof *u->objects);
    if (u->objects == NULL) {
        return HEARTH_FAIL_ARENA(&u->rpc->err, &u->call->arena);
    }

    for (size_t i = 0; i < form->n_files; i++) {
        const struct hearth_multipart_file *file = &form->files[i];
        if (hearth_str_eq_c(file->name, "object")) {
            u->objects[u->n_objects++] = (struct hearth_file_object){file->filename, file->body};
        }
    }

    return HEARTH_OK;
}

static enum hearth_status read_upload_form(struct upload *u)
{
    struct hearth_err *err = &u->rpc->err;
    struct hearth_arena *arena = &u->call->arena;
    struct hearth_json_cell *cells;

    HEARTH_TRY(hearth_multipart_parse(u->rpc->http->content_type, u->profile, &u->form, err));
    const struct hearth_multipart_file *profile = hearth_multipart_find(&u->form, "profile");
    const struct hearth_multipart_file *config =
        hearth_multipart_find(&u->form, "sample_type_config");
    if (hearth_multipart_find(&u->form, "prev_profile") != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "unsupported client version: it sends cumulative profiles "
                           "(prev_profile), please update it");
    }

    if (config != NULL && config->body.n > 0) {
        enum hearth_status status =
            hearth_json_table_read(config->body, arena, &cells, &u->hints.n_cells, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "sample_type_config");
            return status;
        }

        u->hints.cells = cells;
    }

    if (profile == NULL && hearth_multipart_find(&u->form, "jfr") != NULL) {
        return read_recording_form(u);
    }

    u->profile = HEARTH_STR("");
    if (profile != NULL) {
        u->profile = profile->body;
        HEARTH_TRY(keep_form_file(u, profile));
    }
    if (hearth_perf_data_recognise(u->profile)) {
        u->hints.format = HEARTH_INGEST_UNKNOWN; /* the bytes decide */
        return take_objects(u);
    }

    u->hints.format = HEARTH_INGEST_PPROF;

    return HEARTH_OK;
}

/* The format of a name of profile_file.h. */
static enum hearth_ingest_format find_format_of_name(const char *name)
{
    static const struct {
        const char *name;
        enum hearth_ingest_format format;
    } named[] = {
        {"pprof", HEARTH_INGEST_PPROF},
        {"collapsed", HEARTH_INGEST_COLLAPSED},
        {"JFR", HEARTH_INGEST_JFR},
        {"speedscope", HEARTH_INGEST_SPEEDSCOPE},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(named); i++) {
        if (strcmp(name, named[i].name) == 0) {
            return named[i].format;
        }
    }

    return HEARTH_INGEST_FILE;
}

/*
 * Lets the bytes decide if the request does not. A pprof and a text have parameters of the request,
 * and are decoded by the engine; everything else is a file that says itself what it has.
 */
static void recognise_body(struct upload *u)
{
    enum hearth_ingest_format *format = &u->hints.format;

    if (*format == HEARTH_INGEST_UNKNOWN && u->profile.n > 0) {
        const char *name = hearth_profile_file_recognise(u->profile, &u->call->arena);
        u->file_format = name == NULL ? "" : name;
        u->rpc->refusal = name == NULL ? HEARTH_UNSUPPORTED_FORMAT : u->rpc->refusal;
        *format = find_format_of_name(u->file_format);
    }

    if (*format == HEARTH_INGEST_JFR || *format == HEARTH_INGEST_SPEEDSCOPE) {
        u->file_format = *format == HEARTH_INGEST_JFR ? "JFR" : "speedscope";
    } else if (*format != HEARTH_INGEST_FILE) {
        u->file_format = NULL;
    }
}

/* Names the kept file by its format, unless its client did. */
static enum hearth_status name_kept_file(struct upload *u)
{
    static const char *const names[] = {
        [HEARTH_INGEST_UNKNOWN] = "profile",
        [HEARTH_INGEST_PPROF] = "profile.pb",
        [HEARTH_INGEST_MULTIPART] = "profile",
        [HEARTH_INGEST_COLLAPSED] = "profile.collapsed",
        [HEARTH_INGEST_LINES] = "profile.lines",
        [HEARTH_INGEST_TRIE] = "profile.trie",
        [HEARTH_INGEST_TREE] = "profile.tree",
        [HEARTH_INGEST_JFR] = "profile.jfr",
        [HEARTH_INGEST_SPEEDSCOPE] = "profile.speedscope.json",
        [HEARTH_INGEST_FILE] = "profile",
    };
    struct hearth_arena *arena = &u->call->arena;

    if (!u->keeps || u->file.name.n > 0) {
        return HEARTH_OK;
    }

    assert((size_t)u->hints.format < HEARTH_ARRAY_LEN(names));
    u->file.name = hearth_original_name_of_bytes(arena, names[u->hints.format], u->file.bytes);

    return u->file.name.p == NULL ? HEARTH_FAIL_ARENA(&u->rpc->err, arena) : HEARTH_OK;
}

enum hearth_status hearth_upload_read_body(struct upload *u)
{
    u->keeps = hearth_front_keeps(u->rpc->front, HEARTH_KEPT_INGEST);
    HEARTH_TRY(take_upload_body(u));
    bool is_form = hearth_ingest_format_of(HEARTH_STR(""), u->rpc->http->content_type) ==
                   HEARTH_INGEST_MULTIPART;
    if (u->hints.format == HEARTH_INGEST_MULTIPART ||
        (is_form && u->hints.format == HEARTH_INGEST_JFR)) {
        HEARTH_TRY(read_upload_form(u));
    }

    recognise_body(u);

    return name_kept_file(u);
}
