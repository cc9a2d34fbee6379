"""The owner of pods, for mutants that keep state for each owner."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.api.pods import Pod


def owner_of(pods: Iterable[Pod]) -> str:
    """Return the UID of the clique that controls these pods, or an empty string if no pod has a controller."""
    return next((pod.metadata.controller.uid for pod in pods if pod.metadata.controller is not None), "")
