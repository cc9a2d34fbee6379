"""Tests of request paths."""

from __future__ import annotations

import pytest

from kube.resource import NODES, PODS, Resource

GANGS = Resource("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang")


@pytest.mark.parametrize(
    ("resource", "place", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("",), "/api/v1/pods"),
        (PODS, ("ns",), "/api/v1/namespaces/ns/pods"),
        (PODS, ("ns", "a"), "/api/v1/namespaces/ns/pods/a"),
        (PODS, ("ns", "a", "binding"), "/api/v1/namespaces/ns/pods/a/binding"),
        (NODES, (), "/api/v1/nodes"),
        (NODES, (None, "n"), "/api/v1/nodes/n"),
        (NODES, ("", "n"), "/api/v1/nodes/n"),
        (NODES, ("ns", "n"), "/api/v1/nodes/n"),
        (GANGS, (), "/apis/scheduler.grove.io/v1alpha1/podgangs"),
        (GANGS, ("ns", "g", "status"), "/apis/scheduler.grove.io/v1alpha1/namespaces/ns/podgangs/g/status"),
    ],
)
def test_resources_have_the_expected_paths(resource: Resource, place: tuple[str, ...], path: str) -> None:
    assert resource.path(*place) == path


@pytest.mark.parametrize(
    ("resource", "place"), [(PODS, ("ns", "")), (PODS, (None, "a")), (PODS, ("", "a")), (NODES, (None, ""))]
)
def test_a_path_never_addresses_more_than_the_requested_object(resource: Resource, place: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="no path for name"):
        resource.path(*place)


def test_resources_have_the_expected_names() -> None:
    assert (GANGS.api_version, PODS.api_version) == ("scheduler.grove.io/v1alpha1", "v1")
    assert (str(GANGS), str(PODS)) == ("podgangs.scheduler.grove.io", "pods")
