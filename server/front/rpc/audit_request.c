/* audit_request.c -- events of the audit log, made from requests. */
#include "rpc/audit_request.h"

#include "hearth/codec/pb.h"

#include "rpc/front_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_OBJECT_BYTES 2048
#define WRITE_NS         (5 * HEARTH_NS_PER_SEC)

void hearth_rpc_set_object(struct hearth_rpc *rpc, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    rpc->audit_object = hearth_arena_strndup(&rpc->arena, text, strlen(text));
}

void hearth_rpc_write_request(struct hearth_rpc *rpc, size_t max_bytes, struct hearth_buf *out)
{
    bool is_secret = (rpc->method->flags & HEARTH_METHOD_SECRET) != 0;
    struct hearth_pb_json *json =
        rpc->request == NULL || is_secret ? NULL : hearth_pb_json_new(rpc->request, &rpc->arena);
    if (json != NULL) {
        (void)hearth_pb_json_more(json, max_bytes, out);
        hearth_pb_json_release(json);
    }
}

/* What the handler said, or the request. */
static void write_object(struct hearth_rpc *rpc, struct hearth_buf *out)
{
    if (rpc->audit_object != NULL) {
        hearth_buf_cstr(out, rpc->audit_object);
    } else {
        hearth_rpc_write_request(rpc, MAX_OBJECT_BYTES, out);
    }
}

/* Changes of tokens and grants have no tenant. They are events of the caller's tenant, if it has
 * roles in one only: its administrators find them. */
static struct hearth_str find_event_tenant(const struct hearth_rpc *rpc)
{
    const struct hearth_admission *admission = &rpc->caller.admission;
    bool is_of_some =
        (rpc->method->flags & HEARTH_METHOD_SOME_TENANT) != 0 && admission->access != NULL;
    struct hearth_str only =
        is_of_some ? hearth_access_only_tenant(admission) : hearth_str_n(NULL, 0);

    return only.p != NULL ? only : hearth_rpc_tenant(rpc);
}

enum hearth_status hearth_rpc_write_audit(struct hearth_rpc *rpc, enum hearth_status status)
{
    struct hearth_access *access = rpc->front->options.access;
    const struct hearth_admission *admission = &rpc->caller.admission;
    struct hearth_buf object;

    rpc->is_audited = false;
    if (access == NULL) {
        return status;
    }

    hearth_buf_init(&object, 0);
    write_object(rpc, &object);
    size_t n = object.n < MAX_OBJECT_BYTES ? object.n : MAX_OBJECT_BYTES;
    hearth_str_utf8_mend(object.p, n);
    const struct hearth_audit_event event = {
        .tenant = find_event_tenant(rpc),
        .subject = admission->access == NULL ? HEARTH_STR("anonymous") : admission->subject,
        .address = hearth_str_c(rpc->caller.address),
        .action = hearth_str_c(rpc->method->path),
        .object = hearth_str_n(object.p, n),
        .outcome = hearth_str_c(hearth_status_name(status)),
        .message = status == HEARTH_OK ? HEARTH_STR("") : hearth_str_c(rpc->err.msg),
    };

    /* Its own deadline: the request's may have passed. */
    struct hearth_cancel cancel;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_cancel_init(&cancel, hearth_clock_mono_ns() + WRITE_NS);
    enum hearth_status written = hearth_audit_write(access, &event, &cancel, &err);
    hearth_buf_release(&object);
    if (written == HEARTH_OK || status != HEARTH_OK) {
        return status;
    }

    return HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE,
                       "the call was carried out, but could not be written to the audit log: %s",
                       err.msg);
}
