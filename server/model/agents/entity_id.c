/* entity_id.c -- ids as SkyWalking's agents know them (contract: hearth/model/entity_id.h). */
#include "hearth/model/entity_id.h"

#include "hearth/base/base64.h"
#include "hearth/base/buf.h"
#include "hearth/base/sha256.h"

#include <inttypes.h>

static struct hearth_str named(struct hearth_str name)
{
    return hearth_str_trim(name).n == 0 ? HEARTH_STR("_blank") : name;
}

static void append_service(struct hearth_buf *out, struct hearth_str service)
{
    hearth_base64_encode(named(service), out);
    hearth_buf_cstr(out, ".1"); /* 1: not conjectured from the other end of a call */
}

static void append_instance(struct hearth_buf *out, struct hearth_str service,
                            struct hearth_str instance)
{
    append_service(out, service);
    hearth_buf_byte(out, '_');
    hearth_base64_encode(named(instance), out);
}

static struct hearth_str take(struct hearth_buf *from, struct hearth_arena *arena)
{
    struct hearth_str text = hearth_buf_failed(from)
                                 ? hearth_str_n(NULL, 0)
                                 : hearth_arena_str(arena, hearth_buf_view(from));
    hearth_buf_release(from);
    return text;
}

struct hearth_str hearth_service_public_id(struct hearth_str service, struct hearth_arena *arena)
{
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    append_service(&buf, service);
    return take(&buf, arena);
}

struct hearth_str hearth_instance_public_id(struct hearth_str service, struct hearth_str instance,
                                            struct hearth_arena *arena)
{
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    append_instance(&buf, service, instance);
    return take(&buf, arena);
}

/* Hash the text and release it. */
static bool hash(struct hearth_buf *text, struct hearth_entity_hash *ret)
{
    bool ok = !hearth_buf_failed(text);

    if (ok) {
        struct hearth_sha256 state;
        hearth_sha256_init(&state);
        hearth_sha256_add(&state, hearth_buf_view(text));
        hearth_sha256_end_hex(&state, ret->text);
    }

    hearth_buf_release(text);

    return ok;
}

bool hearth_process_public_id(struct hearth_str service, struct hearth_str instance,
                              struct hearth_str process, struct hearth_entity_hash *ret)
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_str(&text, named(process));
    hearth_buf_byte(&text, '_');
    append_instance(&text, service, instance);
    return hash(&text, ret);
}

bool hearth_schedule_public_id(struct hearth_str task_id, struct hearth_str process_id,
                               int64_t start_ms, struct hearth_entity_hash *ret)
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_str(&text, task_id);
    hearth_buf_byte(&text, '_');
    hearth_buf_str(&text, process_id);
    hearth_buf_printf(&text, "_%" PRId64, start_ms);
    return hash(&text, ret);
}
