"""What the profile admission asks for: manifests as they stand in their files."""

from __future__ import annotations

import dataclasses
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.grove.admission import manifests
from conformance.implementation import loading
from conformance.implementation.additions import with_additions
from conformance.implementation.descriptor import Metadata
from conformance.suite.scenes.dry_run import DryRun
from conformance.tests.admission import judging
from kube.resource import PODS

WORDS = {"binding": "top", "other": "bottom", "scheduler": "kai-scheduler"}
QUEUE = Metadata({"kai.scheduler/queue": "conformance"})
QUEUED = dataclasses.replace(loading.load("reference"), pods=QUEUE, podgangs=QUEUE)
"""An implementation whose scheduler needs a queue for everything that the suite creates."""


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
