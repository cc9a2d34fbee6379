"""What a migration writes: our hash in the place of each that is current and not ours, and nothing else."""

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
from reference_impl.plan.hashing.window import Known, Window

LEGACY = SCHEMES["legacy-0.34"]


def known(ours: str, legacy: str) -> Known:
    return Known(ours, lambda: {legacy: LEGACY})


TEMPLATE = known("ours", "legacy")
WINDOW = Window(known("our-generation", "legacy-generation"), {"a": TEMPLATE})
STORED = [("legacy-generation", "our-generation"), ("our-generation", "our-generation"), ("old", "old"), (None, None)]


@pytest.mark.parametrize(("stored", "wanted"), STORED)
def test_of_a_set(stored, wanted):
    progress = SetUpdateProgress(update_started_at="2026-01-01T00:00:00Z")
    status = PodCliqueSetStatus(current_generation_hash=stored, replicas=3, update_progress=progress)
    found = migration.set_status(WINDOW, status)
    assert found == msgspec.structs.replace(status, current_generation_hash=wanted)


@pytest.mark.parametrize(("stored", "wanted"), STORED)
def test_of_a_group(stored, wanted):
    progress = GroupUpdateProgress(update_started_at="now", pod_clique_set_generation_hash=stored or "")
    status = ScalingGroupStatus(current_pod_clique_set_generation_hash=stored, update_progress=progress)
    found = migration.group_status(WINDOW, status)
    assert found.current_pod_clique_set_generation_hash == wanted
    assert found.update_progress == msgspec.structs.replace(progress, pod_clique_set_generation_hash=wanted or "")


def test_of_a_clique_in_the_middle_of_an_update():
    progress = CliqueUpdateProgress(
        update_started_at="now",
        pod_clique_set_generation_hash="legacy-generation",
        pod_template_hash="legacy",
        ready_pods_selected_to_update=PodSelection(current="a-0"),
    )
    status = PodCliqueStatus(
        current_pod_template_hash="old", current_pod_clique_set_generation_hash="old", update_progress=progress
    )
    found = migration.clique_status(WINDOW, TEMPLATE, status)
    target = msgspec.structs.replace(
        progress, pod_clique_set_generation_hash="our-generation", pod_template_hash="ours"
    )
    assert found == msgspec.structs.replace(status, update_progress=target)


@pytest.mark.parametrize(("template", "wanted"), [("legacy", "ours"), ("ours", "ours"), ("old", "old"), (None, None)])
def test_of_a_clique_at_rest(template, wanted):
    status = PodCliqueStatus(
        current_pod_template_hash=template, current_pod_clique_set_generation_hash="legacy-generation"
    )
    found = migration.clique_status(WINDOW, TEMPLATE, status)
    assert found.current_pod_template_hash == wanted
    assert found.current_pod_clique_set_generation_hash == "our-generation"
    assert found.update_progress is None


def test_what_is_ours_is_left_as_it_is():
    status = PodCliqueStatus(
        current_pod_template_hash="ours", current_pod_clique_set_generation_hash="our-generation", ready_replicas=2
    )
    assert migration.clique_status(WINDOW, TEMPLATE, status) == status
