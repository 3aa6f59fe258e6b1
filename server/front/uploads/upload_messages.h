/*
 * upload_messages.h -- uploads as messages of hearth.v1.UploadService, for RPCs and plain routes
 * (private to the room).
 *
 * Threads: the thread that runs the request.
 */
#ifndef HEARTH_FRONT_UPLOAD_MESSAGES_H
#define HEARTH_FRONT_UPLOAD_MESSAGES_H

#include "hearth/engine/uploads.h"

#include "rpc/message_map.h"

/* struct hearth_profile_upload to hearth.v1.UploadedFile. */
extern const struct hearth_message_map hearth_upload_map;
/* struct hearth_upload_details to the same. */
extern const struct hearth_message_map hearth_upload_details_map;

#endif
