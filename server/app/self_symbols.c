/*
 * self_symbols.c -- reads /proc/self/maps and ELF files. The files are our own, but offsets in them
 * are checked.
 */
#include "self_symbols.h"

#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_IMAGES     512u
#define MAX_BUILD_ID   64u
#define MAX_FILE_BYTES ((size_t)1 << 30)

struct mapped_file {
    const char *p;
    size_t n;
};

/* n objects of `size` bytes at `offset`, or NULL if they are not completely in the file. */
static const void *find_part(const struct mapped_file *file, uint64_t offset, uint64_t n,
                             size_t size)
{
    uint64_t n_bytes, end;
    if (__builtin_mul_overflow(n, (uint64_t)size, &n_bytes) ||
        __builtin_add_overflow(offset, n_bytes, &end) || end > file->n ||
        offset % _Alignof(uint32_t) != 0) {
        return NULL;
    }

    return file->p + offset;
}

static const Elf64_Ehdr *find_header(const struct mapped_file *file)
{
    const Elf64_Ehdr *header = find_part(file, 0, 1, sizeof *header);

    return header != NULL && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
                   header->e_ident[EI_CLASS] == ELFCLASS64 &&
                   header->e_phentsize == sizeof(Elf64_Phdr) &&
                   header->e_shentsize == sizeof(Elf64_Shdr)
               ? header
               : NULL;
}

static const char *print_hex(const unsigned char *bytes, size_t n, struct hearth_arena *arena)
{
    char *text = hearth_arena_alloc(arena, 2 * n + 1);
    for (size_t i = 0; text != NULL && i < n; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return text != NULL ? text : "";
}

/* The NT_GNU_BUILD_ID in a note segment, in hexadecimal; NULL if there is none. */
static const char *find_build_id(const struct mapped_file *file, const Elf64_Phdr *segment,
                                 struct hearth_arena *arena)
{
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= segment->p_filesz;) {
        const Elf64_Nhdr *note = find_part(file, segment->p_offset + at, 1, sizeof *note);
        if (note == NULL) {
            return NULL;
        }

        uint64_t name = at + sizeof *note;
        uint64_t desc = name + (((uint64_t)note->n_namesz + 3) & ~(uint64_t)3);
        const char *owner = find_part(file, segment->p_offset + name, note->n_namesz, 1);
        const unsigned char *bytes = find_part(file, segment->p_offset + desc, note->n_descsz, 1);
        if (owner != NULL && bytes != NULL && note->n_type == NT_GNU_BUILD_ID &&
            note->n_namesz == 4 && memcmp(owner, "GNU", 4) == 0 && note->n_descsz <= MAX_BUILD_ID) {
            return print_hex(bytes, note->n_descsz, arena);
        }

        at = desc + (((uint64_t)note->n_descsz + 3) & ~(uint64_t)3);
    }

    return NULL;
}

static void read_segments(const struct mapped_file *file, const Elf64_Ehdr *header,
                          struct hearth_arena *arena, struct hearth_self_image *image)
{
    const Elf64_Phdr *segments =
        find_part(file, header->e_phoff, header->e_phnum, sizeof *segments);
    for (size_t i = 0; segments != NULL && i < header->e_phnum; i++) {
        const Elf64_Phdr *segment = &segments[i];
        const char *build_id = NULL;
        bool is_code = segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0;
        if (is_code && image->offset >= segment->p_offset &&
            image->offset - segment->p_offset < segment->p_filesz) {
            image->bias = image->start - (segment->p_vaddr + image->offset - segment->p_offset);
        } else if (segment->p_type == PT_NOTE && image->build_id[0] == '\0') {
            build_id = find_build_id(file, segment, arena);
        } else if (is_code && segment->p_offset - image->offset < image->limit - image->start) {
            /* The mapping begins at the page boundary before the segment's first byte. */
            image->bias = image->start + (segment->p_offset - image->offset) - segment->p_vaddr;
        }

        if (build_id != NULL) {
            image->build_id = build_id;
        }
    }
}

static int compare_addresses(const void *a, const void *b)
{
    const struct hearth_self_symbol *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* The full symbol table if there is one, otherwise that of the dynamic linker, or NULL. */
static const Elf64_Shdr *find_table(const Elf64_Shdr *sections, size_t n,
                                    const struct mapped_file *file)
{
    const Elf64_Shdr *found = NULL;
    for (size_t i = 0; i < n; i++) {
        bool is_full = sections[i].sh_type == SHT_SYMTAB;
        if ((is_full || (sections[i].sh_type == SHT_DYNSYM && found == NULL)) &&
            sections[i].sh_link < n && sections[i].sh_entsize == sizeof(Elf64_Sym) &&
            find_part(file, sections[i].sh_offset, sections[i].sh_size, 1) != NULL) {
            found = &sections[i];
        }
        if (found != NULL && is_full) {
            break;
        }
    }

    return found;
}

static void read_symbols(const struct mapped_file *file, const Elf64_Ehdr *header,
                         struct hearth_arena *arena, struct hearth_self_image *image)
{
    const Elf64_Shdr *sections =
        find_part(file, header->e_shoff, header->e_shnum, sizeof *sections);
    const Elf64_Shdr *table = sections == NULL ? NULL : find_table(sections, header->e_shnum, file);
    if (table == NULL) {
        return;
    }

    const Elf64_Shdr *strings = &sections[table->sh_link];
    const char *texts = find_part(file, strings->sh_offset, strings->sh_size, 1);
    size_t n = table->sh_size / sizeof(Elf64_Sym), n_kept = 0;
    const Elf64_Sym *from = find_part(file, table->sh_offset, n, sizeof *from);
    struct hearth_self_symbol *symbols = hearth_arena_array(arena, n, sizeof *symbols);
    if (texts == NULL || from == NULL || symbols == NULL) {
        return;
    }

    /* Keep the functions that are defined here. */
    for (size_t i = 0; i < n; i++) {
        const Elf64_Sym *symbol = &from[i];
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
            symbol->st_name >= strings->sh_size) {
            continue;
        }

        const char *name = texts + symbol->st_name;
        name = hearth_arena_strndup(arena, name, strnlen(name, strings->sh_size - symbol->st_name));
        if (name == NULL) {
            break;
        }

        symbols[n_kept++] = (struct hearth_self_symbol){symbol->st_value, symbol->st_size, name};
    }

    qsort(symbols, n_kept, sizeof *symbols, compare_addresses);
    assert(n_kept <= n);
    image->symbols = symbols;
    image->n_symbols = n_kept;
}

static void read_image(struct hearth_self_image *image, struct hearth_arena *arena)
{
    int fd = open(image->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }

    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size <= MAX_FILE_BYTES) {
        struct mapped_file file = {.n = (size_t)st.st_size};
        void *p = mmap(NULL, file.n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            file.p = p;
            const Elf64_Ehdr *header = find_header(&file);
            if (header != NULL) {
                read_segments(&file, header, arena, image);
                read_symbols(&file, header, arena, image);
            }
            (void)munmap(p, file.n);
        }
    }

    (void)close(fd);
}

struct hearth_self_image *hearth_self_images(struct hearth_arena *arena, size_t *ret_n)
{
    struct hearth_self_image *images = hearth_arena_array(arena, MAX_IMAGES, sizeof *images);
    FILE *maps = images == NULL ? NULL : fopen("/proc/self/maps", "re");
    if (maps == NULL) {
        return NULL;
    }

    char line[4096];
    size_t n = 0;
    while (n < MAX_IMAGES && fgets(line, sizeof line, maps) != NULL) {
        /* "start-limit mode offset device inode path", of executable mappings with a path. */
        unsigned long start, limit, offset;
        char mode[8] = "";
        int path = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &start, &limit, mode, &offset, &path) != 4 ||
            path == 0 || mode[2] != 'x' || line[path] == '\0') {
            continue;
        }

        struct hearth_self_image *image = &images[n];
        *image = (struct hearth_self_image){
            .start = start, .limit = limit, .offset = offset, .build_id = "", .bias = start};
        image->path = hearth_arena_strndup(arena, line + path, strlen(line + path));
        if (image->path == NULL) {
            break;
        }
        if (image->path[0] == '/') {
            read_image(image, arena);
        }

        n++;
    }

    (void)fclose(maps);
    *ret_n = n;
    return images;
}

const struct hearth_self_image *hearth_self_image_find(const struct hearth_self_image *images,
                                                       size_t n, uint64_t address)
{
    for (size_t i = 0; i < n; i++) {
        if (address >= images[i].start && address < images[i].limit) {
            return &images[i];
        }
    }

    return NULL;
}

const char *hearth_self_symbol_find(const struct hearth_self_image *image, uint64_t address)
{
    assert(image != NULL);

    uint64_t linked = address - image->bias;
    size_t low = 0, high = image->n_symbols;

    /* Find the first symbol after the address; the one before it may cover the address. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (image->symbols[middle].address <= linked) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    if (low == 0) {
        return NULL;
    }

    const struct hearth_self_symbol *symbol = &image->symbols[low - 1];

    return symbol->size == 0 || linked - symbol->address < symbol->size ? symbol->name : NULL;
}
