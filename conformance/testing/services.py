"""Headless Services, expected and observed."""

from __future__ import annotations

from conformance.grove.expected import Expected
from conformance.grove.fields import items, mapping, text, truth
from conformance.history.view import View
from conformance.testing.comparison import Comparison, of


def headless_services(wanted: Expected, view: View) -> Comparison:
    """Return the headless Services of a set, expected and observed."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for service in wanted.services.values():
        found = view.get("services", service.name)
        right[service.name] = {
            "clusterIP": "None",
            "selector": dict(service.selector),
            "publishNotReadyAddresses": service.publish_not_ready,
            "ports": [],
        }
        seen[service.name] = of(
            found,
            {
                "clusterIP": text(found, "spec", "clusterIP"),
                "selector": mapping(found, "spec", "selector"),
                "publishNotReadyAddresses": truth(found, "spec", "publishNotReadyAddresses") is True,
                "ports": items(found, "spec", "ports"),
            },
        )
    return right, seen
