"""A screen of terminal.py as a page of HTML, for pictures of the client."""

import html

CUBE = (0, 95, 135, 175, 215, 255)
FIRST = ("#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5")
STYLE = "body{margin:0;background:#1b1b1f}pre{margin:12px;font:15px/19px 'DejaVu Sans Mono',monospace;color:#e6e6e6}"


def indexed(n):
    """A colour of the 256."""
    if n < 16:
        return FIRST[n % 8]
    if n >= 232:
        return "#%02x%02x%02x" % ((8 + 10 * (n - 232),) * 3)
    return "#%02x%02x%02x" % (CUBE[(n - 16) // 36], CUBE[(n - 16) // 6 % 6], CUBE[(n - 16) % 6])


def declarations(style):
    """CSS of the parameters of SGR sequences, as terminal.Screen joins them."""
    words = [int(word or 0) for word in style.split(";")[1:]]
    front, back, other, reverse = "#e6e6e6", "#1b1b1f", "", False
    while words:
        word = words.pop(0)
        if word in (38, 48):
            if words.pop(0) == 2:
                colour = "#%02x%02x%02x" % tuple(words[:3])
                del words[:3]
            else:
                colour = indexed(words.pop(0))
            front, back = (colour, back) if word == 38 else (front, colour)
        elif 30 <= word <= 37:
            front = FIRST[word - 30]
        elif 40 <= word <= 47:
            back = FIRST[word - 40]
        elif word == 7:
            reverse = True
        else:
            other += {1: "font-weight:bold;", 2: "opacity:0.7;", 4: "text-decoration:underline;"}.get(word, "")
    if reverse:
        front, back = back, front
    return "color:%s;background:%s;%s" % (front, back, other)


def page(screen):
    rows = []
    for cells in screen.cells:
        spans, last = [], None
        for text, style in cells:
            if style != last:
                spans.append([style, ""])
                last = style
            spans[-1][1] += text
        rows.append("".join('<span style="%s">%s</span>' % (declarations(s), html.escape(t)) for s, t in spans))
    return "<!doctype html><meta charset=utf-8><style>%s</style><pre>%s</pre>" % (STYLE, "\n".join(rows))
