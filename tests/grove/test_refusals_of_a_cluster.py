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
def test_a_rejection_caused_by_a_scene_is_judged(answer: str) -> None:
    assert not by_cluster(answer, {"house", "ResourceQuota", "LimitRange"}, SERVED)


@pytest.mark.parametrize("answer", [HOOK, POLICY, MUTATION])
def test_a_rejection_by_an_addition_of_the_implementation_is_judged(answer: str) -> None:
    assert not by_cluster(answer, (), ())


EXCEEDED = "exceeded quota: house, requested: pods=1"


@pytest.mark.parametrize(
    "answer",
    [
        f'admission webhook "mine.example.com" denied the request: {EXCEEDED}',
        f'admission webhook "mine.example.com" denied the request: pods "web-x" is forbidden: {EXCEEDED}',
        f"pods \"web-x\" is forbidden: ValidatingAdmissionPolicy 'mine' with binding 'mine' denied request: {EXCEEDED}",
        f'failed calling webhook "mine.example.com": failed to call webhook: Post "https://a/{EXCEEDED}": EOF',
        f'conversion webhook for grove.io/v1, Kind=PodCliqueSet failed: pods "web-x" is forbidden: {EXCEEDED}',
        f'PodCliqueSet.grove.io "web" is invalid: spec: Invalid value: "object": {EXCEEDED}',
        f'PodCliqueSet.grove.io "web" is invalid: spec: Invalid value: "object": pods "web-x" is forbidden: {EXCEEDED}',
        f'pods "{EXCEEDED}" not found',
        f'pods "a\\" is forbidden: {EXCEEDED}" not found',
        'admission webhook "mine.example.com" denied the request: violates PodSecurity "restricted:latest"',
        'admission webhook "mine.example.com" denied the request: maximum cpu usage per Container is 1',
    ],
)
def test_others_can_use_the_messages_of_the_cluster(answer: str) -> None:
    assert not by_cluster(answer, (), SERVED)


def test_an_operator_quotes_the_cluster() -> None:
    assert by_cluster(f"cannot create pods: {QUOTA}", (), (), quoted=True)
    assert not by_cluster(f"cannot create pods: {QUOTA}", (), ())


@pytest.mark.parametrize(
    "answer",
    [
        'pods "web-x" is forbidden: User "operator" cannot create resource "pods"',
        'Pod "web-x" is invalid: spec.containers[0].image: Required value',
        'pods "web-x" already exists',
    ],
)
def test_other_rejections_are_the_implementations(answer: str) -> None:
    assert not by_cluster(answer, (), SERVED)
