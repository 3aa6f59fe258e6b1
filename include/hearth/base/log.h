/*
 * log.h -- structured log lines on standard error: logfmt or JSON, one line per event.
 *
 *   HEARTH_LOG(HEARTH_LOG_INFO, "http", "listening", "addr", "127.0.0.1:4040", NULL);
 *
 * Key and value are C strings, NULL ends the list. Values are escaped, invalid UTF-8 becomes '?'.
 * Lines end at 4 KB: the value that does not fit is cut, what follows is left out, and cut=1 ends
 * the line. Never log bodies or secrets. Library layers log at debug level only.
 *
 * Threads: safe; a line is one write(2).
 */
#ifndef HEARTH_BASE_LOG_H
#define HEARTH_BASE_LOG_H

#include "hearth/base/compiler.h"

enum hearth_log_level {
    HEARTH_LOG_DEBUG,
    HEARTH_LOG_INFO,
    HEARTH_LOG_WARN,
    HEARTH_LOG_ERROR,
};

void hearth_log_set_level(enum hearth_log_level level); /* default: info */
void hearth_log_set_json(bool json);
bool hearth_log_parse_level(const char *name, enum hearth_log_level *ret);
bool hearth_log_enabled(enum hearth_log_level level);
void hearth_log_write(enum hearth_log_level level, const char *component, const char *msg,
                      ...) HEARTH_SENTINEL;

#define HEARTH_LOG(level, component, ...)                        \
    do {                                                         \
        if (hearth_log_enabled(level)) {                         \
            hearth_log_write((level), (component), __VA_ARGS__); \
        }                                                        \
    } while (0)

/* A number as text in one of eight rotating thread-local buffers: for log arguments. In JSON it is a number, where
 * other values are strings, whatever they look like. */
const char *hearth_log_i64(int64_t value);

#endif
