"""Renders a recording of a program that only prints as an animated SVG.

Usage: render-svg.py OUT TIMING FOLDER, where OUT and TIMING were written by
util-linux's script, and FOLDER is a temporary folder whose name is left out,
with the run folder that Ostler makes in it.
Every piece of text appears when it was printed; at the end all of it is there.
"""

import html
import os
import re
import sys
import unicodedata

COLUMNS = 100
CHAR, LINE, PAD = 7.8, 18, 16
COLOURS = [("→", "#d2a8ff"), ("←", "#8b949e"), ("✗", "#ff7b72"), (">", "#79c0ff")]


def pieces(out, timing):
    """Yields (seconds, text) as they were printed."""
    data = open(out, "rb").read().split(b"\n", 1)[1]
    at, clock = 0, 0.0
    for line in open(timing):
        delay, size = line.split()[:2]
        clock += float(delay)
        chunk = data[at : at + int(size)]
        at += int(size)
        yield clock, chunk


def rows(out, timing, folder):
    """Returns the screen as rows of (seconds, column, text), and which go on with the one above."""
    screen, wrapped, column, pending = [[]], set(), 0, b""
    for clock, chunk in pieces(out, timing):
        pending += chunk
        try:
            text, pending = pending.decode(), b""
        except UnicodeDecodeError:
            continue
        text = text.replace("\r", "").replace("\t", "    ")
        # OpenCode names files of other folders from the root, but without its slash.
        text = re.sub(rf"/?{re.escape(folder[1:])}/ostler-\d+/\w+", "/tmp/ostler", text)
        for number, part in enumerate(text.split("\n")):
            if number:
                screen.append([])
                column = 0
            part = "".join(c for c in part if unicodedata.category(c) != "Cc")
            while part:
                room = COLUMNS - column
                if room <= 0:
                    wrapped.add(len(screen))
                    screen.append([])
                    column, room = 4, COLUMNS - 4
                screen[-1].append((clock, column, part[:room]))
                column += len(part[:room])
                part = part[room:]
    while screen and not screen[-1]:
        screen.pop()
    shown = "".join(text for row in screen for _, _, text in row)
    if os.path.basename(folder) in shown:
        sys.exit(f"the recording shows {folder}")
    return screen, wrapped


def words(column, text):
    """Yields (column, words) without blanks around them, which viewers may drop."""
    for found in re.finditer(r"\S+(?: \S+)*", text):
        yield column + found.start(), found.group()


def colour(row):
    text = "".join(part for _, _, part in row).lstrip()
    for mark, value in COLOURS:
        if text.startswith(mark):
            return value
    if text.endswith(")") and ("(real:" in text or "(scripted:" in text):
        return "#ffa657"
    return "#c9d1d9"


def main():
    screen, wrapped = rows(*sys.argv[1:4])
    width = COLUMNS * CHAR + 2 * PAD
    height = (len(screen) + 1) * LINE + 2 * PAD
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" aria-label="A recording of ostler demo">'
    )
    print(
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
        ".p{animation:s .01s both}@keyframes s{from{opacity:0}to{opacity:1}}"
        "@media(prefers-reduced-motion:reduce){.p{animation:none}}</style>"
    )
    print('<rect width="100%" height="100%" rx="8" fill="#0d1117"/>')
    print(f'<text x="{PAD}" y="{PAD + LINE - 5}" fill="#7ee787">$ ostler demo</text>')
    fill = ""
    for number, row in enumerate(screen):
        fill = fill if number in wrapped else colour(row)
        y = PAD + (number + 2) * LINE - 5
        for clock, start, text in row:
            for column, part in words(start, text):
                x = PAD + column * CHAR
                print(
                    f'<text class="p" style="animation-delay:{clock:.2f}s" x="{x:.1f}" y="{y}" '
                    f'textLength="{len(part) * CHAR:.1f}" fill="{fill}">{html.escape(part)}</text>'
                )
    print("</svg>")


main()
