"""A comparison as one HTML page that needs no network: verdict, tables, pictures."""

from __future__ import annotations

from html import escape
from typing import Any

from conformance.drawing import SCHEMES
from conformance.scale.compare import pictures, tables

Document = dict[str, Any]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { font-size: 1.2rem; font-weight: 600; }
.fails { color: var(--red); font-weight: 600; }
.wide { overflow-x: auto; }
.wide svg { width: 100%; max-width: 46rem; height: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; white-space: nowrap;
  border-bottom: 1px solid var(--ground); }
td:last-child { white-space: normal; min-width: 14rem; }
pre { background: var(--ground); padding: .75rem; overflow-x: auto; }
@media print { :root { --paper: #fff; --ink: #000; } }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p class="verdict">{verdict}: {why}</p>
{gate}
{ratios}
{timeline}
<h2>Figures</h2>
<div class="wide"><table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>
<ul>{notes}</ul>
<h2>Repeat it</h2>
<pre>{command}</pre>
</body>
</html>
"""

RATIOS = """<h2>Ratios of the rounds</h2>
<p>One circle per round, the median as a diamond, its 95 % interval as a bar. The shaded band is the minimum effect.
Only the first row is tested.</p>
<div class="wide">{}</div>"""
TIMELINE = """<h2>Markers</h2>
<div class="wide">{}</div>"""


def page(document: Document, command: str) -> str:
    """Return the page of a comparison. Raises UsageError if matplotlib is not installed."""
    shown = [document["question"]["metric"], *(name for name in document["times"] if name.endswith(tables.SHOWN))]
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in tables.rows(document))
    return PAGE.format(
        style=SCHEMES + STYLE,
        title=escape(tables.title(document)),
        verdict=escape(document["verdict"]),
        why=escape(document["why"]),
        gate="".join(f'<p class="fails">fails: {escape(reason)}</p>' for reason in document["gate"]),
        ratios=_section(RATIOS, pictures.ratios(document, shown)),
        timeline=_section(TIMELINE, pictures.timeline(document)),
        header="".join(f"<th>{escape(cell)}</th>" for cell in tables.HEADER),
        rows="".join(f"<tr>{row}</tr>" for row in rows),
        notes="".join(f"<li>{escape(note)}</li>" for note in tables.notes(document)),
        command=escape(command),
    )


def _section(text: str, picture: str) -> str:
    """Return a section with its picture, or nothing if there is no picture."""
    return text.format(picture) if picture else ""
