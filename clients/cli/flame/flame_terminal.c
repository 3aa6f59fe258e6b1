/* flame_terminal.c -- reads keys from a terminal, and writes the rows that changed. */
#include "flame_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define MAX_WIDTH      1000
#define MAX_HEIGHT     500
#define ESCAPE_WAIT_MS 50 /* after it, an escape byte is the key and no sequence */

/* Alternate screen, no cursor, no wrapping; and back. */
static const char g_enter[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char g_leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

static const int g_signals[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
static int g_wake[2] = {-1, -1}; /* a pipe: handlers write the number of the signal */

struct terminal {
    struct flame_screen *screen;
    struct termios before;
    struct sigaction actions[HEARTH_ARRAY_LEN(g_signals)];
    struct hearth_buf frame, shown; /* rows to be shown, and those that the terminal shows */
    struct hearth_buf out;
    int width, height;
    unsigned char keys[256];
    size_t n_keys;
    int signal; /* that ends the process; 0: none */
};

static void wake_loop(int number)
{
    int saved = errno;
    unsigned char byte = (unsigned char)number;

    ssize_t n = write(g_wake[1], &byte, 1);
    (void)n; /* a full pipe wakes the loop, too */
    errno = saved;
}

/* ---- the terminal ---- */

static bool write_all(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(STDOUT_FILENO, p, n);
        if (wrote < 0 && errno == EAGAIN) {
            struct pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
            (void)poll(&ready, 1, 1000);
        } else if (wrote < 0 && errno != EINTR) {
            return false;
        }
        p += wrote > 0 ? wrote : 0;
        n -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

static bool enter_screen(struct terminal *t)
{
    struct termios raw = t->before;

    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    hearth_buf_reset(&t->shown);

    return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 && write_all(g_enter, sizeof g_enter - 1);
}

static void leave_screen(struct terminal *t)
{
    (void)write_all(g_leave, sizeof g_leave - 1);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
}

/* Stops the process as Ctrl-Z does; returns when it is continued. */
static bool suspend(struct terminal *t)
{
    leave_screen(t);
    (void)raise(SIGTSTP);
    return enter_screen(t);
}

static void measure_terminal(struct terminal *t)
{
    struct winsize size = {.ws_col = 80, .ws_row = 24};
    int width = t->width, height = t->height;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    }
    t->width = size.ws_col < MAX_WIDTH ? size.ws_col : MAX_WIDTH;
    t->height = size.ws_row < MAX_HEIGHT ? size.ws_row : MAX_HEIGHT;
    if (t->width != width || t->height != height) {
        hearth_buf_reset(&t->shown);
    }
}

/* The row at *at, without its end of line; *at is moved behind it. */
static struct hearth_str take_row(const struct hearth_buf *rows, size_t *at)
{
    const char *from = rows->p + *at;
    const char *end = *at < rows->n ? memchr(from, '\n', rows->n - *at) : NULL;
    size_t n = end == NULL ? rows->n - *at : (size_t)(end - from);

    *at += end == NULL ? n : n + 1;
    return hearth_str_n(from, n);
}

/* Writes the rows that changed, in one piece, so that a terminal does not show half of them. */
static bool show(struct terminal *t)
{
    size_t at = 0, shown_at = 0;

    measure_terminal(t);
    hearth_buf_reset(&t->frame);
    hearth_buf_reset(&t->out);
    flame_screen_paint(t->screen, t->width, t->height, &t->frame);
    hearth_buf_cstr(&t->out, "\033[?2026h");
    hearth_buf_cstr(&t->out, t->shown.n == 0 ? "\033[0m\033[2J" : "");
    for (int row = 1; row <= t->height; row++) {
        struct hearth_str now = take_row(&t->frame, &at);
        bool is_same = false;
        if (t->shown.n > 0) {
            is_same = hearth_str_eq(now, take_row(&t->shown, &shown_at));
        }
        if (!is_same) {
            hearth_buf_printf(&t->out, "\033[%d;1H", row);
            hearth_buf_str(&t->out, now);
        }
    }
    hearth_buf_cstr(&t->out, "\033[?2026l");
    hearth_buf_str(&t->out, hearth_buf_view(&t->screen->sent));
    hearth_buf_reset(&t->screen->sent);

    struct hearth_buf spare = t->shown;
    t->shown = t->frame;
    t->frame = spare;

    return !hearth_buf_failed(&t->shown) && !hearth_buf_failed(&t->out) &&
           write_all(t->out.p, t->out.n);
}

/* ---- input ---- */

static bool press_keys(struct terminal *t, bool is_all)
{
    size_t at = 0;

    while (at < t->n_keys && !t->screen->is_done) {
        int key;
        size_t n = flame_take_key(t->keys + at, t->n_keys - at, is_all, &key);
        if (n == 0) {
            break;
        }
        at += n;
        if (key == 26) { /* Ctrl-Z */
            if (!suspend(t)) {
                return false;
            }
            continue;
        }
        flame_screen_key(t->screen, key);
    }
    t->n_keys -= at;
    memmove(t->keys, t->keys + at, t->n_keys);

    return true;
}

static bool read_signals(struct terminal *t)
{
    unsigned char numbers[64];
    ssize_t n = read(g_wake[0], numbers, sizeof numbers);

    for (ssize_t i = 0; i < n; i++) {
        t->signal = numbers[i] == SIGWINCH ? t->signal : numbers[i];
    }
    return t->signal == 0;
}

/* Waits for keys and signals, and handles them. False: the end, or errno is set. */
static bool handle_input(struct terminal *t)
{
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {g_wake[0], POLLIN, 0}};
    int n = poll(fds, 2, t->n_keys > 0 ? ESCAPE_WAIT_MS : -1);

    if (n < 0) {
        return errno == EINTR;
    }
    if (n == 0) {
        return press_keys(t, true);
    }
    if ((fds[1].revents & POLLIN) != 0 && !read_signals(t)) {
        return false;
    }
    if (fds[0].revents == 0) {
        return true;
    }
    ssize_t got = read(STDIN_FILENO, t->keys + t->n_keys, sizeof t->keys - t->n_keys);
    if (got <= 0) { /* the terminal is gone */
        t->screen->is_done = true;
        return got == 0 || errno == EIO;
    }
    t->n_keys += (size_t)got;

    return press_keys(t, false);
}

/* ---- the loop ---- */

static bool catch_signals(struct terminal *t)
{
    struct sigaction action = {.sa_handler = wake_loop, .sa_flags = SA_RESTART};

    if (pipe2(g_wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_signals); i++) {
        (void)sigaction(g_signals[i], &action, &t->actions[i]);
    }
    return true;
}

static void release_signals(struct terminal *t)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_signals); i++) {
        (void)sigaction(g_signals[i], &t->actions[i], NULL);
    }
    (void)close(g_wake[0]);
    (void)close(g_wake[1]);
}

enum hearth_status flame_terminal_run(struct flame_screen *screen, struct hearth_err *err)
{
    struct terminal t = {.screen = screen};

    if (tcgetattr(STDIN_FILENO, &t.before) != 0 || !catch_signals(&t)) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "cannot use the terminal: %s",
                           strerrordesc_np(errno));
    }
    hearth_buf_init(&t.frame, 0);
    hearth_buf_init(&t.shown, 0);
    hearth_buf_init(&t.out, 0);

    bool ok = enter_screen(&t);
    while (ok && !screen->is_done) {
        ok = show(&t) && handle_input(&t);
    }
    int saved = errno;
    leave_screen(&t);
    release_signals(&t);
    hearth_buf_release(&t.frame);
    hearth_buf_release(&t.shown);
    hearth_buf_release(&t.out);

    /* A signal ends the process as if it had not been caught. */
    if (t.signal != 0) {
        (void)raise(t.signal);
    }

    return ok || t.signal != 0 ? HEARTH_OK
                               : HEARTH_FAIL(err, HEARTH_INTERNAL, "cannot use the terminal: %s",
                                             strerrordesc_np(saved));
}
