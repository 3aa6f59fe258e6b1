/*
 * elf_symbols.c -- reads section and program headers, the better table of symbols and the build id.
 *
 * A file is hostile: every table is checked to lie within it before it is read.
 */
#include "hearth/format/elf_symbols.h"

#include "perf/perf_cursor.h"

#include <assert.h>
#include <stdlib.h>

#define PAGE_BYTES     4096u
#define MAX_SEGMENTS   256u   /* loaded ones; further ones are ignored */
#define MAX_NAME_BYTES 4096u  /* longer names are cut, so that no table costs more than its size */
#define MAX_NOTE_BYTES 65536u /* of one section; the rest is ignored, as all sections may overlap */
#define MAX_NOTES      256u   /* sections that are searched for the build id */

/* Values of ELF. */
enum {
    CLASS_32 = 1,
    CLASS_64 = 2,
    LITTLE_ENDIAN_DATA = 1,
    SEGMENT_LOAD = 1,
    SECTION_SYMTAB = 2,
    SECTION_NOTE = 7,
    SECTION_DYNSYM = 11,
    SYMBOL_FUNCTION = 2,
    SYMBOL_INDIRECT_FUNCTION = 10,
    NOTE_BUILD_ID = 3,
};

struct elf_symbol {
    uint64_t start, end; /* addresses */
    uint64_t limit;      /* of the end, if the size is not known: the end of the section */
    struct hearth_str name;
    unsigned rank; /* smaller: preferred */
};

/* A part of the file that is loaded at an address. */
struct elf_segment {
    uint64_t offset, address, n_bytes;
};

struct elf_section {
    uint32_t type, link;
    uint64_t address;
    struct hearth_str bytes;
    uint64_t entry_bytes;
};

struct hearth_elf_symbols {
    struct elf_symbol *symbols; /* sorted by start; starts are distinct */
    struct elf_segment *segments;
    size_t n_symbols, n_segments;
    struct hearth_str build_id;
};

/* The file while it is read. */
struct elf_reader {
    struct hearth_str bytes;
    struct hearth_arena *arena;
    bool is_64;
    uint64_t segments_at, sections_at;
    uint16_t segment_bytes, n_segments, section_bytes, n_sections;
};

/* True if bytes begin like an ELF file. */
static bool has_elf_magic(struct hearth_str bytes)
{
    return hearth_str_starts(bytes, HEARTH_STR("\177ELF"));
}

/* A cursor at an offset, which is at the end if the offset is outside. */
static struct perf_cursor elf_cursor_at(const struct elf_reader *r, uint64_t at)
{
    struct perf_cursor c = perf_cursor_at(r->bytes);

    perf_skip(&c, at);

    return c;
}

/* A number that has 8 bytes in files of 64 bits, and 4 in others. */
static uint64_t read_word(const struct elf_reader *r, struct perf_cursor *c)
{
    return perf_number(c, r->is_64 ? 8 : 4);
}

/*
 * Return how many of the n headers of a table begin within the file: a damaged file of a few bytes
 * may claim 65,535. Return 0 if headers have no size.
 */
static uint16_t count_within(const struct elf_reader *r, uint64_t at, uint16_t entry_bytes,
                             uint16_t n)
{
    if (entry_bytes == 0 || at >= r->bytes.n) {
        return 0;
    }

    uint64_t most = (r->bytes.n - at - 1) / entry_bytes + 1;
    return most < n ? (uint16_t)most : n;
}

static enum hearth_status read_elf_header(struct elf_reader *r, struct hearth_err *err)
{
    struct perf_cursor c = elf_cursor_at(r, 4);
    uint64_t class = perf_number(&c, 1), data = perf_number(&c, 1);

    if (!has_elf_magic(r->bytes) || (class != CLASS_32 && class != CLASS_64)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it is no ELF file");
    }
    if (data != LITTLE_ENDIAN_DATA) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it is a big-endian ELF file");
    }

    r->is_64 = class == CLASS_64;
    c = elf_cursor_at(r, 24);
    (void)read_word(r, &c); /* entry point */
    r->segments_at = read_word(r, &c);
    r->sections_at = read_word(r, &c);
    perf_skip(&c, 6); /* flags and the size of this header */
    r->segment_bytes = perf_u16(&c);
    r->n_segments = perf_u16(&c);
    r->section_bytes = perf_u16(&c);
    r->n_sections = perf_u16(&c);
    if (c.failed) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "its header is truncated");
    }

    r->n_segments = count_within(r, r->segments_at, r->segment_bytes, r->n_segments);
    r->n_sections = count_within(r, r->sections_at, r->section_bytes, r->n_sections);

    return HEARTH_OK;
}

/* ---- segments ---- */

static bool read_segment(const struct elf_reader *r, unsigned i, struct elf_segment *ret)
{
    struct perf_cursor c = elf_cursor_at(r, r->segments_at);

    perf_skip(&c, (uint64_t)i * r->segment_bytes);
    uint32_t type = perf_u32(&c);
    if (r->is_64) {
        perf_skip(&c, 4);
    }
    ret->offset = read_word(r, &c);
    ret->address = read_word(r, &c);
    (void)read_word(r, &c); /* physical address */
    ret->n_bytes = read_word(r, &c);

    return !c.failed && type == SEGMENT_LOAD;
}

static enum hearth_status read_segments(const struct elf_reader *r,
                                        struct hearth_elf_symbols *symbols, struct hearth_err *err)
{
    symbols->segments = hearth_arena_array(r->arena, MAX_SEGMENTS, sizeof *symbols->segments);
    if (symbols->segments == NULL) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    for (unsigned i = 0; i < r->n_segments && symbols->n_segments < MAX_SEGMENTS; i++) {
        struct elf_segment segment;
        if (read_segment(r, i, &segment)) {
            symbols->segments[symbols->n_segments++] = segment;
        }
    }

    return HEARTH_OK;
}

/* ---- sections ---- */

/* False if the section is not in the file. */
static bool read_elf_section(const struct elf_reader *r, uint32_t i, struct elf_section *ret)
{
    struct perf_cursor c = elf_cursor_at(r, r->sections_at);

    if (i >= r->n_sections) {
        return false;
    }

    perf_skip(&c, (uint64_t)i * r->section_bytes + 4);
    ret->type = perf_u32(&c);
    (void)read_word(r, &c); /* flags */
    ret->address = read_word(r, &c);
    uint64_t at = read_word(r, &c), size = read_word(r, &c);
    ret->link = perf_u32(&c);
    perf_skip(&c, 4);
    (void)read_word(r, &c); /* alignment */
    ret->entry_bytes = read_word(r, &c);
    if (c.failed || at > r->bytes.n || size > r->bytes.n - at) {
        return false;
    }

    ret->bytes = hearth_str_n(r->bytes.p + at, (size_t)size);

    return true;
}

/* Finds the GNU build id in a section of notes. */
static bool read_build_id(struct hearth_str notes, struct hearth_arena *arena,
                          struct hearth_str *ret)
{
    notes.n = notes.n < MAX_NOTE_BYTES ? notes.n : MAX_NOTE_BYTES;
    struct perf_cursor c = perf_cursor_at(notes);

    while (perf_left(&c) >= 12) {
        uint32_t n_name = perf_u32(&c), n_text = perf_u32(&c), type = perf_u32(&c);
        struct hearth_str name = perf_text(&c, ((uint64_t)n_name + 3) & ~UINT64_C(3));
        struct hearth_str id = perf_bytes(&c, n_text);
        perf_skip(&c, -(uint64_t)n_text & 3);
        if (c.failed) {
            return true;
        }
        if (type != NOTE_BUILD_ID || !hearth_str_eq_c(name, "GNU") || n_text > 64) {
            continue;
        }

        *ret = perf_hex(id, arena);
        return ret->p != NULL;
    }

    return true;
}

/* ---- symbols ---- */

/* The text at a position of a table of strings. */
static struct hearth_str read_elf_text(struct hearth_str table, uint32_t at)
{
    struct perf_cursor c = perf_cursor_at(table);

    perf_skip(&c, at);

    return perf_text(&c, perf_left(&c) < MAX_NAME_BYTES ? perf_left(&c) : MAX_NAME_BYTES);
}

/* Global symbols first, then weak and local ones; then fewer underscores. */
static unsigned rank_symbol(uint8_t info, struct hearth_str name)
{
    static const unsigned of_binding[] = {2, 0, 1}; /* local, global, weak */
    unsigned binding = info >> 4, n = 0;

    while (n < name.n && n < 7 && name.p[n] == '_') {
        n++;
    }

    return (binding < HEARTH_ARRAY_LEN(of_binding) ? of_binding[binding] : 3) * 8 + n;
}

/* The end of the section that contains an address; UINT64_MAX if it is not known. */
static uint64_t find_section_end(const struct elf_reader *r, uint16_t i, uint64_t address)
{
    struct elf_section section;

    return read_elf_section(r, i, &section) && address >= section.address &&
                   address - section.address < section.bytes.n
               ? section.address + section.bytes.n
               : UINT64_MAX;
}

/* Appends a symbol if it is a defined function with a name. */
static void read_symbol(const struct elf_reader *r, struct perf_cursor c, struct hearth_str names,
                        struct hearth_elf_symbols *symbols)
{
    uint32_t name_at = perf_u32(&c);
    uint64_t value = r->is_64 ? 0 : perf_u32(&c), size = r->is_64 ? 0 : perf_u32(&c);
    uint8_t info = (uint8_t)perf_number(&c, 1);
    perf_skip(&c, 1);
    uint16_t section = perf_u16(&c);
    if (r->is_64) {
        value = perf_u64(&c);
        size = perf_u64(&c);
    }

    unsigned type = info & 15;
    struct elf_symbol symbol = {.start = value, .name = read_elf_text(names, name_at)};
    if (c.failed || section == 0 || symbol.name.n == 0 ||
        (type != SYMBOL_FUNCTION && type != SYMBOL_INDIRECT_FUNCTION)) {
        return;
    }

    symbol.rank = rank_symbol(info, symbol.name);
    symbol.limit = size == 0 ? find_section_end(r, section, value) : UINT64_MAX;
    if (__builtin_add_overflow(value, size, &symbol.end)) {
        symbol.end = UINT64_MAX;
    }
    symbols->symbols[symbols->n_symbols++] = symbol;
}

static int compare_symbols(const void *a, const void *b)
{
    const struct elf_symbol *x = a, *y = b;

    if (x->start != y->start) {
        return x->start < y->start ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }

    return x->name.p < y->name.p ? -1 : x->name.p > y->name.p;
}

/*
 * Sorts symbols, keeps one per address, and lets those without a size reach to the next one, or to
 * the end of their section: _init, which has none, is not the stubs of the section behind it.
 */
static void sort_symbols(struct hearth_elf_symbols *symbols)
{
    struct elf_symbol *s = symbols->symbols;
    size_t n = 0;

    if (symbols->n_symbols > 1) {
        qsort(s, symbols->n_symbols, sizeof *s, compare_symbols);
    }

    for (size_t i = 0; i < symbols->n_symbols; i++) {
        if (n > 0 && s[n - 1].start == s[i].start) {
            s[n - 1].end = s[i].end > s[n - 1].end ? s[i].end : s[n - 1].end;
        } else {
            s[n++] = s[i];
        }
    }

    symbols->n_symbols = n;
    for (size_t i = 0; i < n; i++) {
        if (s[i].end == s[i].start) {
            uint64_t page_end = (s[i].start | (PAGE_BYTES - 1)) + PAGE_BYTES;
            s[i].end = i + 1 < n ? s[i + 1].start : page_end > s[i].start ? page_end : UINT64_MAX;
            s[i].end = s[i].end < s[i].limit ? s[i].end : s[i].limit;
        }
    }
}

static enum hearth_status read_symbols(const struct elf_reader *r,
                                       const struct elf_section *section,
                                       struct hearth_elf_symbols *symbols, struct hearth_err *err)
{
    struct elf_section names;
    size_t entry_bytes = r->is_64 ? 24 : 16, n = section->bytes.n / entry_bytes;

    if (section->entry_bytes != entry_bytes || !read_elf_section(r, section->link, &names)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "its table of symbols is damaged");
    }
    if (n > HEARTH_ELF_MAX_SYMBOLS) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "it has more than %d symbols",
                           HEARTH_ELF_MAX_SYMBOLS);
    }

    symbols->symbols = hearth_arena_array(r->arena, n, sizeof *symbols->symbols);
    if (symbols->symbols == NULL && n > 0) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    struct perf_cursor c = perf_cursor_at(section->bytes);
    for (size_t i = 0; i < n; i++) {
        read_symbol(r, perf_cursor_at(perf_bytes(&c, entry_bytes)), names.bytes, symbols);
    }

    sort_symbols(symbols);

    return HEARTH_OK;
}

enum hearth_status hearth_elf_symbols_read(struct hearth_str bytes, struct hearth_arena *arena,
                                           const struct hearth_elf_symbols **ret,
                                           struct hearth_err *err)
{
    struct elf_reader r = {.bytes = bytes, .arena = arena};
    struct elf_section table = {0}, section;
    unsigned n_notes = 0;

    assert(arena != NULL && ret != NULL);
    struct hearth_elf_symbols *symbols = hearth_arena_zalloc(arena, sizeof *symbols);
    if (symbols == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    symbols->build_id = hearth_str_n("", 0);
    HEARTH_TRY(read_elf_header(&r, err));
    HEARTH_TRY(read_segments(&r, symbols, err));
    for (uint32_t i = 0; i < r.n_sections; i++) {
        if (!read_elf_section(&r, i, &section)) {
            continue; /* such as .bss, which has no bytes in the file */
        }
        if (section.type == SECTION_SYMTAB ||
            (section.type == SECTION_DYNSYM && table.type != SECTION_SYMTAB)) {
            table = section;
        }
        if (section.type == SECTION_NOTE && symbols->build_id.n == 0 && n_notes++ < MAX_NOTES &&
            !read_build_id(section.bytes, arena, &symbols->build_id)) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    if (table.type != 0) {
        HEARTH_TRY(read_symbols(&r, &table, symbols, err));
    }

    *ret = symbols;

    return HEARTH_OK;
}

/* ---- look-ups ---- */

size_t hearth_elf_symbols_count(const struct hearth_elf_symbols *symbols)
{
    return symbols->n_symbols;
}

struct hearth_str hearth_elf_symbols_build_id(const struct hearth_elf_symbols *symbols)
{
    return symbols->build_id;
}

struct hearth_str hearth_elf_symbols_find(const struct hearth_elf_symbols *symbols,
                                          uint64_t file_offset)
{
    uint64_t address = file_offset;

    for (size_t i = 0; i < symbols->n_segments; i++) {
        const struct elf_segment *segment = &symbols->segments[i];
        if (file_offset >= segment->offset && file_offset - segment->offset < segment->n_bytes) {
            address = segment->address + (file_offset - segment->offset);
            break;
        }
    }

    /* The last symbol that starts at or before the address. */
    size_t from = 0, to = symbols->n_symbols;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (symbols->symbols[middle].start <= address) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }

    if (from == 0 || address >= symbols->symbols[from - 1].end) {
        return hearth_str_n("", 0);
    }

    return symbols->symbols[from - 1].name;
}
