"""Tests that hashes change with the meaning of a template and with nothing else."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.api.models import StartupType
from reference_impl.plan import hashes
from tests.reference.examples import disaggregated

SPEC = {
    "containers": [
        {"name": "a", "env": [{"name": "X"}, {"name": "Y"}], "ports": [{"containerPort": 1}, {"containerPort": 2}]},
        {"name": "b", "volumeMounts": [{"mountPath": "/x"}, {"mountPath": "/y"}]},
    ],
    "initContainers": [{"name": "i"}, {"name": "j"}],
    "volumes": [{"name": "v"}, {"name": "w"}],
    "tolerations": [{"key": "p"}, {"key": "q"}],
}


def digest(spec):
    template = disaggregated().spec.template.cliques[0]
    template.spec.pod_spec = spec
    return hashes.template_hashes(template, None).written


@given(st.randoms())
def test_the_order_of_keyed_lists_does_not_change_the_hash(random):
    shuffled = copy.deepcopy(SPEC)
    for items in (shuffled["containers"], shuffled["volumes"]):
        random.shuffle(items)
    for container in shuffled["containers"]:
        for field in ("ports", "volumeMounts"):
            random.shuffle(container.get(field, []))
    assert digest(shuffled) == digest(SPEC)


@pytest.mark.parametrize("path", [("initContainers",), ("tolerations",), ("containers", 0, "env")])
def test_a_significant_order_changes_the_hash(path):
    changed = copy.deepcopy(SPEC)
    holder = changed
    for step in path:
        holder = holder[step]
    holder.reverse()
    assert digest(changed) != digest(SPEC)


def test_the_order_of_cliques_matters_only_for_the_startup_order():
    one, other = disaggregated(), disaggregated()
    other.spec.template.cliques.reverse()
    assert hashes.generation_hashes(one).written == hashes.generation_hashes(other).written
    for pcs in (one, other):
        pcs.spec.template.clique_startup_type = StartupType.IN_ORDER
    assert hashes.generation_hashes(one).written != hashes.generation_hashes(other).written


def test_replicas_do_not_change_the_generation():
    one, other = disaggregated(replicas=1), disaggregated(replicas=5)
    assert hashes.generation_hashes(one).written == hashes.generation_hashes(other).written
