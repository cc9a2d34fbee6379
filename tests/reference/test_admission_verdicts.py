"""Tests of the reference's verdicts without an API server, on the suite's manifests and on generated sets, which the
suite's model also judges."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.grove.admission import examples, manifests, model, updates
from conformance.grove.admission.defaults import differences, with_defaults
from conformance.grove.admission.violation import AdmissionFacts
from conformance.tests.admission.judging import find_difference
from tests.conftest import THOROUGH
from tests.reference import apiserver

WORDS = {"binding": "top", "scheduler": apiserver.SCHEDULER_NAME}
ON = {"topology", "mnnvl", "kai", "authorizer"}
FACTS = AdmissionFacts(topology=True, mnnvl=True, schedulers=(apiserver.SCHEDULER_NAME,), bindings=apiserver.LEVELS)
CEL = {"SCH-07", "SCH-08", "SCH-09", "SCH-10", "SCH-11", "SCH-12", "SCH-21"}
"""Rules that only a real API server can check, because they are CEL expressions."""
GENERATED = 2000 if THOROUGH else 500


def _cases(features):
    applicable_manifests = [m for m in manifests.load() if m.applies(features) and CEL.isdisjoint(m.rules)]
    return [pytest.param(manifest, id=manifest.name) for manifest in applicable_manifests]


def _reply(manifest, settings):
    stored = manifest.stored_object and manifests.filled(manifest.stored_object, WORDS)
    obj = manifests.filled(manifest.object, WORDS)
    if stored:
        obj["metadata"]["name"] = stored["metadata"]["name"]
    return apiserver.ask(obj, stored, settings)


@pytest.mark.parametrize("manifest", _cases(ON))
def test_manifests_get_expected_verdicts_with_all_features(manifest):
    reply = _reply(manifest, apiserver.SETTINGS)
    assert find_difference(manifest, reply, WORDS) == "", str(reply)


@pytest.mark.parametrize("manifest", [p for p in _cases(set()) if p.values[0].lacks])
def test_manifests_get_expected_verdicts_without_features(manifest):
    reply = _reply(manifest, apiserver.FEATURES_OFF)
    assert find_difference(manifest, reply, WORDS) == "", str(reply)


def test_every_rule_about_single_requests_has_a_manifest():
    listed = {rule for manifest in manifests.load() for rule in manifest.rules}
    expected = {f"VAL-{n:02}" for n in [*range(1, 6), *range(7, 13), *range(14, 23), *range(33, 37), 30, 32, 38]}
    expected |= {f"VAL-{n}" for n in [*range(40, 46), *range(50, 57), *range(58, 69)]}
    expected |= {f"UPD-{n:02}" for n in [*range(1, 10), *range(12, 22)]} | {f"VTC-{n:02}" for n in range(1, 12)}
    expected |= {f"CTV-{n:02}" for n in range(1, 7)} | {f"MNV-{n:02}" for n in range(1, 6)}
    # VAL-06 is tested as A-07. The field's comment contradicts VAL-56.
    assert expected - listed <= {"VAL-06", "VAL-56"} and len(expected) > 70


@settings(max_examples=GENERATED)
@given(st.integers(0, 2**32))
def test_generated_sets_get_the_same_verdict_as_from_the_model(seed):
    random = Random(seed)
    base = examples.valid_set(random, FACTS)
    pcs = examples.mutated_set(random, base) if seed % 4 else base
    update = seed % 3 == 0 and pcs["metadata"]["name"] == base["metadata"]["name"]
    violations = updates.update_violations(pcs, base, FACTS) if update else model.creation_violations(pcs, FACTS)
    if any(violation.rule in CEL for violation in violations):
        return
    reply = apiserver.ask(pcs, base if update else None)
    assert reply.accepted == (not violations), (violations, str(reply))
    if violations:
        assert any(error.is_at(violation.leaf) for error in reply.errors for violation in violations), (
            violations,
            str(reply),
        )
    else:
        assert not differences(with_defaults(pcs)["spec"], reply.object["spec"])
