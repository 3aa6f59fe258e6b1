/* guess.c -- the nearest of several names, by the changes that make one of the other. */
#include "guess.h"

#include "hearth/base/human.h"

enum {
    LONGEST = 64 /* bytes of a text that is compared */
};

/* Changes, insertions, deletions and swaps of neighbours that make b of a. */
static int edit_distance(struct hearth_str a, struct hearth_str b)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b.n; j++) {
        last[j] = (int)j;
    }
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= b.n; j++) {
            int best = last[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            bool is_swap = i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1];
            now[j] = is_swap && before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
        }
        int *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }

    return last[b.n];
}

void cli_guess_begin(struct cli_guess *guess, const char *text)
{
    *guess = (struct cli_guess){.text = hearth_str_c(text)};
    /* A third of the letters may be wrong. */
    guess->distance = 1 + (int)(guess->text.n < LONGEST ? guess->text.n : LONGEST) / 3;
}

void cli_guess_try(struct cli_guess *guess, struct hearth_str candidate)
{
    if (guess->text.n == 0 || guess->text.n > LONGEST || candidate.n > LONGEST) {
        return;
    }

    /* The beginning of a long name is nearer than any name with a wrong letter. */
    bool is_start = guess->text.n >= 3 && hearth_str_starts(candidate, guess->text);
    int distance = is_start ? 1 : edit_distance(guess->text, candidate);
    if (distance < guess->distance) {
        guess->distance = distance;
        guess->best = candidate;
    }
}

void cli_guess_say(const struct cli_guess *guess, struct hearth_buf *out)
{
    if (guess->best.p != NULL) {
        hearth_buf_cstr(out, "; did you mean ");
        hearth_human_fit(guess->best, 100, false, out);
        hearth_buf_byte(out, '?');
    }
}
