/* replay_main.c -- feeds every file of the directories given as arguments to a fuzz target, once. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return 0;
    }
    uint8_t *bytes = NULL;
    size_t n = 0, cap = 0;
    for (;;) {
        if (cap - n < 65536) {
            cap = cap == 0 ? 65536 : cap * 2;
            uint8_t *grown = realloc(bytes, cap);
            if (grown == NULL) {
                abort();
            }
            bytes = grown;
        }
        size_t got = fread(bytes + n, 1, cap - n, file);
        if (got == 0) {
            break;
        }
        n += got;
    }
    (void)fclose(file);
    /* An exact-size copy, so that ASan sees a read past the end. */
    uint8_t *exact = malloc(n == 0 ? 1 : n);
    if (exact == NULL) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        exact[i] = bytes[i];
    }
    free(bytes);
    (void)LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 1;
}

int main(int argc, char **argv)
{
    int n_replayed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (dir == NULL) {
            (void)fprintf(stderr, "cannot open %s\n", argv[i]);
            return 1;
        }
        for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
            char path[4096];
            if (entry->d_name[0] != '.' &&
                snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name) < (int)sizeof path) {
                n_replayed += replay(path);
            }
        }
        (void)closedir(dir);
    }
    (void)printf("replayed %d inputs\n", n_replayed);
    return n_replayed > 0 ? 0 : 1; /* an empty corpus is a broken test */
}
