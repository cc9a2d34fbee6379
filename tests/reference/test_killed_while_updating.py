"""Tests that an operator can be killed during an update. It is killed after each of the update's writes and restarted.
The update ends as usual, no pod is replaced twice, and never more than one pod is missing at a time. See also
test_killed_at_any_write.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.grove import labels, updates, workloads
from conformance.grove.fields import label, number, text
from conformance.history.view import View
from conformance.suite.scenes.recorded import Span
from conformance.suite.scenes.scene import Step
from conformance.testing import predicates, replay
from reference_impl.api import models
from tests.reference.chaos import Chapter, CrashRun, Predicate, all_deaths
from tests.reference.test_killed_at_any_write import with_defaults

pytestmark = [pytest.mark.cluster, pytest.mark.thorough, pytest.mark.timeout(600)]

SIZES = {"s-0-a": 2, "s-0-g-0-b": 1, "s-0-g-0-c": 1}
"""All cliques of the set with their number of pods. The template of `c` does not change; its pod is replaced with the
group replica."""


def the_set(played: CrashRun, tag: str) -> dict[str, Any]:
    small = {
        "alone": 2,
        "aloneMinAvailable": 1,
        "groups": 1,
        "groupsMinAvailable": 1,
        "members": 1,
        "membersMinAvailable": 1,
    }
    manifest = workloads.load("kept", {"setName": "s", **small})
    for clique in manifest["spec"]["template"]["cliques"]:
        if clique["name"] != "c":
            clique["spec"]["podSpec"]["containers"][0]["image"] = f"registry.example/main:{tag}"
    return with_defaults(manifest, played, cliqueStartupType="CliqueStartupTypeAnyOrder")


async def make(played: CrashRun) -> None:
    await played.client.create(models.PODCLIQUESETS, the_set(played, "first"))


def deployed(view: View) -> bool:
    return number(view.get("podcliquesets", "s"), "status", "availableReplicas") == 1


async def update(played: CrashRun) -> None:
    played.notes["before"] = updates.generation_hash(played.history.view().get("podcliquesets", "s"))
    played.notes["since"] = Step.now("change", played.history)
    body = {"spec": {"template": {"cliques": the_set(played, "second")["spec"]["template"]["cliques"]}}}
    await played.client.patch(models.PODCLIQUESETS, played.namespace, "s", body)


def ended(played: CrashRun) -> Predicate:
    """Return a predicate that holds once the set and its parts report that they are updated."""

    def is_ended(view: View) -> bool:
        pcs = view.get("podcliquesets", "s")
        generation = updates.generation_hash(pcs)
        parts = [view.get("podcliques", "s-0-a"), view.get("podcliquescalinggroups", "s-0-g")]
        return (
            generation != played.notes["before"]
            and updates.has_ended(pcs)
            and number(pcs, "status", "updatedReplicas") == 1
            and number(pcs, "status", "observedGeneration") == number(pcs, "metadata", "generation")
            and all(updates.has_ended(part) and updates.selection(part) is None for part in parts)
            and all(text(part, "status", "currentPodCliqueSetGenerationHash") == generation for part in parts)
            and all(
                updates.reached_hashes(parts[0])[at] == hash for at, hash in updates.target_hashes(parts[0]).items()
            )
        )

    return is_ended


def check_pods_replaced_once(played: CrashRun) -> None:
    view = played.history.view()
    span = Span(played.history, played.notes["since"], Step.now("end", played.history))
    assert replay.creation_counts(span) == SIZES, f"{played.namespace}: created pods"
    assert max(replay.max_shortfalls(span, SIZES).values()) == 1, f"{played.namespace}: missing pods"
    for clique, size in SIZES.items():
        clique_pods = predicates.pods_of(view, clique)
        of = label(view.get("podcliques", clique), labels.TEMPLATE_HASH)
        assert [label(pod, labels.TEMPLATE_HASH) for pod in clique_pods] == [of] * size, (
            f"{played.namespace}: hashes of {clique}"
        )
        assert sorted(text(pod, "spec", "hostname") for pod in clique_pods) == [f"{clique}-{n}" for n in range(size)], (
            clique
        )
        images = {text(pod, "spec", "containers", 0, "image").rpartition(":")[2] for pod in clique_pods}
        assert images == {"1" if clique.endswith("c") else "second"}, f"{played.namespace}: images of {clique}"


STORY = (
    Chapter("it is made", make, lambda played: deployed, killed=False),
    Chapter("it is updated", update, ended, judge=check_pods_replaced_once),
)


def test_killing_the_operator_during_an_update_does_not_change_the_final_state(bare_cluster: Cluster) -> None:
    writes = asyncio.run(all_deaths(bare_cluster, "updated-operator", STORY, "operator"))
    assert writes["it is updated"] >= 25, writes  # otherwise nothing was tested
