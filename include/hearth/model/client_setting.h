/*
 * client_setting.h -- a setting that a client (a web UI) stores for its tenant, and an ad hoc
 * profile: a file that is stored and viewed, but is no part of the profiles of any service.
 *
 * Ownership: texts are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_CLIENT_SETTING_H
#define HEARTH_MODEL_CLIENT_SETTING_H

#include "hearth/base/str.h"

struct hearth_client_setting {
    struct hearth_str name, value;
    int64_t modified_at_ms;
};

struct hearth_adhoc {
    struct hearth_str id, name;
    int64_t uploaded_at_ms;
    struct hearth_str payload; /* empty in lists */
};

#endif
