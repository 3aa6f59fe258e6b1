/*
 * upload_shown.h -- which uploads a narrowed call may see: those whose service it sees wholly
 * (private to the engine).
 *
 * A file is parsed later, without the view of its sender, and may contain sample labels; so only a
 * call whose selectors name the service alone may send one.
 */
#ifndef HEARTH_ENGINE_UPLOAD_SHOWN_H
#define HEARTH_ENGINE_UPLOAD_SHOWN_H

#include "hearth/model/profile_upload.h"

#include "common/shown.h"

/* The service of all profiles of an upload. */
struct hearth_str hearth_upload_service(const struct hearth_profile_upload *upload);

/* hearth_store_upload_get; NOT_FOUND, too, if the call does not see the upload. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_find(const struct hearth_call *call, struct hearth_str upload_id,
                                      struct hearth_profile_upload *ret, struct hearth_err *err);

#endif
