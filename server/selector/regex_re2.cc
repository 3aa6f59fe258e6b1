/*
 * regex_re2.cc -- a C interface to RE2, in C++.
 *
 * The pattern is compiled as it is, with the options that ^(?s:...)$ would set. A text wrapper
 * would let "a)(b" escape from the group, and would appear in RE2's messages.
 *
 * Compiled without exceptions: if the library throws (only when memory is refused), the process
 * ends.
 */
#include "regex_re2.h"

#include <cstdio>
#include <new>
#include <re2/re2.h>

namespace
{
/* Limit of program and match caches of one regex; a selector may have 64 of them. */
constexpr int64_t max_mem_bytes = 1 << 20;

/* RE2 before 2023 accepts named groups only as (?P<n>...); it has no look-around in any version. */
const char *hint_for(const RE2 &re)
{
    const std::string &what = re.error_arg();
    if (re.error_code() != RE2::ErrorBadPerlOp && re.error_code() != RE2::ErrorMissingParen &&
        re.error_code() != RE2::ErrorBadNamedCapture) {
        return "";
    }
    const std::string &pattern = re.pattern();
    if (pattern.find("(?<=") != std::string::npos || pattern.find("(?<!") != std::string::npos ||
        pattern.find("(?=") != std::string::npos || pattern.find("(?!") != std::string::npos) {
        return " (RE2 has no look-around)";
    }
    return what.compare(0, 3, "(?<") == 0 ? " (write named groups as (?P<name>...))" : "";
}
} // namespace

struct hearth_regex {
    RE2 re2;
    hearth_regex(const char *pattern, size_t n_bytes, const RE2::Options &options)
        : re2(re2::StringPiece(pattern, n_bytes), options)
    {
    }
};

extern "C" struct hearth_regex *hearth_regex_new(const char *pattern, size_t n_bytes, char *ret_msg,
                                                 size_t msg_bytes)
{
    RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(true);
    options.set_never_capture(true);
    options.set_max_mem(max_mem_bytes);
    struct hearth_regex *regex = new (std::nothrow) hearth_regex(pattern, n_bytes, options);
    if (regex == nullptr) {
        (void)snprintf(ret_msg, msg_bytes, "%s", "");
        return nullptr;
    }
    if (!regex->re2.ok()) {
        (void)snprintf(ret_msg, msg_bytes, "%.200s%s", regex->re2.error().c_str(),
                       hint_for(regex->re2));
        delete regex;
        return nullptr;
    }
    return regex;
}

extern "C" void hearth_regex_free(struct hearth_regex *regex)
{
    delete regex;
}

extern "C" bool hearth_regex_matches(const struct hearth_regex *regex, const char *value,
                                     size_t n_bytes)
{
    re2::StringPiece text(n_bytes == 0 ? "" : value, n_bytes);
    return regex->re2.Match(text, 0, n_bytes, RE2::ANCHOR_BOTH, nullptr, 0);
}

extern "C" bool hearth_regex_occurs(const struct hearth_regex *regex, const char *value,
                                    size_t n_bytes)
{
    re2::StringPiece text(n_bytes == 0 ? "" : value, n_bytes);
    return regex->re2.Match(text, 0, n_bytes, RE2::UNANCHORED, nullptr, 0);
}

extern "C" bool hearth_regex_find(const struct hearth_regex *regex, const char *value,
                                  size_t n_bytes, size_t from, size_t *ret_from, size_t *ret_to)
{
    re2::StringPiece text(n_bytes == 0 ? "" : value, n_bytes), found;
    if (!regex->re2.Match(text, from, n_bytes, RE2::UNANCHORED, &found, 1)) {
        return false;
    }
    *ret_from = static_cast<size_t>(found.data() - text.data());
    *ret_to = *ret_from + found.size();
    return true;
}
