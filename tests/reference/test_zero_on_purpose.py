"""Tests that gangs on the release line `names` omit cliques and groups that are scaled to zero; on the release line
`maps`, layouts do not contain them anyway."""

from __future__ import annotations

from reference_impl.plan import components
from reference_impl.plan.lines import derived_layout


def test_a_base_gang_omits_idle_parts_but_not_parts_scaled_below_their_minimum() -> None:
    idle_components = [components.clique("a", 0, 1), components.clique("b", 2, 2), components.group("g", 0, 2)]
    base, *scaled_gangs = derived_layout(idle_components, "1")
    assert (dict(base.cliques), dict(base.groups)) == ({"b": 2}, {})
    assert all(entry.is_empty for entry in scaled_gangs)
    base_gang, *_ = derived_layout([components.clique("a", 1, 2), components.group("g", 1, 2)], "1")
    assert (dict(base_gang.cliques), dict(base_gang.groups)) == ({"a": 1}, {"g": (0, 1)})
    assert all(entry.is_empty for entry in derived_layout([components.clique("a", 0, 1)], "1"))
