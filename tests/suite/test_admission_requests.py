"""Tests of requests in the profile admission: manifests are sent unchanged, and a request is retried until accepted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from conformance.grove.admission import manifests
from conformance.implementation import loading
from conformance.implementation.additions import with_additions
from conformance.implementation.fields import Metadata
from conformance.suite.scenes.dry_run import DryRun, Reply
from conformance.tests.admission import judging, test_authorizer
from kube.resource import PODS

WORDS = {"binding": "top", "other": "bottom", "scheduler": "kai-scheduler"}
QUEUE = Metadata({"kai.scheduler/queue": "conformance"})
QUEUED = msgspec.structs.replace(loading.load("reference"), pods=QUEUE, podgangs=QUEUE)
"""An implementation whose scheduler needs a queue on all pods and PodGangs."""
REFUSED, ALLOWED = Reply(403, message="no"), Reply(200)
DRY_ONLY = Reply(200, message="a dry run was refused (403: no)")


@pytest.mark.parametrize(
    "manifest", [pytest.param(m, id=m.name) for m in manifests.load() if m.requirement == "ADM-040"]
)
def test_a_manifest_about_queues_has_no_queue_of_the_descriptor(manifest: manifests.Manifest) -> None:
    api: Any = SimpleNamespace(of_object=lambda obj: PODS)
    case: Any = SimpleNamespace(dry_run=DryRun(api, "ns", partial(with_additions, QUEUED)))
    stored: Any = None
    body = judging._request(case, manifest, WORDS, stored).body
    body["metadata"].pop("namespace")
    assert body == manifest.object


class Env:
    """An environment whose dry runs return the `replies` in order."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.dry_run, self.waits = self, 0
        self._replies = list(replies)

    def ask(self, request: object) -> Reply:
        return self._replies.pop(0)

    def quiet(self, *_: object, **options: object) -> None:
        self.waits += 1


def test_an_authorizer_has_time_to_learn_that_the_protection_is_off() -> None:
    env: Any = Env([REFUSED, DRY_ONLY, ALLOWED, REFUSED])
    request: Any = None
    assert test_authorizer._ask_until_accepted(env, request) == "accepted" and env.waits == 2


def test_a_protection_that_stays_on_is_reported() -> None:
    env: Any = Env([REFUSED] * (test_authorizer.MAX_ATTEMPTS + 1))
    request: Any = None
    assert test_authorizer._ask_until_accepted(env, request) == "403: no" and env.waits == test_authorizer.MAX_ATTEMPTS
