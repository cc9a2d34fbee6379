"""Tests that the pairs of templates are what they claim to be: the templates of a keyed pair have the same canonical
hash, and the templates of every other pair have different ones."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.grove import template_hashes, template_pairs
from conformance.grove.quantities import amount
from conformance.grove.template_hashes import CANONICAL, LEGACY
from reference_impl.plan import quantities
from reference_impl.plan.hashing.quantity import dump
from reference_impl.plan.hashing.schemes import SCHEMES, Template, template_hash

PAIRS = template_pairs.read()


def hashes(template, schemes):
    return [template_hashes.of_clique(template, "", scheme) for scheme in schemes]


@pytest.mark.parametrize("pair", PAIRS.keyed, ids=lambda pair: pair.name)
def test_lists_without_an_order_differ_in_the_stored_form_only(pair):
    assert hashes(pair.before, CANONICAL) == hashes(pair.after, CANONICAL)
    assert not set(hashes(pair.before, LEGACY)) & set(hashes(pair.after, LEGACY))


@pytest.mark.parametrize(
    "pair", [*PAIRS.ordered, *PAIRS.open, *PAIRS.changed, *PAIRS.outside_pod_spec], ids=lambda pair: pair.name
)
def test_everything_else_is_another_template(pair):
    assert not set(hashes(pair.before, CANONICAL)) & set(hashes(pair.after, CANONICAL))


@pytest.mark.parametrize("pair", [*PAIRS.notations, *PAIRS.foreign_notations], ids=lambda pair: pair.name)
def test_another_notation_is_the_same_amount_with_another_hash(pair):
    (before, after) = (_request(template) for template in (pair.before, pair.after))
    assert amount(before) == amount(after) is not None
    assert dump(before) != dump(after)


@pytest.mark.parametrize("pair", PAIRS.notations, ids=lambda pair: pair.name)
def test_kubernetes_normalizes_notations(pair):
    assert _written(pair.before) == _written(pair.after) == _request(pair.before)


@pytest.mark.parametrize("pair", PAIRS.foreign_notations, ids=lambda pair: pair.name)
def test_kubernetes_distinguishes_foreign_notations(pair):
    assert _written(pair.before) != _written(pair.after)


def _written(template):
    return quantities.format_quantity(quantities.parse_json(_request(template)))


def _request(template):
    (container,) = template["spec"]["podSpec"]["containers"]
    (request,) = container["resources"]["requests"].values()
    return request


def test_no_name_ends_in_another_one():
    """An operator that looks up templates by the suffix of a name must fail START-009 only, not every profile with such
    names."""
    names = [pair.name for pair in (*PAIRS.keyed, *PAIRS.ordered, *PAIRS.open, *PAIRS.changed, *PAIRS.outside_pod_spec)]
    assert not [(name, other) for name in names for other in names if name != other and name.endswith(other)]


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_random_templates(seed: int):
    chance = random.Random(seed)
    spec = template_pairs.random_pod_spec(chance)
    before, shuffled, other = (
        template_pairs.template("a", variant)
        for variant in (spec, template_pairs.reordered_spec(chance, spec), template_pairs.changed_spec(chance, spec))
    )
    assert before != shuffled
    assert hashes(before, CANONICAL) == hashes(shuffled, CANONICAL)
    assert not set(hashes(before, CANONICAL)) & set(hashes(other, CANONICAL))
    for scheme in (*LEGACY, *CANONICAL):
        reference_scheme = SCHEMES[f"{'canonical' if scheme.canonical else 'legacy'}-{scheme.library}"]
        read_template = Template.of("a", other["labels"], None, other["spec"]["podSpec"], None)
        assert template_hashes.of_clique(other, "", scheme) == template_hash(read_template, reference_scheme)
