/* read_dict_load.c -- reading a dictionary from hearth_data.dict_chunk (read_dict_load.h). */
#include "read/read_dict_load.h"

#include "hearth/codec/compress.h"

#include "pg/pg.h"
#include "session/session.h"

#include <assert.h>

#define MAX_CHUNK_BYTES ((size_t)256 << 20) /* of a chunk, unpacked */

/* $1 service, $2 day, $3 writer, $4 and $5 key of the last chunk. By the primary key. */
static const char SQL_CHUNKS[] =
    "SELECT first_stack, first_string, payload FROM hearth_data.dict_chunk"
    " WHERE service_id = $1 AND day = $2 AND writer_id = $3"
    " AND (first_stack, first_string) > ($4, $5) ORDER BY first_stack, first_string";

struct chunk_load {
    struct hearth_dict_key key;
    struct hearth_loaded_dict *loaded;
    const struct hearth_scope *scope;
    struct hearth_inflater *inflater;
    struct hearth_buf bytes; /* of a chunk, unpacked */
};

static enum hearth_status apply_chunk(void *context, const PGresult *row, struct hearth_err *err)
{
    struct chunk_load *load = context;
    int32_t first_stack = hearth_pg_i32(row, 0, 0), first_string = hearth_pg_i32(row, 0, 1);

    /* Unpack and apply it. */
    hearth_buf_reset(&load->bytes);
    enum hearth_status status =
        hearth_inflate(load->inflater, HEARTH_COMPRESSION_ZSTD, hearth_pg_str(row, 0, 2),
                       MAX_CHUNK_BYTES, &load->bytes, err);
    if (status == HEARTH_OK) {
        status = hearth_dict_apply(load->loaded->dict, hearth_buf_view(&load->bytes), err);
    }

    if (status == HEARTH_OK) {
        load->loaded->last_stack = first_stack;
        load->loaded->last_string = first_string;
        return HEARTH_OK;
    }

    /* The bytes are Hearth's own, not the caller's: whatever is wrong with them is CORRUPT. */
    hearth_err_prefix(err, "dictionary of service %d, day %d, writer %d, chunk at stack %d",
                      (int)load->key.service_id, (int)load->key.day, (int)load->key.writer_id,
                      (int)first_stack);
    status = status == HEARTH_NO_MEMORY ? HEARTH_NO_MEMORY : HEARTH_CORRUPT;
    if (err != NULL) {
        err->status = status;
    }

    return status;
}

/* A second run continues after the chunks that the first has applied. */
static enum hearth_status load_chunks_on(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct chunk_load *load = context;
    struct hearth_arena arena;
    struct hearth_pg_params params;

    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32(&params, load->key.service_id);
    hearth_pg_param_i32(&params, load->key.day);
    hearth_pg_param_i32(&params, load->key.writer_id);
    hearth_pg_param_i32(&params, load->loaded->last_stack);
    hearth_pg_param_i32(&params, load->loaded->last_string);
    enum hearth_status status = hearth_pg_stream(pg, SQL_CHUNKS, &params, load->scope->cancel,
                                                 apply_chunk, load, ret_fault, err);
    hearth_arena_release(&arena);

    return status;
}

enum hearth_status hearth_read_dict_load(const struct hearth_scope *scope,
                                         struct hearth_dict_key key,
                                         struct hearth_loaded_dict *loaded, struct hearth_err *err)
{
    assert(loaded->dict != NULL);

    struct chunk_load load = {
        .key = key, .loaded = loaded, .scope = scope, .inflater = hearth_inflater_new()};
    if (load.inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to load a dictionary");
    }

    /* Apply the chunks. */
    hearth_buf_init(&load.bytes, MAX_CHUNK_BYTES);
    const struct hearth_store_reader reader = {scope, &key.service_id, 1, load_chunks_on, &load};
    enum hearth_status status = hearth_store_read_with_pg(&reader, err);

    /* The chunks before a damaged one are good, and older profiles need only these. */
    if (status == HEARTH_OK || status == HEARTH_CORRUPT) {
        enum hearth_status built =
            hearth_dict_build_tree(loaded->dict, status == HEARTH_OK ? err : NULL);
        loaded->has_tree = loaded->has_tree || built == HEARTH_OK;
        status = status == HEARTH_OK ? built : status;
    }

    hearth_buf_release(&load.bytes);
    hearth_inflater_free(load.inflater);

    return status;
}
