"""Headless Services, expected and observed."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import Expected
from conformance.grove.fields import label, mapping, name, text, truth
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.comparison import Comparison, of


def headless_services(wanted: Expected, view: View) -> Comparison:
    """Return the headless Services of a set, expected and observed, with the pods that they select."""
    pods = predicates.by_clique(view, wanted.cliques.values())
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for service in wanted.services.values():
        found = view.get("services", service.name)
        right[service.name] = {
            "clusterIP": "None",
            "pods": sorted(
                name(pod)
                for clique in wanted.cliques.values()
                if str(clique.set_index) == service.labels[labels.SET_INDEX]
                for pod in pods[clique.name]
            ),
            "publishNotReadyAddresses": service.publish_not_ready,
        }
        selector = mapping(found, "spec", "selector")
        seen[service.name] = of(
            found,
            {
                "clusterIP": text(found, "spec", "clusterIP"),
                "pods": sorted(
                    name(pod)
                    for own in pods.values()
                    for pod in own
                    if selector and all(label(pod, key) == value for key, value in selector.items())
                ),
                "publishNotReadyAddresses": truth(found, "spec", "publishNotReadyAddresses") is True,
            },
        )
    return right, seen
