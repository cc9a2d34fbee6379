"""Tests that Roles are compared by what they allow, however their rules are written."""

from __future__ import annotations

from conformance.grove import expected_secondary
from conformance.grove.role_rules import permissions_of

SEEN = ["get", "list", "watch"]


def role(*rules: tuple[list[str], list[str], list[str], list[str]]) -> dict[str, object]:
    fields = ("apiGroups", "resources", "verbs", "resourceNames")
    return {"rules": [dict(zip(fields, rule, strict=True)) for rule in rules]}


def test_a_split_rule_allows_the_same():
    one = role(([""], ["pods", "pods/status"], SEEN, []))
    split = role(([""], ["pods/status"], ["watch", "get", "list"], []), ([""], ["pods"], SEEN, []))
    assert permissions_of(one) == permissions_of(split) == expected_secondary.PERMISSIONS
    with_names = role(([""], ["pods", "pods/status"], SEEN, []), ([""], ["pods"], ["get"], ["web-0"]))
    assert permissions_of(with_names) == permissions_of(one)


def test_more_and_fewer_permissions_are_distinguished():
    for other in (
        role(([""], ["pods"], SEEN, [])),
        role(([""], ["pods", "pods/status"], ["get"], [])),
        role(([""], ["pods", "pods/status"], SEEN, ["web-0"])),
        role((["apps"], ["pods", "pods/status"], SEEN, [])),
        role(([""], ["pods", "pods/status"], ["*"], [])),
    ):
        assert permissions_of(other) != expected_secondary.PERMISSIONS
    assert permissions_of(None) == permissions_of({"rules": [None, {"verbs": ["get"]}]}) == []


def test_permissions_are_named():
    assert permissions_of(role((["apps"], ["deployments"], ["get"], ["web"]))) == ['get deployments.apps "web"']
