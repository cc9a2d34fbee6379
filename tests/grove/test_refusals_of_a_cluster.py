"""Tests that the API server's messages show when a request was rejected by the cluster, for example because of a
quota."""

from __future__ import annotations

import pytest

from conformance.grove.refusals import by_cluster

QUOTA = 'pods "web-x" is forbidden: exceeded quota: house, requested: pods=1, used: pods=3, limited: pods=3'
UNKNOWN = 'pods "web-x" is forbidden: status unknown for quota: house, resources: pods'
FAILED = 'pods "web-x" is forbidden: failed quota: house: must specify limits.cpu for: web'
LIMITS = 'pods "web-x" is forbidden: [minimum memory usage per Container is 1Gi, but request is 64Mi]'
RATIO = 'pods "web-x" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4'
STANDARD = 'pods "web-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true (…)'
HOOK = 'admission webhook "registry.example.com" denied the request: only images of registry.example.com'
POLICY = "pods \"web-x\" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'images' denied request: no"
MUTATION = "policy 'images' with binding 'images' denied request: error applying patch: invalid ApplyConfiguration"
SERVED = {"registry.example.com", "images"}


@pytest.mark.parametrize("answer", [QUOTA, UNKNOWN, FAILED, LIMITS, RATIO, STANDARD, HOOK, POLICY, MUTATION])
def test_a_refusal_by_the_cluster_is_known(answer: str) -> None:
    assert by_cluster(answer, (), SERVED)


@pytest.mark.parametrize("answer", [QUOTA, UNKNOWN, FAILED, LIMITS, RATIO])
def test_a_refusal_that_a_scene_has_made_is_judged(answer: str) -> None:
    assert not by_cluster(answer, {"house", "ResourceQuota", "LimitRange"}, SERVED)


@pytest.mark.parametrize("answer", [HOOK, POLICY, MUTATION])
def test_a_refusal_by_what_came_with_the_implementation_is_judged(answer: str) -> None:
    assert not by_cluster(answer, (), ())


@pytest.mark.parametrize(
    "answer",
    [
        'pods "web-x" is forbidden: User "operator" cannot create resource "pods"',
        'Pod "web-x" is invalid: spec.containers[0].image: Required value',
        'pods "web-x" already exists',
    ],
)
def test_other_refusals_are_the_implementations_affair(answer: str) -> None:
    assert not by_cluster(answer, (), SERVED)
