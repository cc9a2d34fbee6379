"""Timing markers of a scene as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def lines(phases: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield one line for each phase: `deploy: pods-created 8.1 s, pods-ready 20.4 s`."""
    for phase, times in phases.items():
        yield f"{phase}: " + ", ".join(f"{marker} {seconds:.1f} s" for marker, seconds in times.items())
