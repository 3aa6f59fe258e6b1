/*
 * doctor_settings.c -- the doctor's rules for PostgreSQL's settings.
 *
 * The checked settings are those of this role and database (ALTER ROLE and ALTER DATABASE
 * included), which apply to the committers and the builder as well.
 */
#include "doctor/doctor.h"

#include <assert.h>
#include <stdlib.h>

#define SECOND_MS 1000LL

enum rule_kind {
    RULE_IS,               /* equals the text */
    RULE_IS_NOT,           /* differs from the text */
    RULE_AT_LEAST,         /* the number: bytes, milliseconds or a plain number */
    RULE_AT_MOST,          /* the number */
    RULE_ZERO_OR_AT_LEAST, /* the number; 0 switches the setting off */
};

static const struct rule {
    const char *name;
    enum rule_kind kind;
    const char *text;
    double number;
    enum hearth_verdict verdict; /* of a setting that breaks the rule */
    const char *advice;
} RULES[] = {
    {"fsync", RULE_IS, "on", 0, HEARTH_VERDICT_WRONG,
     "a crash of the machine can lose acknowledged profiles or ruin the cluster: set fsync = on"},
    {"full_page_writes", RULE_IS, "on", 0, HEARTH_VERDICT_WRONG,
     "a crash of the machine can leave torn pages: set full_page_writes = on"},
    {"synchronous_commit", RULE_IS_NOT, "off", 0, HEARTH_VERDICT_WRONG,
     "an acknowledged profile would not be durable: set synchronous_commit = on (or local)"},
    {"autovacuum", RULE_IS, "on", 0, HEARTH_VERDICT_WRONG,
     "tables grow, and index-only scans read whole tables: set autovacuum = on"},
    {"track_counts", RULE_IS, "on", 0, HEARTH_VERDICT_WRONG,
     "autovacuum does not run without it: set track_counts = on"},
    {"default_transaction_isolation", RULE_IS, "read committed", 0, HEARTH_VERDICT_WRONG,
     "roll-ups rely on each statement having its own snapshot: ALTER ROLE .. SET "
     "default_transaction_isolation = 'read committed'"},
    {"default_transaction_read_only", RULE_IS, "off", 0, HEARTH_VERDICT_WRONG,
     "no profile can be stored: ALTER ROLE .. SET default_transaction_read_only = off"},
    {"statement_timeout", RULE_ZERO_OR_AT_LEAST, NULL, 60 * SECOND_MS, HEARTH_VERDICT_WRONG,
     "batches and background work would be killed: ALTER ROLE .. SET statement_timeout = 0 "
     "(hearthd has its own limits)"},
    {"idle_in_transaction_session_timeout", RULE_ZERO_OR_AT_LEAST, NULL, 30 * SECOND_MS,
     HEARTH_VERDICT_WRONG,
     "a batch on a slow network would be killed between two statements: ALTER ROLE .. SET "
     "idle_in_transaction_session_timeout = '5min' (or 0)"},
    {"lock_timeout", RULE_ZERO_OR_AT_LEAST, NULL, 10 * SECOND_MS, HEARTH_VERDICT_ADVICE,
     "servers that start together wait for each other's migrations: ALTER ROLE .. SET "
     "lock_timeout = 0"},
    {"idle_session_timeout", RULE_ZERO_OR_AT_LEAST, NULL, 60 * SECOND_MS, HEARTH_VERDICT_ADVICE,
     "connections are opened again and again: ALTER ROLE .. SET idle_session_timeout = 0"},
    {"transaction_timeout", RULE_ZERO_OR_AT_LEAST, NULL, 60 * SECOND_MS, HEARTH_VERDICT_WRONG,
     "batches and background work would be killed: ALTER ROLE .. SET transaction_timeout = 0"},
    {"shared_buffers", RULE_AT_LEAST, NULL, 256 * HEARTH_MB, HEARTH_VERDICT_ADVICE,
     "the newest hours should fit: set it to an eighth to a quarter of the memory"},
    {"max_wal_size", RULE_AT_LEAST, NULL, 2 * HEARTH_GB, HEARTH_VERDICT_ADVICE,
     "checkpoints are too frequent, and each writes whole pages to the WAL again: max_wal_size = "
     "4GB"},
    {"checkpoint_timeout", RULE_AT_LEAST, NULL, 600 * SECOND_MS, HEARTH_VERDICT_ADVICE,
     "checkpoints are too frequent: checkpoint_timeout = 15min"},
    {"checkpoint_completion_target", RULE_AT_LEAST, NULL, 0.7, HEARTH_VERDICT_ADVICE,
     "a checkpoint writes in a burst, and commits wait: checkpoint_completion_target = 0.9"},
    {"wal_compression", RULE_IS_NOT, "off", 0, HEARTH_VERDICT_ADVICE,
     "it makes full pages in the WAL smaller: wal_compression = lz4 (on before PostgreSQL 15)"},
    {"effective_io_concurrency", RULE_AT_LEAST, NULL, 16, HEARTH_VERDICT_ADVICE,
     "reads from the disk are scattered, and prefetching makes them faster: "
     "effective_io_concurrency = 64"},
    {"random_page_cost", RULE_AT_MOST, NULL, 2, HEARTH_VERDICT_ADVICE,
     "on SSDs: random_page_cost = 1.1"},
    {"jit", RULE_IS, "off", 0, HEARTH_VERDICT_ADVICE,
     "statements are short: compiling them takes more time than it saves: jit = off"},
    {"default_toast_compression", RULE_IS, "lz4", 0, HEARTH_VERDICT_ADVICE,
     "it costs less processor time than pglz: default_toast_compression = lz4"},
    {"autovacuum_naptime", RULE_AT_MOST, NULL, 60 * SECOND_MS, HEARTH_VERDICT_ADVICE,
     "index-only scans of the newest day need its visibility map: autovacuum_naptime = 60s"},
};

/* Convert pg_settings.setting into bytes or milliseconds; a number without unit stays as it is. */
static double convert_setting(const char *setting, const char *unit)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        {"kB", HEARTH_KB}, {"8kB", 8 * HEARTH_KB}, {"MB", HEARTH_MB},
        {"s", SECOND_MS},  {"min", 60000},         {"ms", 1},
    };
    double value = strtod(setting, NULL);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(units); i++) {
        if (strcmp(unit, units[i].unit) == 0) {
            return value * units[i].factor;
        }
    }

    return value;
}

static bool obeys_rule(const struct rule *rule, const char *setting, const char *unit)
{
    double number = convert_setting(setting, unit);

    switch (rule->kind) {
    case RULE_IS:
        return strcmp(setting, rule->text) == 0;
    case RULE_IS_NOT:
        return strcmp(setting, rule->text) != 0;
    case RULE_AT_LEAST:
        return number >= rule->number;
    case RULE_AT_MOST:
        return number <= rule->number;
    case RULE_ZERO_OR_AT_LEAST:
        return number == 0 || number >= rule->number;
    }

    HEARTH_BUG("kind of rule");
}

/* Check the settings that this version of PostgreSQL has. */
enum hearth_status hearth_doctor_check_settings(struct hearth_doctor *doctor,
                                                struct hearth_err *err)
{
    /* Read all of them by one statement. */
    struct hearth_str names[HEARTH_ARRAY_LEN(RULES)];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(RULES); i++) {
        names[i] = hearth_str_c(RULES[i].name);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, doctor->arena);
    hearth_pg_param_text_array(&params, names, HEARTH_ARRAY_LEN(RULES));
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(doctor->pg,
                              "SELECT name, setting, coalesce(unit, ''), current_setting(name)"
                              " FROM pg_settings WHERE name = ANY ($1)",
                              &params, NULL, &result, NULL, err));

    /* Report them in the order of the rules. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(RULES); i++) {
        for (int row = 0; row < PQntuples(result); row++) {
            if (hearth_str_eq(hearth_pg_str(result, row, 0), names[i])) {
                bool good = obeys_rule(&RULES[i], hearth_doctor_copy(doctor, result, row, 1),
                                       hearth_doctor_copy(doctor, result, row, 2));
                hearth_doctor_report(doctor, RULES[i].name,
                                     good ? HEARTH_VERDICT_OK : RULES[i].verdict,
                                     hearth_doctor_copy(doctor, result, row, 3), RULES[i].advice);
            }
        }
    }

    PQclear(result);

    return HEARTH_OK;
}
