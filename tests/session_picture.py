# SPDX-License-Identifier: Apache-2.0
"""Draws a session of a terminal as an SVG in which the lines appear as they did: draw([(command, output, seconds), ...]).

A browser that is asked for less motion, and anything that does not know animations, shows the whole session at once.
"""

from xml.sax.saxutils import escape

COLUMNS = 100
LINE = 18         # pixels
COLUMN = 7.25     # pixels of a character at this size of the font
MARGIN = 16
TITLE = 30
TYPING = 0.02     # seconds for a character
READING = 1.2     # seconds after each command

STYLE = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d5dbe3; white-space: pre }
.title { fill: #8b96a5 }
.command { fill: #ffffff }
.prompt { fill: #6fce8e }
.line { animation: appear 0.01s linear both }
@keyframes appear { from { opacity: 0 } to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { .line { animation: none } }
"""


def lines_of(steps):
    """Each line with the second at which it appears; commands are pairs."""
    now = 0.5
    for command, output, seconds in steps:
        yield now, command, True
        now += TYPING * len(command) + seconds
        for line in output.rstrip("\n").splitlines():
            yield now, line, False
        now += READING


def draw_line(row, at, text, is_command):
    y = TITLE + MARGIN + LINE * (row + 0.7)
    shown = (f'<tspan class="prompt"># </tspan><tspan class="command">{escape(text)}</tspan>' if is_command else escape(text))
    return f'<text class="line" x="{MARGIN}" y="{y:.1f}" style="animation-delay:{at:.2f}s">{shown}</text>'


def draw(steps, title):
    lines = list(lines_of(steps))
    too_long = [text for _, text, _ in lines if len(text) > COLUMNS]
    if too_long:
        raise ValueError(f"longer than {COLUMNS} columns: {too_long[0]}")
    width = round(2 * MARGIN + COLUMN * COLUMNS)
    height = TITLE + 2 * MARGIN + LINE * len(lines)
    rows = "\n".join(draw_line(row, *line) for row, line in enumerate(lines))
    dots = "".join(f'<circle cx="{18 + 18 * i}" cy="15" r="5" fill="{colour}"/>'
                   for i, colour in enumerate(("#e0655c", "#e0b24c", "#6fbf5e")))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" xml:space="preserve">\n'
            f"<!-- SPDX-License-Identifier: Apache-2.0 -->\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
            f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>\n{dots}\n'
            f'<text class="title" x="{width // 2}" y="19" text-anchor="middle">{escape(title)}</text>\n{rows}\n</svg>\n')
