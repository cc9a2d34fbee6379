"""The events of a namespace as text, one event per line."""

from __future__ import annotations

from conformance.grove.fields import text
from conformance.history.query import History
from conformance.history.record import DELETED


def render(history: History) -> str:
    """Return the events in the order in which they were received: `+1.301 Warning FailedScheduling Pod/x: 0/10 nodes
    are available … (scheduler)`."""
    lines = []
    for record in history.records("events"):
        if record.kind == DELETED:
            continue
        event = record.object
        subject = f"{text(event, 'regarding', 'kind')}/{text(event, 'regarding', 'name')}"
        reporter = text(event, "reportingController") or text(event, "deprecatedSource", "component")
        description = (
            f"{text(event, 'type')} {text(event, 'reason')} {subject}: {' '.join(text(event, 'note').split())}"
        )
        lines.append(f"+{record.at:.3f} {description}" + (f" ({reporter})" if reporter else ""))
    return "\n".join(lines) + "\n" if lines else ""
