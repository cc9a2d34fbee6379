"""Tests that Grove's kinds are served with their documented names, printer columns and fields."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.grove import served
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

CRDS = "customresourcedefinitions"
POD_REQUIREMENT_PREFIX = "POD-"
"""The prefix of facts about the pod spec within a kind."""


class ServedKinds(Scene):
    """The CustomResourceDefinitions that the implementation has installed."""

    def play(self, env: SceneEnvironment) -> None:
        self.kinds = served.kinds()
        replies = env.dry_run.all([env.dry_run.get(CRDS, kind.name) for kind in self.kinds])
        self.replies = dict(zip((kind.name for kind in self.kinds), replies, strict=True))


@requirement("CRD-001")
def test_kinds_are_served_under_their_names(run: Recorded[ServedKinds]) -> None:
    """Undocumented short names are ignored."""
    for kind in run.scene.kinds:
        reply = run.scene.replies[kind.name]
        run.expect(f"{kind.name} exists", "accepted", str(reply))
        run.same(f"what {kind.name} is called and has", kind.expected_names, served.observed_names(reply.object, kind))


@requirement("CRD-002")
def test_kinds_have_their_printer_columns(run: Recorded[ServedKinds]) -> None:
    """Columns are compared by name, and their order is not judged."""
    for kind in run.scene.kinds:
        columns = served.columns(run.scene.replies[kind.name].object, kind)
        expected = {str(name): rest for name, *rest in kind.columns}
        run.same(f"printer columns of {kind.name}", expected, {str(name): rest for name, *rest in columns})


@requirement("CRD-003")
def test_kinds_have_their_fields(run: Recorded[ServedKinds]) -> None:
    """All fields are judged except those of the pod spec within a kind."""
    for kind in run.scene.kinds:
        _compare(run, kind, [field for field in kind.fields if not field.fact.startswith(POD_REQUIREMENT_PREFIX)])


@requirement("CRD-004")
def test_pod_specs_have_their_fields(run: Recorded[ServedKinds]) -> None:
    """A default that is meant only for Pods would be stored in the set and change its hash."""
    for kind in run.scene.kinds:
        fields = [field for field in kind.fields if field.fact.startswith(POD_REQUIREMENT_PREFIX)]
        if fields:
            _compare(run, kind, fields)


def _compare(run: Recorded[ServedKinds], kind: served.Kind, fields: Sequence[served.Field]) -> None:
    """Expect that a kind is served with these fields."""
    crd = run.scene.replies[kind.name].object
    expected = {field.path: field.expected_properties for field in fields}
    run.same(
        f"fields of {kind.name}", expected, {field.path: served.observed_properties(crd, field) for field in fields}
    )
