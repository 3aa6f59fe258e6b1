/*
 * redact.c -- removal of secrets from captured texts (contract: redact.h).
 *
 * The first pass handles names, over the words of the text (redact_text.h). Further passes handle
 * the expressions, one after the other, on the remaining text.
 */
#include "network/redact.h"

#include "hearth/base/mem.h"
#include "hearth/selector/pattern.h"

#include "network/redact_text.h"

#include <assert.h>

struct redact_name {
    char text[HEARTH_REDACT_NAME_BYTES]; /* in lower case, without separators and asterisks */
    size_t n;
    bool any_before, any_after; /* words that end or begin with the text match, too */
};

struct hearth_redactor {
    struct redact_name *names;
    struct hearth_pattern **patterns;
    size_t n_names, n_patterns;
};

/* ---- rules ---- */

static enum hearth_status add_redact_name(struct hearth_redactor *redactor, struct hearth_str rule,
                                          struct hearth_err *err)
{
    struct redact_name *name = &redactor->names[redactor->n_names];
    struct hearth_str text = rule;

    assert(rule.p != NULL);

    /* An asterisk at the beginning, and one at the end. */
    name->any_before = text.n > 0 && text.p[0] == '*';
    text = hearth_str_n(text.p + name->any_before, text.n - name->any_before);
    name->any_after = text.n > 0 && text.p[text.n - 1] == '*';
    text.n -= name->any_after;

    /* Fold the name; every character must belong to a word. */
    bool ok = text.n <= HEARTH_REDACT_NAME_BYTES;
    for (size_t i = 0; i < text.n && ok; i++) {
        ok = hearth_redact_is_word_char(text.p[i]);
        if (!hearth_redact_is_separator(text.p[i])) {
            name->text[name->n++] = hearth_redact_fold_case(text.p[i]);
        }
    }

    if (!ok || name->n == 0) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "redact: \"" HEARTH_STR_FMT
            "\" is neither a name (letters, digits, - and _, %u at most, and * at the beginning or"
            " end) nor an /expression/",
            HEARTH_STR_ARG(rule), HEARTH_REDACT_NAME_BYTES);
    }

    redactor->n_names++;

    return HEARTH_OK;
}

static enum hearth_status add_redact_rule(struct hearth_redactor *redactor, struct hearth_str rule,
                                          struct hearth_err *err)
{
    if (rule.n > 2 && rule.p[0] == '/' && rule.p[rule.n - 1] == '/') {
        HEARTH_TRY(hearth_pattern_new(hearth_str_n(rule.p + 1, rule.n - 2), "redact",
                                      &redactor->patterns[redactor->n_patterns], err));
        redactor->n_patterns++;
        return HEARTH_OK;
    }

    return add_redact_name(redactor, rule, err);
}

enum hearth_status hearth_redactor_new(const char *const *rules, struct hearth_redactor **ret,
                                       struct hearth_err *err)
{
    size_t n = 0;

    assert(ret != NULL);

    /* Count the rules. */
    while (rules != NULL && rules[n] != NULL) {
        n++;
    }

    /* Allocate room for as many names and expressions. */
    struct hearth_redactor *redactor = hearth_mem_zalloc(sizeof *redactor);
    if (redactor != NULL) {
        redactor->names = hearth_mem_zalloc((n + 1) * sizeof redactor->names[0]);
        redactor->patterns = hearth_mem_zalloc((n + 1) * sizeof redactor->patterns[0]);
    }

    if (redactor == NULL || redactor->names == NULL || redactor->patterns == NULL) {
        hearth_redactor_free(redactor);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu rules of redaction", n);
    }

    /* Read the rules. */
    for (size_t i = 0; i < n; i++) {
        enum hearth_status status = add_redact_rule(redactor, hearth_str_c(rules[i]), err);
        if (status != HEARTH_OK) {
            hearth_redactor_free(redactor);
            return status;
        }
    }

    *ret = redactor;

    return HEARTH_OK;
}

void hearth_redactor_free(struct hearth_redactor *redactor)
{
    if (redactor != NULL) {
        for (size_t i = 0; i < redactor->n_patterns; i++) {
            hearth_pattern_free(redactor->patterns[i]);
        }
        hearth_mem_free(redactor->names);
        hearth_mem_free((void *)redactor->patterns);
        hearth_mem_free(redactor);
    }
}

/* ---- passes ---- */

static bool matches_redact_name(const struct redact_name *name, const char *word, size_t n)
{
    if (n < name->n) {
        return false;
    }

    if (name->any_before && name->any_after) {
        return memmem(word, n, name->text, name->n) != NULL;
    }

    if (n > name->n && !name->any_before && !name->any_after) {
        return false;
    }

    return memcmp(word + (name->any_before ? n - name->n : 0), name->text, name->n) == 0;
}

static bool is_redact_name(const struct hearth_redactor *redactor, const char *word, size_t n)
{
    for (size_t i = 0; i < redactor->n_names; i++) {
        if (matches_redact_name(&redactor->names[i], word, n)) {
            return true;
        }
    }

    return false;
}

bool hearth_redact_is_name(const struct hearth_redactor *redactor, struct hearth_str name)
{
    char word[HEARTH_REDACT_NAME_BYTES];
    size_t end = name.n, n;

    /* Find the last word of the name. */
    while (end > 0 && !hearth_redact_is_word_char(name.p[end - 1])) {
        end--;
    }

    size_t from = end;
    while (from > 0 && hearth_redact_is_word_char(name.p[from - 1])) {
        from--;
    }

    return end > from &&
           hearth_redact_read_word(hearth_str_n(name.p, end), from, word, &n) == end && n > 0 &&
           is_redact_name(redactor, word, n);
}

/*
 * Found values that the pass has not reached yet. Between a name and its value there may be other
 * values (attributes, headers of a part).
 */
struct pending {
    struct hearth_redact_span next, later; /* next precedes later; from == to: no value */
    size_t kept;                           /* position up to which the text is written */
    size_t n_removed;
};

/* Add a found value. If three values compete, one of them covers the text in between too. */
static void queue_value(struct pending *pending, struct hearth_redact_span value)
{
    struct hearth_redact_span *next = &pending->next, *later = &pending->later;
    bool has_next = next->to > next->from, has_later = later->to > later->from;

    /* One value: keep both in order, or join them. */
    if (!has_next) {
        *next = value;
    } else if (value.to <= next->from) { /* it precedes `next` */
        *later = (struct hearth_redact_span){next->from, has_later ? later->to : next->to};
        *next = value;
    } else {
        next->from = value.from < next->from ? value.from : next->from;
        next->to = value.to > next->to ? value.to : next->to;
    }
}

static void queue_found_value(struct pending *pending, struct hearth_redact_span value)
{
    if (value.to > value.from) {
        queue_value(pending, value);
    }
}

static void write_next_value(struct pending *pending, struct hearth_str text,
                             struct hearth_buf *out)
{
    struct hearth_redact_span value = pending->next, later = pending->later;

    /* Replace the value. */
    size_t from = value.from > pending->kept ? value.from : pending->kept;

    hearth_buf_append(out, text.p + pending->kept, from - pending->kept);
    hearth_buf_cstr(out, HEARTH_REDACTED);
    pending->kept = value.to > from ? value.to : from;
    pending->n_removed++;

    /* Values that it covered are done. */
    if (later.to <= pending->kept) {
        later = (struct hearth_redact_span){0, 0};
    }

    pending->next = later;
    pending->later = (struct hearth_redact_span){0, 0};
}

static size_t redact_names(const struct hearth_redactor *redactor, struct hearth_str text,
                           struct hearth_buf *out)
{
    char word[HEARTH_REDACT_NAME_BYTES];
    struct pending pending = {.kept = 0};
    size_t at = 0, n, step;

    while (at < text.n) {
        /* Write a value when the pass reaches it. */
        if (pending.next.to > pending.next.from && at >= pending.next.from) {
            write_next_value(&pending, text, out);
            at = at > pending.kept ? at : pending.kept;
            continue;
        }

        /* Read the next word. */
        size_t from = at;
        (void)hearth_redact_read_char(text, at, &step);
        at = hearth_redact_read_word(text, at, word, &n);
        if (at == from) {
            /* A percent sign may also be followed by a name. */
            for (size_t k = 1; k < step && text.p[at] == '%'; k += 2) {
                size_t end = hearth_redact_read_word(text, at + k, word, &n);
                if (n > 0 && is_redact_name(redactor, word, n)) {
                    queue_found_value(&pending, hearth_redact_find_value(text, at + k, end));
                }
            }
            at += step;
        } else if (n > 0 && is_redact_name(redactor, word, n)) {
            queue_found_value(&pending, hearth_redact_find_value(text, from, at));
        }
    }

    /* Write the remaining values and text. */
    while (pending.next.to > pending.next.from) {
        write_next_value(&pending, text, out);
    }

    hearth_buf_append(out, text.p + pending.kept, text.n - pending.kept);

    return pending.n_removed;
}

static size_t redact_pattern(const struct hearth_pattern *pattern, struct hearth_str text,
                             struct hearth_buf *out)
{
    size_t kept = 0, at = 0, n_removed = 0, from, to;

    while (at < text.n && hearth_pattern_find(pattern, text, at, &from, &to)) {
        if (to > from) {
            hearth_buf_append(out, text.p + kept, from - kept);
            hearth_buf_cstr(out, HEARTH_REDACTED);
            kept = to;
            n_removed++;
        }
        at = to > at ? to : at + 1;
    }

    if (kept < text.n) {
        hearth_buf_append(out, text.p + kept, text.n - kept);
    }

    return n_removed;
}

size_t hearth_redact(const struct hearth_redactor *redactor, struct hearth_str text,
                     struct hearth_buf *out)
{
    struct hearth_buf first, second;

    hearth_buf_init(&first, 0);
    hearth_buf_init(&second, 0);

    /* Names first. */
    size_t n_removed = text.n == 0 ? 0 : redact_names(redactor, text, &first);

    /* Then each expression, on the result of the previous pass. */
    for (size_t i = 0; i < redactor->n_patterns && !hearth_buf_failed(&first); i++) {
        hearth_buf_reset(&second);
        n_removed += redact_pattern(redactor->patterns[i], hearth_buf_view(&first), &second);
        struct hearth_buf swap = first;
        first = second;
        second = swap;
    }

    /* Give the result. */
    if (hearth_buf_failed(&first)) {
        out->failed = true;
    } else {
        hearth_buf_str(out, hearth_buf_view(&first));
    }

    hearth_buf_release(&first);
    hearth_buf_release(&second);

    return n_removed;
}
