"""A comparison as one HTML page that needs no network: verdict, tables and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from conformance.pages.render import render
from conformance.scale.compare import pictures, tables
from conformance.scale.compare.verdicts import TimeVerdict

Document = dict[str, Any]

TEMPLATE = Path(__file__).with_name("page.html")
KINDS = {TimeVerdict.FASTER: "good", TimeVerdict.NO_DIFFERENCE: "good", TimeVerdict.SLOWER: "bad"}
"""The CSS classes of verdicts on the page. All other verdicts have the class `unsure`."""


def page(document: Document, command: str) -> str:
    """Return the page of a comparison. Raises UsageError if matplotlib is not installed."""
    metric_names = [
        document["question"]["metric"],
        *(name for name in document["times"] if name.endswith(tables.SHOWN_TIMES)),
    ]
    values = {
        "title": tables.title(document),
        "kind": "bad" if document["gate"] else KINDS.get(TimeVerdict(document["verdict"]), "unsure"),
        "headline": tables.headline(document),
        "why": document["why"],
        "gate": document["gate"],
        "ratios": Markup(pictures.ratios(document, metric_names)),  # noqa: S704 - matplotlib escapes texts in its SVG
        "timeline": Markup(pictures.timeline(document)),  # noqa: S704
        "header": tables.HEADER,
        "rows": list(tables.rows(document)),
        "notes": list(tables.notes(document)),
        "command": command,
    }
    return render(TEMPLATE, values)
