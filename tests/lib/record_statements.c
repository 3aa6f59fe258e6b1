/*
 * record_statements.c -- preloaded into hearthd by server.py: writes each statement that it sends to PostgreSQL, once.
 *
 * STATEMENTS_FILE names the file, which must exist. A record is the types of the parameters (decimal OIDs with commas)
 * and the text, each with a NUL behind it. Records of several processes may be mixed, but each is one write.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <postgresql/libpq-fe.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hashes of recorded statements; once it is half full, nothing more is recorded. */
#define N_SLOTS 262144

static int g_fd = -1;
static atomic_uint g_n;
static _Atomic uint64_t g_seen[N_SLOTS];

/* Before main: later, the sandbox of hearthd may refuse to open files. */
__attribute__((constructor)) static void open_records(void)
{
    const char *path = getenv("STATEMENTS_FILE");
    g_fd = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    (void)unsetenv("LD_PRELOAD"); /* PostgreSQL sends statements as well, to its primary */
}

/* FNV-1a. */
static uint64_t hash_text(const char *text, size_t n)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return hash | 1; /* 0 is a free slot */
}

static int is_new(uint64_t hash)
{
    for (size_t at = hash % N_SLOTS;; at = (at + 1) % N_SLOTS) {
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&g_seen[at], &found, hash))
            return 1;
        if (found == hash)
            return 0;
    }
}

static void record(const char *sql, int n_params, const Oid *types)
{
    if (g_fd < 0 || atomic_load(&g_n) >= N_SLOTS / 2)
        return;

    size_t size = strlen(sql) + 1, n = 0, room = (size_t)n_params * 12 + 1 + size;
    char *text = malloc(room);
    if (text == NULL)
        return;

    text[0] = '\0';
    for (int i = 0; i < n_params; i++)
        n += (size_t)snprintf(text + n, room - n, i == 0 ? "%u" : ",%u",
                              types == NULL ? 0 : types[i]);
    memcpy(text + n + 1, sql, size);
    if (is_new(hash_text(text, n + 1 + size))) {
        atomic_fetch_add(&g_n, 1);
        if (write(g_fd, text, n + 1 + size) < 0)
            abort();
    }
    free(text);
}

int PQsendQuery(PGconn *conn, const char *sql)
{
    static int (*real)(PGconn *, const char *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "PQsendQuery");
    record(sql, 0, NULL);
    return real(conn, sql);
}

int PQsendQueryParams(PGconn *conn, const char *sql, int n, const Oid *types,
                      const char *const *values, const int *lengths, const int *formats,
                      int result_format)
{
    static int (*real)(PGconn *, const char *, int, const Oid *, const char *const *, const int *,
                       const int *, int);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "PQsendQueryParams");
    record(sql, n, types);
    return real(conn, sql, n, types, values, lengths, formats, result_format);
}

int PQsendPrepare(PGconn *conn, const char *name, const char *sql, int n, const Oid *types)
{
    static int (*real)(PGconn *, const char *, const char *, int, const Oid *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "PQsendPrepare");
    record(sql, types == NULL ? 0 : n, types);
    return real(conn, name, sql, n, types);
}
