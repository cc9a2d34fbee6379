"""Tests of the admission of coherent updates: defaults, rules for the set, and the block of scaling (spec COH-060 to
COH-066, COH-170 to COH-179, COH-Q31)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from reference_impl.admission import podcliqueset, server
from tests.reference import apiserver
from tests.reference.test_admission_hooks import Cluster, admission_response

Set = dict[str, Any]
PART_OF = "app.kubernetes.io/part-of"


def coherent_set(strategy: str | None = "Coherent", **clique: Any) -> Set:
    """Return a set with the standalone clique `f` and the scaling group `p`, which has the clique `m`."""

    def template(name: str, replicas: int, minimum: int, **fields: Any) -> Set:
        spec = {"roleName": name, "replicas": replicas, "minAvailable": minimum, "podSpec": {"containers": []}}
        return {"name": name, "spec": spec, **fields}

    spec: Set = {
        "template": {
            "cliques": [template("f", 5, 3, **clique), template("m", 1, 1)],
            "podCliqueScalingGroups": [{"name": "p", "cliqueNames": ["m"], "replicas": 4, "minAvailable": 2}],
        }
    }
    if strategy is not None:
        spec["updateStrategy"] = {"type": strategy}
    return {"kind": "PodCliqueSet", "metadata": {"name": "s", "namespace": "ns"}, "spec": spec}


def budgets(pcs: Set) -> list[Any]:
    template = pcs["spec"]["template"]
    parts = [*template["cliques"], *template["podCliqueScalingGroups"]]
    return [part.get("rollingUpdate", {}).get("maxUnavailable") for part in parts]


def errors(pcs: Set, before: Set | None = None) -> list[str]:
    """Return the field errors of a set. Schema errors are tested elsewhere."""
    old = None if before is None else apiserver.stored(before)
    verdict = podcliqueset.judge(apiserver.stored(pcs, old), old, apiserver.SETTINGS, apiserver.LEVELS)
    return [f"{error.path} {error.type.name.title()}" for error in verdict.errors]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("Coherent", [3, None, 2]),
        ("RollingRecreate", [1, None, 1]),
        ("OnDelete", [None, None, None]),
        (None, [None, None, None]),
    ],
)
def test_max_unavailable_is_defaulted(strategy: str | None, expected: list[int | None]) -> None:
    assert budgets(apiserver.stored(coherent_set(strategy))) == expected


def test_defaults_keep_given_values() -> None:
    given = coherent_set(rollingUpdate={"maxUnavailable": 4})
    assert budgets(apiserver.stored(given)) == [4, None, 2]
    assert budgets(apiserver.stored(coherent_set(rollingUpdate={}))) == [3, None, 2]


def test_a_write_to_an_older_set_adds_no_defaults() -> None:
    """Only sets that name the strategy get its fields (COH-278)."""
    for strategy in (None, "RollingRecreate"):
        old = coherent_set(strategy)
        assert budgets(apiserver.stored(coherent_set(strategy), old)) == [None, None, None]
    switched = apiserver.stored(coherent_set("Coherent"), coherent_set("RollingRecreate"))
    assert budgets(switched) == [3, None, 2]


def test_a_budget_below_the_minimum_is_rejected_only_for_coherent_updates() -> None:
    small = {"rollingUpdate": {"maxUnavailable": 2}}
    assert errors(coherent_set("Coherent", **small)) == [
        "spec.template.cliques[0].rollingUpdate.maxUnavailable Invalid"
    ]
    assert errors(coherent_set("RollingRecreate", **small)) == []
    group = coherent_set()
    group["spec"]["template"]["podCliqueScalingGroups"][0]["rollingUpdate"] = {"maxUnavailable": 1}
    assert errors(group) == ["spec.template.podCliqueScalingGroups[0].rollingUpdate.maxUnavailable Invalid"]


@pytest.mark.parametrize("strategy", ["Coherent", "RollingRecreate", "OnDelete", None])
def test_rules_apply_to_every_strategy(strategy: str | None) -> None:
    member = coherent_set(strategy)
    member["spec"]["template"]["cliques"][1]["rollingUpdate"] = {"maxUnavailable": 1}
    assert errors(member) == ["spec.template.cliques[1].rollingUpdate Forbidden"]
    zero_budget = coherent_set(strategy, rollingUpdate={"maxUnavailable": 0})
    assert errors(zero_budget) == ["spec.template.cliques[0].rollingUpdate.maxUnavailable Invalid"]
    assert errors(coherent_set(strategy, rollingUpdate={"maxUnavailable": 50})) == [], "more than there are (COH-066)"
    for deadline in ("soon", "0s", "-1m"):
        invalid = coherent_set(strategy, rollingUpdate={"maxUnavailable": 50, "progressDeadline": deadline})
        assert errors(invalid) == ["spec.template.cliques[0].rollingUpdate.progressDeadline Invalid"]
    valid_budget = {"maxUnavailable": 50, "progressDeadline": "1m30s"}
    assert errors(coherent_set(strategy, rollingUpdate=valid_budget)) == []


def test_a_defaulted_budget_must_be_set_before_a_strategy_switch() -> None:
    old = apiserver.stored(coherent_set("RollingRecreate"))
    new = copy.deepcopy(old)
    new["spec"]["updateStrategy"]["type"] = "Coherent"
    assert len(errors(new, old)) == 2


def test_gang_names_fit_into_labels() -> None:
    pcs = coherent_set()
    pcs["metadata"]["name"] = "s" * 41
    assert errors(pcs) == []
    pcs["spec"]["replicas"] = 11
    assert errors(pcs) == ["metadata.name Invalid"]
    pcs["spec"]["updateStrategy"]["type"] = "OnDelete"
    assert errors(pcs) == []


def test_gang_layout_annotations_are_validated() -> None:
    pcs = coherent_set()
    for layout, accepted in (("PerStep", True), ("SingleAnchor", True), ("Sideways", False)):
        pcs["metadata"]["annotations"] = {"grove.io/coherent-gang-layout": layout}
        assert (errors(pcs) == []) is accepted
    valid_set = coherent_set()
    assert errors(pcs, valid_set), "also if nothing else changes"
    pcs["spec"]["updateStrategy"]["coherent"] = {"gangLayout": "Sideways"}
    refused = [str(error) for error in apiserver.ask(pcs).errors]
    assert refused == ["spec.updateStrategy.coherent.gangLayout NotSupported"]


# -- scaling during an update ------------------------------------------------------------------------------------------


def updating_set(pcs: Set) -> Set:
    return {**pcs, "status": {"updateProgress": {"updateStartedAt": "2026-01-01T00:00:00Z"}}}


def updated_set(pcs: Set) -> Set:
    times = {"updateStartedAt": "2026-01-01T00:00:00Z", "updateEndedAt": "2026-01-01T00:01:00Z"}
    return {**pcs, "status": {"updateProgress": times}}


def scale(resource: str, name: str, before: int, after: int, sub_resource: str = "") -> Set:
    """Return a request that sets the replicas of an object of set `s`, either directly or through the scale
    subresource."""

    def side(replicas: int) -> Set:
        labels = {} if sub_resource else {"labels": {PART_OF: "s"}}
        return {"metadata": {"name": name, **labels}, "spec": {"replicas": replicas} if replicas else {}}

    return {
        "operation": "UPDATE",
        "resource": {"resource": resource},
        "subResource": sub_resource,
        "namespace": "ns",
        "name": name,
        "object": side(after),
        "oldObject": side(before),
    }


SCALE_REQUESTS = [
    ("podcliques", "s-0-f", ""),
    ("podcliques", "s-0-f", "scale"),
    ("podcliquescalinggroups", "s-1-p", ""),
    ("podcliquescalinggroups", "s-1-p", "scale"),
    ("podcliquesets", "s", "scale"),
]


async def scaling_response(request: Set, pcs: Set | None) -> Set:
    response: Set = await admission_response(
        "validate-scaling", request, Cluster(**({} if pcs is None else {"s": pcs}))
    )
    return response


@pytest.mark.parametrize(("resource", "name", "sub_resource"), SCALE_REQUESTS)
async def test_scaling_is_rejected_in_every_way(resource: str, name: str, sub_resource: str) -> None:
    for before, after in ((3, 4), (3, 0), (0, 1)):
        response = await scaling_response(
            scale(resource, name, before, after, sub_resource), updating_set(coherent_set())
        )
        assert response["status"]["code"] == 403
        message = response["status"]["message"]
        assert "a coherent update is in progress on PodCliqueSet ns/s" in message
        assert "until status.updateProgress.updateEndedAt is set" in message


@pytest.mark.parametrize(
    "state",
    [
        lambda: coherent_set(),
        lambda: updated_set(coherent_set()),
        lambda: updating_set(coherent_set("RollingRecreate")),
        lambda: updating_set(coherent_set(None)),
        lambda: {
            **updating_set(coherent_set()),
            "metadata": {"name": "s", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        },
        lambda: {"spec": 5},
        lambda: None,
    ],
    ids=["no update", "ended", "other strategy", "no strategy", "being deleted", "malformed", "no set"],
)
@pytest.mark.parametrize(("resource", "name", "sub_resource"), SCALE_REQUESTS)
async def test_scaling_is_allowed_without_a_coherent_update(
    resource: str, name: str, sub_resource: str, state: Callable[[], Set | None]
) -> None:
    assert (await scaling_response(scale(resource, name, 3, 4, sub_resource), state()))["allowed"]


async def test_writes_that_change_no_replicas_are_allowed() -> None:
    assert (await scaling_response(scale("podcliques", "s-0-f", 3, 3), updating_set(coherent_set())))["allowed"]
    unknown = scale("podcliques", "unknown", 3, 4, "scale")
    assert (await scaling_response(unknown, updating_set(coherent_set())))["allowed"]


def test_changes_to_the_replicas_of_the_set_are_rejected() -> None:
    old = apiserver.stored(coherent_set())
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 2
    assert errors(new, old) == []
    for state, expected in ((updating_set, ["spec.replicas Forbidden"]), (updated_set, [])):
        assert errors(state(new), state(old)) == expected
    new["spec"]["replicas"] = old["spec"]["replicas"]
    new["spec"]["template"]["cliques"][0]["labels"] = {"version": "2"}
    assert errors(updating_set(new), updating_set(old)) == [], "another change is welcome (COH-195)"


def test_the_webhook_covers_every_way_of_scaling() -> None:
    documents = yaml.safe_load_all((server.Path(server.__file__).parent / "webhooks.yaml").read_text())
    [hook] = [d["webhooks"][0] for d in documents if d["metadata"]["name"] == "scaling-validating-webhook"]
    [rule] = hook["rules"]
    assert {f"{resource}/{sub}".rstrip("/") for resource, _, sub in SCALE_REQUESTS} == set(rule["resources"])
    assert rule["operations"] == ["UPDATE"]
