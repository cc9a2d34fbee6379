"""A finalizer with which the suite delays the deletion of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from conformance.grove.fields import finalizers
from conformance.suite.scenes.scene_environment import SceneEnvironment

FINALIZER = "conformance.grove.io/held"
"""The finalizer that blocks the deletion."""


@contextmanager
def block_deletion(env: SceneEnvironment, resource: str, names: Sequence[str]) -> Iterator[None]:
    """Add the finalizer to these objects, so that they stay terminating after their deletion until the context ends.
    The finalizer is removed even if the scene ends early."""
    for name in names:
        present = finalizers(env.history.view().get(resource, name))
        env.patch(resource, name, {"metadata": {"finalizers": [*present, FINALIZER]}})
    try:
        yield
    finally:
        view = env.history.view()
        for name in (name for name in names if FINALIZER in finalizers(view.get(resource, name))):
            env.patch(resource, name, {"metadata": {"finalizers": None}})
