"""The kinds of Grove are served as they are documented: by these names, with these columns and fields."""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove import served
from conformance.grove.fields import Document
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing.comparison import same

CRDS = "customresourcedefinitions"
POD = "POD-"
"""How the facts about the pod spec inside of a kind begin."""


@requirements("CRD-001", "CRD-002", "CRD-003", "CRD-004")
def test_the_kinds_are_served_as_they_are_documented(case: Case) -> None:
    kinds = served.kinds()
    replies = case.dry_run.all([case.dry_run.get(CRDS, kind.name) for kind in kinds])
    for kind, reply in zip(kinds, replies, strict=True):
        case.expect("CRD-001", f"{kind.name} is there", "accepted", str(reply))
        crd = reply.object
        same(case, "CRD-001", f"what {kind.name} is called and has", kind.is_called, served.called(crd, kind))
        case.expect("CRD-002", f"printer columns of {kind.name}", kind.columns, served.columns(crd, kind))
        _fields(case, "CRD-003", kind, crd, lambda fact: not fact.startswith(POD))
        if any(field.fact.startswith(POD) for field in kind.fields):
            _fields(case, "CRD-004", kind, crd, lambda fact: fact.startswith(POD))


def _fields(case: Case, id: str, kind: served.Kind, crd: Document, of: Callable[[str], bool]) -> None:
    fields = [field for field in kind.fields if of(field.fact)]
    right = {field.path: field.says for field in fields}
    same(case, id, f"fields of {kind.name}", right, {field.path: served.seen(crd, field) for field in fields})
