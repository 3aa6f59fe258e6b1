/* entity_id.c -- ids as SkyWalking's agents define them (contract: hearth/model/entity_id.h). */
#include "hearth/model/entity_id.h"

#include "hearth/base/base64.h"
#include "hearth/base/buf.h"
#include "hearth/base/sha256.h"

#include <assert.h>
#include <inttypes.h>

/* The name, or "_blank" for a blank one. */
static struct hearth_str replace_blank(struct hearth_str name)
{
    return hearth_str_trim(name).n == 0 ? HEARTH_STR("_blank") : name;
}

static void append_service(struct hearth_buf *out, struct hearth_str service)
{
    hearth_base64_encode(replace_blank(service), out);
    hearth_buf_cstr(out, ".1"); /* 1: a real service, not one inferred from a call to it */
}

static void append_instance(struct hearth_buf *out, struct hearth_str service,
                            struct hearth_str instance)
{
    append_service(out, service);
    hearth_buf_byte(out, '_');
    hearth_base64_encode(replace_blank(instance), out);
}

/* Hash the text and release it. False if the text is incomplete, because memory was refused. */
static bool hash_text(struct hearth_buf *text, struct hearth_entity_hash *ret)
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
    assert(ret != NULL);

    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_str(&text, replace_blank(process));
    hearth_buf_byte(&text, '_');
    append_instance(&text, service, instance);
    return hash_text(&text, ret);
}

bool hearth_schedule_public_id(struct hearth_str task_id, struct hearth_str process_id,
                               int64_t start_ms, struct hearth_entity_hash *ret)
{
    assert(ret != NULL);

    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_str(&text, task_id);
    hearth_buf_byte(&text, '_');
    hearth_buf_str(&text, process_id);
    hearth_buf_printf(&text, "_%" PRId64, start_ms);
    return hash_text(&text, ret);
}
