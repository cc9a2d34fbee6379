"""Expected and observed headless Services."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import ExpectedObjects
from conformance.grove.fields import label, mapping, name, text, truth
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.comparison import Comparison, value_or_absent


def headless_services(expected: ExpectedObjects, view: View) -> Comparison:
    """Return the expected and observed headless Services of a set, with the pods that they select."""
    pods = predicates.pods_by_clique(view, expected.cliques.values())
    expected_services: dict[str, object] = {}
    observed: dict[str, object] = {}
    for service in expected.services.values():
        service_object = view.get("services", service.name)
        expected_services[service.name] = {
            "clusterIP": "None",
            "pods": sorted(
                name(pod)
                for clique in expected.cliques.values()
                if str(clique.set_index) == service.labels[labels.SET_INDEX]
                for pod in pods[clique.name]
            ),
            "publishNotReadyAddresses": service.publish_not_ready,
        }
        selector = mapping(service_object, "spec", "selector")
        observed[service.name] = value_or_absent(
            service_object,
            {
                "clusterIP": text(service_object, "spec", "clusterIP"),
                "pods": sorted(
                    name(pod)
                    for clique_pods in pods.values()
                    for pod in clique_pods
                    if selector and all(label(pod, key) == value for key, value in selector.items())
                ),
                "publishNotReadyAddresses": truth(service_object, "spec", "publishNotReadyAddresses") is True,
            },
        )
    return expected_services, observed
