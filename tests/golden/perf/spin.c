/*
 * spin.c -- the program of the recordings beside it: a parent and its child burn CPU time in a
 * chain of functions, and touch fresh pages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

__attribute__((noinline)) unsigned long spin(unsigned long n)
{
    volatile unsigned long sum = 0;

    for (unsigned long i = 0; i < n; i++) {
        sum += i * i;
    }

    return sum;
}

__attribute__((noinline)) unsigned long inner(unsigned long n)
{
    return spin(n * 100000) + 1;
}

__attribute__((noinline)) static unsigned long outer(unsigned long n)
{
    unsigned long sum = 0;

    for (unsigned long i = 0; i < n; i++) {
        sum += inner(i);
    }

    return sum + 2;
}

__attribute__((noinline)) static unsigned long touch(size_t n_pages)
{
    char *pages = malloc(n_pages * PAGE);

    for (size_t i = 0; i < n_pages && pages != NULL; i++) {
        pages[i * PAGE] = (char)i;
    }

    return pages == NULL ? 0 : (unsigned char)pages[PAGE];
}

int main(void)
{
    pid_t child = fork();
    unsigned long sum = outer(30) + touch(32);

    printf("%lu\n", sum);
    if (child > 0) {
        (void)waitpid(child, NULL, 0);
    }

    return 0;
}
