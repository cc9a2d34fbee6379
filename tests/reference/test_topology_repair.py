"""Tests of the admission verdicts on an update that adds the missing binding name to a stored set (VTC-30, DFT-24)."""

from __future__ import annotations

import pytest

from reference_impl.admission.rules import topology_updates
from reference_impl.api.models import Pack, TopologyConstraint
from tests.reference.examples import disaggregated

UNNAMED = TopologyConstraint(pack_domain="rack")
CHANGED = 'topology constraint cannot be changed from required="rack" preferred="" to required="rack" preferred="host"'
CLIQUE = "PodClique 'router'"
CASES = {
    "the name": (TopologyConstraint(topology_name="t", pack_domain="rack"), "", ""),
    "the name and pack.required": (
        TopologyConstraint(topology_name="t", pack=Pack(required="rack")),
        'topologyName cannot be changed from "" to "t"',
        f"{CLIQUE} topology constraint topologyName cannot be changed from '' to 't'",
    ),
    "the name and pack.preferred": (
        TopologyConstraint(topology_name="t", pack_domain="rack", pack=Pack(preferred="host")),
        f"PodCliqueSet {CHANGED}",
        f"{CLIQUE} {CHANGED}",
    ),
}


@pytest.mark.parametrize(("constraint", "of_set", "of_clique"), CASES.values(), ids=CASES)
def test_the_message_names_the_change_that_is_not_permitted(
    constraint: TopologyConstraint, of_set: str, of_clique: str
):
    old, new = disaggregated(), disaggregated()
    old.spec.template.topology_constraint = old.spec.template.cliques[0].topology_constraint = UNNAMED
    new.spec.template.topology_constraint = new.spec.template.cliques[0].topology_constraint = constraint
    violations = topology_updates.violations(new, old)
    expected = [detail for detail in (of_set, of_clique) if detail]
    assert [violation.detail for violation in violations] == expected


def test_removing_a_constraint_without_a_name_is_reported_as_removal():
    """The message does not call it changed to an empty constraint, because a legacy constraint has no name that could
    differ."""
    old, new = disaggregated(), disaggregated()
    old.spec.template.topology_constraint = UNNAMED
    [error] = topology_updates.violations(new, old)
    assert error.detail == "PodCliqueSet topology constraint cannot be removed after creation"


def test_adding_a_constraint_without_a_name_is_reported_as_addition():
    old, new = disaggregated(), disaggregated()
    new.spec.template.topology_constraint = UNNAMED
    [error] = topology_updates.violations(new, old)
    assert error.detail == "PodCliqueSet topology constraint cannot be added after creation"
