/* flame_screen.c -- what the keys of the interactive flame graph do. */
#include "flame_screen.h"

#include "hearth/base/base64.h"
#include "hearth/base/mem.h"
#include "hearth/selector/pattern.h"

#include "page_link.h"

#include <string.h>

/* ---- moving ---- */

static bool is_visible(const struct flame_screen *screen, const struct flame_pane *pane,
                       uint32_t node)
{
    const struct flame_tree *tree = pane->tree;
    int from, to;
    int64_t left = tree->from[pane->zoom], right = left + tree->total[pane->zoom];

    if (tree->from[node] >= right || tree->from[node] + tree->total[node] <= left) {
        return false;
    }
    return flame_box(tree, pane->zoom, node, screen->width, &screen->ink, &from, &to);
}

/* The next visible node on the level of the selected one, to the left or right. */
static void move_aside(struct flame_screen *screen, struct flame_pane *pane, int step)
{
    uint32_t level = flame_tree_level(pane->tree, pane->at);
    uint32_t first = pane->tree->level_first[level], end = pane->tree->level_first[level + 1];

    for (int64_t node = (int64_t)pane->at + step; node >= first && node < end; node += step) {
        if (is_visible(screen, pane, (uint32_t)node)) {
            pane->at = (uint32_t)node;
            return;
        }
    }
}

/* The largest visible child; above the zoomed node, the one on the way to it. */
static void move_to_child(struct flame_screen *screen, struct flame_pane *pane)
{
    const struct flame_tree *tree = pane->tree;
    uint32_t best = HEARTH_NO_NODE;

    for (uint32_t i = tree->first_child[pane->at]; i < tree->first_child[pane->at + 1]; i++) {
        if (is_visible(screen, pane, i) &&
            (best == HEARTH_NO_NODE || tree->total[i] > tree->total[best])) {
            best = i;
        }
    }
    pane->at = best == HEARTH_NO_NODE ? pane->at : best;
}

/* A step up or down on the screen; past the edge of a pane that has the root, into the other. */
static void move_along(struct flame_screen *screen, bool up)
{
    struct flame_pane *pane = &screen->panes[screen->focus];

    if (up == pane->grows_up) {
        move_to_child(screen, pane);
    } else if (pane->at != 0) {
        pane->at = pane->tree->parent[pane->at];
    } else if (screen->n_panes == 2 && screen->focus == 1) {
        screen->focus = 0;
        move_to_child(screen, &screen->panes[0]);
    }
}

/* The function of a sandwich is selected in the pane of its callees: only that one shows it. */
static void settle_focus(struct flame_screen *screen)
{
    if (screen->n_panes == 2 && screen->focus == 0 && screen->panes[0].at == 0) {
        screen->focus = 1;
        screen->panes[1].at = 0;
    }
}

static void zoom_to(struct flame_pane *pane, uint32_t node)
{
    pane->zoom = node;

    /* A deep zoom shows three of its ancestors. */
    uint32_t level = flame_tree_level(pane->tree, node);
    pane->first_level = level > 3 ? level - 3 : 0;
}

static void zoom_out(struct flame_pane *pane)
{
    pane->at = pane->zoom;
    zoom_to(pane, pane->tree->parent[pane->zoom]);
}

static void move_to_edge(struct flame_screen *screen, struct flame_pane *pane, bool last)
{
    if (!last) {
        pane->at = pane->zoom;
        return;
    }
    for (uint32_t before = HEARTH_NO_NODE; before != pane->at;) {
        before = pane->at;
        move_to_child(screen, pane);
    }
}

/* ---- search ---- */

static void clear_search(struct flame_screen *screen)
{
    screen->search[0] = '\0';
    screen->ink.marks = NULL;
    memset(screen->marks, 0, screen->names.n);
}

/* Marks the matching names, and sums the nodes that have them. */
static void run_search(struct flame_screen *screen)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pattern *pattern;

    clear_search(screen);
    if (screen->typed[0] == '\0') {
        return;
    }
    if (hearth_pattern_new(hearth_str_c(screen->typed), "search", &pattern, &err) != HEARTH_OK) {
        flame_screen_say(screen, "%s", err.msg);
        screen->is_typing = true;
        return;
    }
    for (uint32_t i = 1; i < screen->names.n; i++) { /* 0 is the total */
        screen->marks[i] = hearth_pattern_occurs(pattern, screen->names.v[i]);
    }
    hearth_pattern_free(pattern);

    if (flame_tree_matched(&screen->whole, screen->marks, &screen->matched, &err) != HEARTH_OK) {
        flame_screen_say(screen, "%s", err.msg);
        return;
    }
    memcpy(screen->search, screen->typed, sizeof screen->search);
    screen->ink.marks = screen->marks;
}

/* Selects the next visible match, row by row, and begins again at the other end. */
static void move_to_match(struct flame_screen *screen, int step)
{
    struct flame_pane *pane = &screen->panes[screen->focus];
    const struct flame_tree *tree = pane->tree;
    uint32_t node = pane->at;

    if (screen->search[0] == '\0') {
        flame_screen_say(screen, "there is no search; / begins one");
        return;
    }
    for (uint32_t i = 0; i < tree->n; i++) {
        node = step > 0 ? (node + 1 == tree->n ? 0 : node + 1) : (node == 0 ? tree->n : node) - 1;
        if (screen->marks[tree->name[node]] != 0 && is_visible(screen, pane, node)) {
            pane->at = node;
            return;
        }
    }
    flame_screen_say(screen, "no match has a box here; 0 shows the whole graph");
}

static void type_search(struct flame_screen *screen, int key)
{
    size_t n = strlen(screen->typed);

    if (key == FLAME_KEY_ENTER || key == '\n') {
        screen->is_typing = false;
        run_search(screen);
        const struct flame_pane *pane = &screen->panes[screen->focus];
        if (screen->is_table) {
            flame_screen_sort_table(screen);
        } else if (screen->search[0] != '\0' && screen->marks[pane->tree->name[pane->at]] == 0) {
            move_to_match(screen, 1);
            screen->message[0] = '\0'; /* the matched share is what the last line says */
        }
    } else if (key == FLAME_KEY_ESCAPE || key == FLAME_KEY_CONTROL_C) {
        screen->is_typing = false;
    } else if (key == FLAME_KEY_BACKSPACE || key == FLAME_KEY_DELETE) {
        /* A character of UTF-8 is deleted as a whole. */
        while (n > 0 && ((unsigned char)screen->typed[n - 1] & 0xc0) == 0x80) {
            n--;
        }
        screen->typed[n > 0 ? n - 1 : 0] = '\0';
    } else if (key >= ' ' && key < 256 && n < FLAME_SEARCH_BYTES) {
        screen->typed[n] = (char)key;
        screen->typed[n + 1] = '\0';
    }
}

/* ---- the web page ---- */

void flame_screen_address(const struct flame_screen *screen, struct hearth_buf *out)
{
    hearth_buf_cstr(out, screen->facts.page);
    if (screen->view == FLAME_VIEW_LEAVES) {
        hearth_buf_cstr(out, "&flip=1");
    }
    if (screen->view == FLAME_VIEW_SANDWICH) {
        page_link_param(out, "function", screen->names.v[screen->function]);
        hearth_buf_cstr(out, "&view=sandwich");
    }
    if (screen->search[0] != '\0') {
        page_link_param(out, "search", hearth_str_c(screen->search));
    }
}

/* Hands the address to the terminal's clipboard (OSC 52), and keeps it for the end. */
static void copy_address(struct flame_screen *screen)
{
    struct hearth_buf address;

    if (screen->facts.page == NULL) {
        flame_screen_say(screen, "%s", screen->facts.no_page);
        return;
    }
    hearth_buf_init(&address, 1 << 16);
    flame_screen_address(screen, &address);
    char *copy = hearth_buf_failed(&address) ? NULL : hearth_mem_strndup(address.p, address.n);
    if (copy != NULL) {
        hearth_mem_free(screen->copied);
        screen->copied = copy;
        hearth_buf_cstr(&screen->sent, "\033]52;c;");
        hearth_base64_encode(hearth_buf_view(&address), &screen->sent);
        hearth_buf_cstr(&screen->sent, "\a");
    }
    flame_screen_say(screen, copy == NULL
                                 ? "the address is too long"
                                 : "copied the address of the page; it is also printed at the end");
    hearth_buf_release(&address);
}

/* ---- keys ---- */

/* Leaves the innermost of: search, sandwich or leaves, zoom. */
static void step_back(struct flame_screen *screen, struct flame_pane *pane)
{
    if (screen->search[0] != '\0') {
        clear_search(screen);
    } else if (screen->view != FLAME_VIEW_STACKS) {
        flame_screen_show(screen, FLAME_VIEW_STACKS, &screen->whole);
    } else {
        zoom_to(pane, 0);
    }
}

static void press_move_key(struct flame_screen *screen, struct flame_pane *pane, int key)
{
    switch (key) {
    case FLAME_KEY_UP:
    case 'k':
        move_along(screen, true);
        break;
    case FLAME_KEY_DOWN:
    case 'j':
        move_along(screen, false);
        break;
    case FLAME_KEY_LEFT:
    case 'h':
        move_aside(screen, pane, -1);
        break;
    case FLAME_KEY_RIGHT:
    case 'l':
        move_aside(screen, pane, 1);
        break;
    case FLAME_KEY_PAGE_UP:
    case FLAME_KEY_PAGE_DOWN:
        for (int i = 0; i < pane->n_rows - 1; i++) {
            move_along(screen, key == FLAME_KEY_PAGE_UP);
        }
        break;
    case FLAME_KEY_HOME:
    case FLAME_KEY_END:
        move_to_edge(screen, pane, key == FLAME_KEY_END);
        break;
    default:
        break;
    }
}

static void press_view_key(struct flame_screen *screen, struct flame_pane *pane, int key)
{
    switch (key) {
    case FLAME_KEY_ENTER:
    case '\n':
        zoom_to(pane, pane->at);
        break;
    case 'u':
    case FLAME_KEY_BACKSPACE:
    case FLAME_KEY_DELETE:
        zoom_out(pane);
        break;
    case '0':
        zoom_to(pane, 0);
        break;
    case FLAME_KEY_ESCAPE:
        step_back(screen, pane);
        break;
    case 'i':
        flame_screen_show_leaves(screen);
        break;
    case 's':
        flame_screen_sandwich(screen, pane->tree->name[pane->at]);
        break;
    case 't':
        flame_screen_open_table(screen);
        break;
    case '\t':
        screen->focus = (screen->focus + 1) % screen->n_panes;
        if (screen->n_panes == 2 && screen->focus == 0 && screen->panes[0].at == 0) {
            move_to_child(screen, &screen->panes[0]);
        }
        break;
    default:
        press_move_key(screen, pane, key);
        break;
    }
}

void flame_screen_key(struct flame_screen *screen, int key)
{
    screen->message[0] = '\0';
    if (screen->is_typing) {
        type_search(screen, key);
    } else if (key == 'q' || key == FLAME_KEY_CONTROL_C) {
        screen->is_done = true;
    } else if (screen->is_help) {
        screen->is_help = false;
    } else if (key == '?') {
        screen->is_help = true;
    } else if (key == '/') {
        screen->is_typing = true;
        screen->typed[0] = '\0';
    } else if (key == 'y') {
        copy_address(screen);
    } else if (screen->is_table) {
        flame_screen_table_key(screen, key);
    } else if (key == 'n' || key == 'N') {
        move_to_match(screen, key == 'n' ? 1 : -1);
    } else {
        press_view_key(screen, &screen->panes[screen->focus], key);
    }
    settle_focus(screen);
}
