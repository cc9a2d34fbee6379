"""Tests of admission manifest files: a base with changes, and mistakes that are reported with file and line."""

from __future__ import annotations

from random import Random

import pytest

from conformance.errors import UsageError
from conformance.grove.admission import examples, manifests, model, updates
from conformance.grove.admission.violation import AdmissionFacts
from conformance.suite.registry import requirement

FILE = """\
about: a test
bases:
  b: {apiVersion: v1, kind: K, metadata: {name: x}, spec: {items: [{name: a}]}}
manifests:
- name: one
  requirement: ADM-001
  rules: [R]
  base: b
  set: {"spec.items[1]": {name: "${binding}"}, metadata.labels: {a: b}}
  drop: ["spec.items[0].name"]
  stored: {set: {spec.more: 1}}
  verdict: refused
"""
FACTS = AdmissionFacts(topology=True, mnnvl=True, schedulers=("own",), bindings={"top": ["zone", "rack", "host"]})


def read(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    return manifests.read(tmp_path / "x.yaml")


def test_fields_are_set_added_and_dropped(tmp_path):
    [manifest] = read(tmp_path, FILE)
    assert manifest.object["spec"] == {"items": [{}, {"name": "${binding}"}]}
    assert manifest.object["metadata"] == {"name": "x", "labels": {"a": "b"}}
    assert manifest.stored_object is not None and manifest.stored_object["spec"] == {
        "items": [{"name": "a"}],
        "more": 1,
    }
    assert manifests.filled(manifest.object, {"binding": "t"})["spec"]["items"][1]["name"] == "t"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("base: b", "base: c", "unknown base 'c'"),
        ("spec.items[0].name", "spec.nothing.name", "a path of set or drop does not fit"),
        ("verdict: refused", "verdict: maybe", "verdict"),
        ("rules: [R]", "rules: []", "rules"),
    ],
)
def test_mistakes_are_reported_with_their_line(tmp_path, old, new, complaint):
    with pytest.raises(UsageError, match=r"x\.yaml:[0-9]+") as caught:
        read(tmp_path, FILE.replace(old, new))
    assert complaint in str(caught.value)


def test_our_manifests_belong_to_requirements_of_admission():
    requirements = requirement.load().requirements
    for manifest in manifests.load():
        entry = requirements[manifest.requirement]
        assert entry.profile == "admission", manifest.name
        # An implementation that claims the feature must be judged by the manifest, so the manifest must not require the
        # feature's absence.
        assert not (entry.feature and entry.feature in manifest.lacks), manifest.name


def test_each_requirement_has_a_manifest_for_every_implementation_that_claims_it():
    """Without such a manifest, the requirement's test would end without an outcome."""
    requirements = requirement.load().requirements
    for id in {manifest.requirement for manifest in manifests.load()}:
        claimed_features = {requirements[id].feature} - {""}
        for features in (claimed_features, {"topology", "mnnvl", "kai", "authorizer"}):
            assert any(m.applies(features) for m in manifests.load() if m.requirement == id), id


def test_right_sets_break_no_rule_and_stay_as_they_are():
    for seed in range(300):
        pcs = examples.valid_set(Random(seed), FACTS)
        assert model.creation_violations(pcs, FACTS) == [] == updates.update_violations(pcs, pcs, FACTS)


def test_generated_sets_break_most_rules():
    """If the generator produced no invalid sets, tests with generated sets would prove nothing."""
    broken = set()
    for seed in range(3000):
        random = Random(seed)
        pcs = examples.mutated_set(random, examples.valid_set(random, FACTS))
        broken |= {violation.rule for violation in model.creation_violations(pcs, FACTS)}
    assert len(broken) > 35, sorted(broken)


def test_constraints_are_asked_for_where_topology_is_claimed():
    """An operator, or the scheduler that its descriptor names, may reject every topology constraint before it checks
    anything else. The schema (ADM-025) rejects before either of them."""
    registry = requirement.load()
    unclaimed = [m for m in manifests.load() if m.applies(()) and not registry.get(m.requirement).feature]
    constrained = [m for m in unclaimed if "topologyConstraint" in str(m.object) and m.requirement != "ADM-025"]
    assert [m.name for m in constrained if not all("topologyConstraint" in error.at for error in m.errors)] == []
