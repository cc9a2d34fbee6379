"""Objects that terminate slowly: a finalizer of the suite keeps them after their deletion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from conformance.grove.fields import finalizers
from conformance.suite.scenes.scene_environment import SceneEnvironment

HELD = "conformance.grove.io/held"
"""The finalizer."""


@contextmanager
def held(env: SceneEnvironment, resource: str, names: Sequence[str]) -> Iterator[None]:
    """Let objects terminate, once they are deleted, until the end, also if the scene ends early."""
    for each in names:
        present = finalizers(env.history.view().get(resource, each))
        env.patch(resource, each, {"metadata": {"finalizers": [*present, HELD]}})
    try:
        yield
    finally:
        view = env.history.view()
        for each in (each for each in names if HELD in finalizers(view.get(resource, each))):
            env.patch(resource, each, {"metadata": {"finalizers": None}})
