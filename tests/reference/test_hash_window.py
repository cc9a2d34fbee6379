"""Tests of which stored hashes count as hashes of the current template."""

from __future__ import annotations

import copy

import pytest

from reference_impl.api.models import StartupType
from reference_impl.plan import hashes
from reference_impl.plan.hashing.schemes import CANONICAL, SCHEMES
from reference_impl.plan.hashing.window import STANDARD, Policy
from tests.reference.examples import disaggregated

UNSORTED = {"containers": [{"name": "sidecar"}, {"name": "main"}], "volumes": [{"name": "z"}, {"name": "a"}]}
LEGACY = [scheme for name, scheme in SCHEMES.items() if name.startswith("legacy")]


def workload(spec=UNSORTED):
    pcs = disaggregated()
    for clique in pcs.spec.template.cliques:
        clique.spec.pod_spec = copy.deepcopy(spec)
    return pcs


def stored(pcs, scheme):
    """Return the generation hash and the template hash of the first clique, as an operator with this scheme writes
    them."""
    policy, template = Policy(scheme), pcs.spec.template.cliques[0]
    return hashes.generation_hashes(pcs, policy).written, hashes.template_hashes(template, None, policy).written


def first(pcs, policy=STANDARD):
    return hashes.window(pcs, policy).templates[pcs.spec.template.cliques[0].name]


@pytest.mark.parametrize("scheme", LEGACY, ids=str)
@pytest.mark.parametrize("order", StartupType)
def test_a_legacy_hash_of_the_current_template_is_current_but_is_not_written(scheme, order):
    pcs = workload()
    pcs.spec.template.clique_startup_type = order
    generation, template = stored(pcs, scheme)
    window = hashes.window(pcs)
    assert generation in window.generation and window.generation.foreign_scheme(generation) == scheme
    assert template in first(pcs) and first(pcs).foreign_scheme(template) == scheme
    assert window.generation.written == hashes.generation_hashes(pcs).written != generation


def test_the_written_hash_is_current_and_is_not_replaced():
    current_hashes = first(workload())
    assert current_hashes.written in current_hashes
    assert current_hashes.foreign_scheme(current_hashes.written) is None
    assert current_hashes.foreign_scheme(None) is None and None not in current_hashes
    assert current_hashes.foreign_scheme("4444") is None and "4444" not in current_hashes


def test_equal_hashes_count_as_the_written_hash():
    pcs = workload({"containers": [{"name": "main"}]})
    _, template = stored(pcs, SCHEMES["legacy-0.34"])
    assert template == first(pcs).written
    assert first(pcs).foreign_scheme(template) is None


@pytest.mark.parametrize("scheme", LEGACY, ids=str)
def test_a_hash_of_another_template_is_not_current(scheme):
    pcs, other = workload(), workload()
    other.spec.template.cliques[0].spec.pod_spec["containers"][0]["image"] = "other"
    generation, template = stored(other, scheme)
    assert generation not in hashes.window(pcs).generation
    assert template not in first(pcs)


def test_a_legacy_hash_of_an_unseen_order_is_not_current():
    pcs, other = workload(), workload()
    other.spec.template.cliques[0].spec.pod_spec["containers"].reverse()
    _, template = stored(other, SCHEMES["legacy-0.34"])
    assert template not in first(pcs)
    earlier, window = hashes.window(other), hashes.window(pcs)
    assert template in earlier.templates[pcs.spec.template.cliques[0].name]
    window.keep_recognizing(earlier)
    assert template in window.templates[pcs.spec.template.cliques[0].name]


def test_a_meaningful_change_forgets_earlier_hashes():
    pcs, other = workload(), workload()
    other.spec.template.cliques[0].spec.pod_spec["containers"][0]["image"] = "other"
    generation, template = stored(other, SCHEMES["legacy-0.34"])
    earlier, window = hashes.window(other), hashes.window(pcs)
    assert generation in earlier.generation
    window.keep_recognizing(earlier)
    assert generation not in window.generation
    assert template not in window.templates[pcs.spec.template.cliques[0].name]


def test_schemes_that_lack_a_set_field_are_ignored():
    """Such a scheme yields the same hash before and after a change to only that field."""
    pcs = workload({**UNSORTED, "schedulingGroup": {"podGroupName": "a"}})
    for name in ("legacy-0.34", "legacy-0.35", "canonical-0.35"):
        _, template = stored(pcs, SCHEMES[name])
        assert template not in first(pcs)
    _, template = stored(pcs, SCHEMES["legacy-0.36"])
    assert template in first(pcs)


def test_an_earlier_version_recognizes_only_its_own_hashes():
    policy = Policy(SCHEMES["legacy-0.34"], ())
    pcs = workload()
    generation, template = stored(pcs, CANONICAL)
    assert generation not in hashes.window(pcs, policy).generation
    assert template not in first(pcs, policy)
