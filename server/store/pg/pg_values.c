/*
 * pg_values.c -- PostgreSQL's binary formats: parameters out, COPY rows out, result columns in.
 *
 * Integers are big-endian; an array is dimensions, a null flag, the element type, per dimension
 * length and lower bound, then the elements with their lengths. Source: PostgreSQL documentation,
 * "COPY", section "Binary Format"; array_send and array_recv.
 */
#include "pg/pg.h"

#include <assert.h>
#include <limits.h>

enum {
    OID_BYTES = 17,
    OID_INT8 = 20,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_BYTES_ARRAY = 1001,
    OID_INT4_ARRAY = 1007,
    OID_TEXT_ARRAY = 1009,
    OID_INT8_ARRAY = 1016,
    OID_FLOAT8 = 701,
    OID_FLOAT8_ARRAY = 1022,
    OID_UUID = 2950,
    OID_UUID_ARRAY = 2951,
};

#define ARRAY_HEAD_BYTES 20

static char *put_u32(char *p, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) {
        *p++ = (char)(value >> shift);
    }

    return p;
}

static char *put_u64(char *p, uint64_t value)
{
    return put_u32(put_u32(p, (uint32_t)(value >> 32)), (uint32_t)value);
}

static uint32_t get_u32(const char *p)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        value = value << 8 | (unsigned char)p[i];
    }

    return value;
}

/* Write the head of a one-dimensional array without NULLs. An empty array has no dimension. */
static char *put_array_head(char *p, uint32_t element_oid, size_t n)
{
    assert(n <= INT32_MAX);

    p = put_u32(p, n > 0);
    p = put_u32(p, 0);
    p = put_u32(p, element_oid);
    if (n > 0) {
        p = put_u32(p, (uint32_t)n);
        p = put_u32(p, 1);
    }

    return p;
}

/* ---- parameters ---- */

void hearth_pg_params_init(struct hearth_pg_params *params, struct hearth_arena *arena)
{
    assert(arena != NULL);
    *params = (struct hearth_pg_params){.arena = arena};
}

/* Allocate one more parameter of n bytes; NULL on failure. */
static char *add_param(struct hearth_pg_params *params, Oid type, size_t n_bytes)
{
    HEARTH_ASSERT(params->n < (int)HEARTH_ARRAY_LEN(params->values));

    char *p = n_bytes > INT_MAX ? NULL : hearth_arena_alloc(params->arena, n_bytes + 1);

    params->failed = params->failed || p == NULL;
    int i = params->n++;
    params->types[i] = type;
    params->values[i] = p;
    params->lengths[i] = (int)(p == NULL ? 0 : n_bytes);
    params->formats[i] = 1;

    return p;
}

void hearth_pg_param_i32(struct hearth_pg_params *params, int32_t value)
{
    char *p = add_param(params, OID_INT4, 4);
    if (p != NULL) {
        (void)put_u32(p, (uint32_t)value);
    }
}

void hearth_pg_param_i64(struct hearth_pg_params *params, int64_t value)
{
    char *p = add_param(params, OID_INT8, 8);
    if (p != NULL) {
        (void)put_u64(p, (uint64_t)value);
    }
}

static void add_bytes(struct hearth_pg_params *params, Oid type, struct hearth_str value)
{
    char *p = add_param(params, type, value.n);
    if (p != NULL && value.n > 0) {
        memcpy(p, value.p, value.n);
    }
}

void hearth_pg_param_text(struct hearth_pg_params *params, struct hearth_str value)
{
    add_bytes(params, OID_TEXT, value);
}

void hearth_pg_param_bytes(struct hearth_pg_params *params, struct hearth_str value)
{
    add_bytes(params, OID_BYTES, value);
}

void hearth_pg_param_uuid(struct hearth_pg_params *params, struct hearth_hash128 value)
{
    char *p = add_param(params, OID_UUID, 16);
    if (p != NULL) {
        (void)put_u64(put_u64(p, value.hi), value.lo);
    }
}

/* Allocate an array of n elements of element_bytes each, and write its head. */
static char *add_array(struct hearth_pg_params *params, Oid type, uint32_t element_oid, size_t n,
                       size_t element_bytes)
{
    assert(element_bytes > 0);

    size_t n_bytes;
    if (__builtin_mul_overflow(n, element_bytes + 4, &n_bytes) ||
        __builtin_add_overflow(n_bytes, n > 0 ? ARRAY_HEAD_BYTES : 12, &n_bytes)) {
        n_bytes = SIZE_MAX;
    }

    char *p = add_param(params, type, n_bytes);

    return p == NULL ? NULL : put_array_head(p, element_oid, n);
}

void hearth_pg_param_i32_array(struct hearth_pg_params *params, const int32_t *values, size_t n)
{
    char *p = add_array(params, OID_INT4_ARRAY, OID_INT4, n, 4);
    for (size_t i = 0; p != NULL && i < n; i++) {
        p = put_u32(put_u32(p, 4), (uint32_t)values[i]);
    }
}

void hearth_pg_param_i64_array(struct hearth_pg_params *params, const int64_t *values, size_t n)
{
    char *p = add_array(params, OID_INT8_ARRAY, OID_INT8, n, 8);
    for (size_t i = 0; p != NULL && i < n; i++) {
        p = put_u64(put_u32(p, 8), (uint64_t)values[i]);
    }
}

void hearth_pg_param_f64_array(struct hearth_pg_params *params, const double *values, size_t n)
{
    char *p = add_array(params, OID_FLOAT8_ARRAY, OID_FLOAT8, n, 8);

    for (size_t i = 0; p != NULL && i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        p = put_u64(put_u32(p, 8), bits);
    }
}

void hearth_pg_param_uuid_array(struct hearth_pg_params *params,
                                const struct hearth_hash128 *values, size_t n)
{
    char *p = add_array(params, OID_UUID_ARRAY, OID_UUID, n, 16);
    for (size_t i = 0; p != NULL && i < n; i++) {
        p = put_u64(put_u64(put_u32(p, 16), values[i].hi), values[i].lo);
    }
}

static void add_str_array(struct hearth_pg_params *params, Oid array_type, uint32_t type,
                          const struct hearth_str *values, size_t n)
{
    assert(n == 0 || values != NULL);

    size_t n_bytes = n > 0 ? ARRAY_HEAD_BYTES : 12;
    for (size_t i = 0; i < n && n_bytes <= INT_MAX; i++) {
        n_bytes = values[i].n > INT_MAX ? SIZE_MAX : n_bytes + 4 + values[i].n;
    }

    char *p = add_param(params, array_type, n_bytes);
    if (p == NULL) {
        return;
    }

    p = put_array_head(p, type, n);
    for (size_t i = 0; i < n; i++) {
        p = put_u32(p, (uint32_t)values[i].n);
        if (values[i].n > 0) {
            memcpy(p, values[i].p, values[i].n);
            p += values[i].n;
        }
    }
}

void hearth_pg_param_text_array(struct hearth_pg_params *params, const struct hearth_str *values,
                                size_t n)
{
    add_str_array(params, OID_TEXT_ARRAY, OID_TEXT, values, n);
}

void hearth_pg_param_bytes_array(struct hearth_pg_params *params, const struct hearth_str *values,
                                 size_t n)
{
    add_str_array(params, OID_BYTES_ARRAY, OID_BYTES, values, n);
}

/* ---- COPY rows ---- */

void hearth_copy_row(struct hearth_buf *out, int16_t n_fields)
{
    assert(n_fields > 0);

    uint16_t n = (uint16_t)n_fields;
    char bytes[2] = {(char)(n >> 8), (char)n};
    hearth_buf_append(out, bytes, sizeof bytes);
}

void hearth_copy_i32(struct hearth_buf *out, int32_t value)
{
    char bytes[8];
    (void)put_u32(put_u32(bytes, 4), (uint32_t)value);
    hearth_buf_append(out, bytes, sizeof bytes);
}

void hearth_copy_i64(struct hearth_buf *out, int64_t value)
{
    char bytes[12];
    (void)put_u64(put_u32(bytes, 8), (uint64_t)value);
    hearth_buf_append(out, bytes, sizeof bytes);
}

static void copy_u32(struct hearth_buf *out, uint32_t value)
{
    char bytes[4];
    (void)put_u32(bytes, value);
    hearth_buf_append(out, bytes, sizeof bytes);
}

void hearth_copy_bytes(struct hearth_buf *out, struct hearth_str value)
{
    if (value.n > INT32_MAX) {
        out->failed = true;
        return;
    }

    copy_u32(out, (uint32_t)value.n);
    hearth_buf_str(out, value);
}

void hearth_copy_null(struct hearth_buf *out)
{
    copy_u32(out, UINT32_MAX);
}

/* Append the length of the field and the head of the array. */
static void copy_array_head(struct hearth_buf *out, uint32_t element_oid, size_t n,
                            size_t elements_bytes)
{
    size_t head = n > 0 ? ARRAY_HEAD_BYTES : 12;
    if (elements_bytes > (size_t)INT32_MAX - head) {
        out->failed = true;
        return;
    }

    char bytes[4 + ARRAY_HEAD_BYTES];
    char *end = put_array_head(put_u32(bytes, (uint32_t)(head + elements_bytes)), element_oid, n);
    hearth_buf_append(out, bytes, (size_t)(end - bytes));
}

void hearth_copy_i32_array(struct hearth_buf *out, const int32_t *values, size_t n)
{
    assert(n == 0 || values != NULL);

    copy_array_head(out, OID_INT4, n, n > INT32_MAX ? SIZE_MAX : n * 8);
    for (size_t i = 0; i < n && !out->failed; i++) {
        hearth_copy_i32(out, values[i]);
    }
}

void hearth_copy_i64_array(struct hearth_buf *out, const int64_t *values, size_t n)
{
    assert(n == 0 || values != NULL);

    copy_array_head(out, OID_INT8, n, n > INT32_MAX ? SIZE_MAX : n * 12);
    for (size_t i = 0; i < n && !out->failed; i++) {
        hearth_copy_i64(out, values[i]);
    }
}

void hearth_copy_bytes_array(struct hearth_buf *out, const struct hearth_str *values, size_t n)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < n && n_bytes <= INT32_MAX; i++) {
        n_bytes = values[i].n > INT32_MAX ? SIZE_MAX : n_bytes + 4 + values[i].n;
    }

    copy_array_head(out, OID_BYTES, n, n_bytes);
    for (size_t i = 0; i < n && !out->failed; i++) {
        hearth_copy_bytes(out, values[i]);
    }
}

/* ---- result columns ---- */

/* A column whose width differs from its type is our bug: the statement does not fit its reader. */
static const char *fixed_column(const PGresult *result, int row, int column, int n_bytes)
{
    HEARTH_ASSERT(PQgetlength(result, row, column) == n_bytes);
    return PQgetvalue(result, row, column);
}

int32_t hearth_pg_i32(const PGresult *result, int row, int column)
{
    return (int32_t)get_u32(fixed_column(result, row, column, 4));
}

int64_t hearth_pg_i64(const PGresult *result, int row, int column)
{
    const char *p = fixed_column(result, row, column, 8);
    return (int64_t)((uint64_t)get_u32(p) << 32 | get_u32(p + 4));
}

struct hearth_str hearth_pg_str(const PGresult *result, int row, int column)
{
    if (PQgetisnull(result, row, column) != 0) {
        return (struct hearth_str){NULL, 0};
    }

    return hearth_str_n(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

bool hearth_pg_is_null(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) != 0;
}

/* Position in an array column. */
struct array_scan {
    struct hearth_str rest;
    size_t n;
};

static enum hearth_status scan_array_head(struct hearth_str field, struct array_scan *ret,
                                          struct hearth_err *err)
{
    if (field.n >= 12 && get_u32(field.p) == 0) {
        *ret = (struct array_scan){.n = 0};
        return HEARTH_OK;
    }

    if (field.n < ARRAY_HEAD_BYTES || get_u32(field.p) != 1 || get_u32(field.p + 4) != 0) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "an array column has NULL elements or more than one dimension");
    }

    size_t n = get_u32(field.p + 12);
    struct hearth_str rest = {field.p + ARRAY_HEAD_BYTES, field.n - ARRAY_HEAD_BYTES};
    if (n > rest.n / 4) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "an array column is cut short");
    }

    *ret = (struct array_scan){rest, n};

    return HEARTH_OK;
}

static enum hearth_status scan_element(struct array_scan *scan, struct hearth_str *ret,
                                       struct hearth_err *err)
{
    size_t n = scan->rest.n < 4 ? SIZE_MAX : get_u32(scan->rest.p);
    if (n == SIZE_MAX || n > scan->rest.n - 4) { /* also a NULL: length -1 */
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "an array column is cut short or has a NULL element");
    }

    *ret = hearth_str_n(scan->rest.p + 4, n);
    scan->rest = hearth_str_n(ret->p + n, scan->rest.n - 4 - n);

    return HEARTH_OK;
}

enum hearth_status hearth_pg_i32_array(const PGresult *result, int row, int column,
                                       struct hearth_arena *arena, int32_t **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    struct array_scan scan;

    HEARTH_TRY(scan_array_head(hearth_pg_str(result, row, column), &scan, err));
    int32_t *values = hearth_arena_array(arena, scan.n, sizeof *values);
    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < scan.n; i++) {
        struct hearth_str element;
        HEARTH_TRY(scan_element(&scan, &element, err));
        if (element.n != 4) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "an int4[] column has elements of %zu bytes",
                               element.n);
        }

        values[i] = (int32_t)get_u32(element.p);
    }

    *ret = values;
    *ret_n = scan.n;

    return HEARTH_OK;
}

enum hearth_status hearth_pg_i64_array(const PGresult *result, int row, int column,
                                       struct hearth_arena *arena, int64_t **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    struct array_scan scan;

    HEARTH_TRY(scan_array_head(hearth_pg_str(result, row, column), &scan, err));
    int64_t *values = hearth_arena_array(arena, scan.n, sizeof *values);
    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < scan.n; i++) {
        struct hearth_str element;
        HEARTH_TRY(scan_element(&scan, &element, err));
        if (element.n != 8) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "an int8[] column has elements of %zu bytes",
                               element.n);
        }

        values[i] = (int64_t)((uint64_t)get_u32(element.p) << 32 | get_u32(element.p + 4));
    }

    *ret = values;
    *ret_n = scan.n;

    return HEARTH_OK;
}

enum hearth_status hearth_pg_f64_array(const PGresult *result, int row, int column,
                                       struct hearth_arena *arena, double **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    int64_t *bits;

    HEARTH_TRY(hearth_pg_i64_array(result, row, column, arena, &bits, ret_n, err));
    double *values = hearth_arena_array(arena, *ret_n, sizeof *values);
    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (*ret_n > 0) {
        memcpy(values, bits, *ret_n * sizeof *values);
    }

    *ret = values;

    return HEARTH_OK;
}

enum hearth_status hearth_pg_str_array_views(const PGresult *result, int row, int column,
                                             struct hearth_arena *arena, struct hearth_str **ret,
                                             size_t *ret_n, struct hearth_err *err)
{
    struct array_scan scan;

    HEARTH_TRY(scan_array_head(hearth_pg_str(result, row, column), &scan, err));
    struct hearth_str *values = hearth_arena_array(arena, scan.n, sizeof *values);
    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < scan.n; i++) {
        HEARTH_TRY(scan_element(&scan, &values[i], err));
    }

    *ret = values;
    *ret_n = scan.n;

    return HEARTH_OK;
}

enum hearth_status hearth_pg_str_array(const PGresult *result, int row, int column,
                                       struct hearth_arena *arena, struct hearth_str **ret,
                                       size_t *ret_n, struct hearth_err *err)
{
    struct hearth_str *values;

    HEARTH_TRY(hearth_pg_str_array_views(result, row, column, arena, &values, ret_n, err));
    for (size_t i = 0; i < *ret_n; i++) {
        values[i] = hearth_arena_str(arena, values[i]);
        if (values[i].p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    *ret = values;

    return HEARTH_OK;
}
