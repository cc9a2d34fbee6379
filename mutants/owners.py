"""The owner of pods, for mutants that remember it."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.api.pods import Pod


def owner_of(pods: Iterable[Pod]) -> str:
    """Return the uid of the clique that controls these pods; empty if there are none."""
    return next((pod.metadata.controller.uid for pod in pods if pod.metadata.controller is not None), "")
