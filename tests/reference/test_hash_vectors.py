"""Tests that every hash recorded from upstream's operators is reproduced for each version of the Kubernetes
libraries."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from kube.gotypes import pod_template_types
from reference_impl.api import crds
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import hashes
from reference_impl.plan.hashing import dump, fnv, quantity
from reference_impl.plan.hashing.schemes import SCHEMES
from reference_impl.plan.hashing.window import STANDARD, Policy
from tests.reference import hash_vectors

VECTORS = {vector["name"]: vector for vector in hash_vectors.vectors()}
NEWER = {"projected-podcertificate-userannotations", "workload-ref", "scheduling-group"}
"""Vectors with fields that the pinned library does not have."""


def set_of(template: dict[str, Any]) -> PodCliqueSet:
    return msgspec.convert({"spec": {"replicas": 1, "template": template}}, PodCliqueSet)


def computed(pcs: PodCliqueSet, policy: Policy = STANDARD) -> dict[str, str]:
    template = pcs.spec.template
    return {
        **{
            clique.name: hashes.template_hashes(clique, template.priority_class_name, policy).written
            for clique in template.cliques
        },
        "": hashes.generation_hashes(pcs, policy).written,
    }


@pytest.mark.parametrize("name", VECTORS)
def test_every_recorded_hash_is_reproduced(name: str) -> None:
    pcs = set_of(VECTORS[name]["template"])
    expected = hash_vectors.expected(VECTORS[name])
    actual = {}
    for library in dump.LIBRARIES:
        for form in ("legacy", "canonical"):
            policy = Policy(SCHEMES[f"{form}-{library}"])
            actual |= {(library, form, clique): value for clique, value in computed(pcs, policy).items()}
    assert actual == expected


@pytest.mark.parametrize("name", VECTORS)
def test_the_written_hash_is_the_canonical_hash_of_the_pinned_library(name: str) -> None:
    pcs = set_of(VECTORS[name]["template"])
    recorded = {
        c: v
        for (lib, form, c), v in hash_vectors.expected(VECTORS[name]).items()
        if (lib, form) == (dump.PINNED, "canonical")
    }
    assert (computed(pcs) == recorded) is (name not in NEWER)


def test_each_quantity_is_dumped_as_go_prints_it() -> None:
    for entry in hash_vectors.document()["quantities"]:
        assert quantity.dump(entry["json"]) == entry.get("dump", quantity.ABSENT), entry


def test_fnv_hashes_whole_texts_and_texts_in_pieces() -> None:
    for text, spelt in hash_vectors.document()["fnv"]:
        assert fnv.encode(fnv.advance(fnv.OFFSET, [text])) == spelt
        assert fnv.encode(fnv.advance(fnv.OFFSET, list(text))) == spelt


def test_an_empty_template_has_a_hash() -> None:
    for scheme in SCHEMES.values():
        assert "".join(dump.template(None, None, {}, scheme.library).pieces)
    assert hashes.generation_hashes(set_of({"cliques": []})).written == "58bf9fd547f78bb9b47c"


def test_every_field_of_the_served_pod_spec_is_hashed() -> None:
    """A change to a field that is missing in all our library versions would go unnoticed."""
    crd = yaml.safe_load((crds.FOLDER / "podcliquesets.grove.io.yaml").read_text())
    served = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for step in ("spec", "template", "cliques", "", "spec", "podSpec"):
        served = served["properties"][step] if step else served["items"]
    unknown = list(_unknown(served, "v1.PodSpec", "podSpec"))
    assert not unknown


def _unknown(schema: dict[str, Any], struct: str, path: str):
    """Yield the paths of a schema that the latest struct does not have."""
    types = pod_template_types()
    fields = {}

    def gather(name: str) -> None:
        for field in types.fields(name, dump.NEWEST):
            if field.embedded and not field.json:
                gather(field.type)
            else:
                fields[field.json] = field

    gather(struct)
    for name, inner in (schema.get("properties") or {}).items():
        if name not in fields:
            yield f"{path}.{name}"
            continue
        target = fields[name].type.lstrip("*").removeprefix("[]").lstrip("*")
        inner = inner.get("items") or inner
        if target in types.structs and target not in ("resource.Quantity", "intstr.IntOrString"):
            yield from _unknown(inner, target, f"{path}.{name}")


def test_a_newer_field_changes_the_hash_if_it_is_set() -> None:
    def generation(**later: object) -> str:
        pcs = set_of(VECTORS["minimal"]["template"])
        pcs.spec.template.cliques[0].spec.pod_spec.update(later)
        return hashes.generation_hashes(pcs).written

    groups = [generation(schedulingGroup={"podGroupName": name}) for name in "ab"]
    assert len({generation(), *groups}) == 3
    assert generation(schedulingGroup=None) == generation()
