"""Tests of the statuses that a migration writes. Each current hash of another scheme is replaced with our hash, and
nothing else changes."""

from __future__ import annotations

import msgspec
import pytest

from reference_impl.api.models import (
    CliqueUpdateProgress,
    GroupUpdateProgress,
    PodCliqueSetStatus,
    PodCliqueStatus,
    PodSelection,
    ScalingGroupStatus,
    SetUpdateProgress,
)
from reference_impl.plan import migration
from reference_impl.plan.hashing.schemes import SCHEMES
from reference_impl.plan.hashing.window import CurrentHashes, Window

LEGACY = SCHEMES["legacy-0.34"]


def current_hashes(written: str, legacy_hash: str) -> CurrentHashes:
    return CurrentHashes(written, lambda: {legacy_hash: LEGACY})


TEMPLATE = current_hashes("ours", "legacy")
WINDOW = Window(current_hashes("our-generation", "legacy-generation"), {"a": TEMPLATE})
STORED = [("legacy-generation", "our-generation"), ("our-generation", "our-generation"), ("old", "old"), (None, None)]


@pytest.mark.parametrize(("stored", "expected"), STORED)
def test_the_status_of_a_set_is_rewritten(stored, expected):
    progress = SetUpdateProgress(update_started_at="2026-01-01T00:00:00Z")
    status = PodCliqueSetStatus(current_generation_hash=stored, replicas=3, update_progress=progress)
    migrated = migration.set_status(WINDOW, status)
    assert migrated == msgspec.structs.replace(status, current_generation_hash=expected)


@pytest.mark.parametrize(("stored", "expected"), STORED)
def test_the_status_of_a_group_is_rewritten(stored, expected):
    progress = GroupUpdateProgress(update_started_at="now", pod_clique_set_generation_hash=stored or "")
    status = ScalingGroupStatus(current_pod_clique_set_generation_hash=stored, update_progress=progress)
    migrated = migration.group_status(WINDOW, status)
    assert migrated.current_pod_clique_set_generation_hash == expected
    assert migrated.update_progress == msgspec.structs.replace(progress, pod_clique_set_generation_hash=expected or "")


def test_the_status_of_a_clique_is_rewritten_during_an_update():
    progress = CliqueUpdateProgress(
        update_started_at="now",
        pod_clique_set_generation_hash="legacy-generation",
        pod_template_hash="legacy",
        ready_pods_selected_to_update=PodSelection(current="a-0"),
    )
    status = PodCliqueStatus(
        current_pod_template_hash="old", current_pod_clique_set_generation_hash="old", update_progress=progress
    )
    migrated = migration.clique_status(WINDOW, TEMPLATE, status)
    target = msgspec.structs.replace(
        progress, pod_clique_set_generation_hash="our-generation", pod_template_hash="ours"
    )
    assert migrated == msgspec.structs.replace(status, update_progress=target)


@pytest.mark.parametrize(("template", "expected"), [("legacy", "ours"), ("ours", "ours"), ("old", "old"), (None, None)])
def test_the_status_of_a_clique_at_rest_is_rewritten(template, expected):
    status = PodCliqueStatus(
        current_pod_template_hash=template, current_pod_clique_set_generation_hash="legacy-generation"
    )
    migrated = migration.clique_status(WINDOW, TEMPLATE, status)
    assert migrated.current_pod_template_hash == expected
    assert migrated.current_pod_clique_set_generation_hash == "our-generation"
    assert migrated.update_progress is None


def test_hashes_in_our_scheme_are_unchanged():
    status = PodCliqueStatus(
        current_pod_template_hash="ours", current_pod_clique_set_generation_hash="our-generation", ready_replicas=2
    )
    assert migration.clique_status(WINDOW, TEMPLATE, status) == status
