"""Tests of a set's objects: names, labels, owners, contents of pods."""

from __future__ import annotations

import msgspec
import pytest

from reference_impl.api.models import PodCliqueScalingGroup
from reference_impl.api.pods import Pod
from reference_impl.plan import children, labels, pods
from tests.reference.examples import balanced, clique, disaggregated, members, pod, standalone


def scaling_group(pcs):
    manifest = children.scaling_group(pcs, 0, children.group_configs(pcs)[0])
    manifest["metadata"]["uid"] = "u-group"
    return msgspec.convert(manifest, PodCliqueScalingGroup)


def by_name(pcs):
    return {m["metadata"]["name"]: m for m in members(pcs, scaling_group(pcs))}


def test_only_cliques_outside_scaling_groups_are_standalone():
    assert [t.name for t in children.standalone_templates(disaggregated())] == ["router"]


def test_member_cliques_name_their_group_replica_and_their_gang():
    cliques = by_name(disaggregated())
    assert list(cliques) == [f"llm-0-workers-{j}-{name}" for j in range(3) for name in ("prefill", "decode")]
    base, scaled = cliques["llm-0-workers-0-decode"], cliques["llm-0-workers-2-decode"]
    assert base["metadata"]["labels"][labels.PODGANG] == "llm-0"
    assert labels.BASE_PODGANG not in base["metadata"]["labels"]
    assert scaled["metadata"]["labels"][labels.PODGANG] == "llm-0-workers-1"
    assert scaled["metadata"]["labels"][labels.BASE_PODGANG] == "llm-0"
    assert scaled["metadata"]["ownerReferences"][0]["uid"] == "u-group"


def test_a_template_is_found_by_its_full_name():
    """Matching by suffix would find `worker` for `prefill-worker` (OBJ-125)."""
    pcs = disaggregated()
    pcs.spec.template.cliques[0].name = "fill"
    assert children.find_template(pcs, "prefill").name == "prefill"


def test_grove_labels_override_labels_of_the_template():
    pcs = disaggregated()
    pcs.spec.template.cliques[0].labels = {"role": "x", labels.PART_OF: "somebody-else"}
    clique_labels = standalone(pcs, 0, pcs.spec.template.cliques[0])["metadata"]["labels"]
    assert clique_labels["role"] == "x" and clique_labels[labels.PART_OF] == "llm"


def test_grove_variables_come_first_and_replace_variables_of_the_same_name():
    spec = {"containers": [{"name": "c", "env": [{"name": "A", "value": "own"}, {"name": "B", "value": "$(A)"}]}]}
    result = children.with_environment(spec, [{"name": "A", "value": "grove"}])
    assert result["containers"][0]["env"] == [{"name": "A", "value": "grove"}, {"name": "B", "value": "$(A)"}]
    assert spec["containers"][0]["env"][0]["value"] == "own", "the template must not change"


def test_a_pod_has_its_gate_hostname_and_variables_in_order():
    pcs = disaggregated()
    owner = clique(by_name(pcs)["llm-0-workers-1-prefill"])
    manifest = pods.PodBuilder(owner, "gang").pod(1, "llm-0")
    spec = manifest["spec"]
    assert spec["schedulingGates"] == [{"name": labels.GATE}]
    assert (spec["hostname"], spec["subdomain"]) == ("llm-0-workers-1-prefill-1", "llm-0")
    assert [v["name"] for v in spec["containers"][0]["env"]] == [
        "GROVE_PCS_NAME",
        "GROVE_PCS_INDEX",
        "GROVE_PCLQ_NAME",
        "GROVE_HEADLESS_SERVICE",
        "GROVE_PCLQ_POD_INDEX",
        "GROVE_PCSG_NAME",
        "GROVE_PCSG_TEMPLATE_NUM_PODS",
        "GROVE_PCSG_INDEX",
        "OWN",
    ]
    assert spec["containers"][0]["env"][6]["value"] == "3"


@pytest.fixture
def router():
    pcs = disaggregated()
    return clique(standalone(pcs, 0, pcs.spec.template.cliques[0]))


def test_missing_pods_take_the_lowest_free_indices(router):
    router.spec.replicas = 4
    missing, surplus = balanced(router, [pod(router, 1), pod(router, 5)])
    assert missing == [0, 2] and not surplus


def test_terminating_pods_are_replaced_at_once(router):
    missing, surplus = balanced(router, [pod(router, 0, terminating=True), pod(router, 1)])
    assert missing == [0] and not surplus


def test_finished_pods_are_deleted_and_replaced(router):
    dead = pod(router, 0, phase="Failed")
    missing, surplus = balanced(router, [dead, pod(router, 1)])
    assert missing == [0] and surplus == [dead]


def test_surplus_pods_that_serve_least_are_deleted_first(router):
    ready, bound, gated = pod(router, 2, node="n", ready=True), pod(router, 0, node="n"), pod(router, 1, gated=True)
    assert balanced(router, [ready, bound, gated]) == ([], [gated])
    router.spec.replicas = 1
    assert balanced(router, [ready, bound, gated]) == ([], [gated, bound])


def test_the_first_difference_decides_which_surplus_pod_is_deleted(router):
    """Bound, Running, Ready, current and older pods stay, in this order of importance. Among equal pods, the pod with
    the lower index stays (CHG-SC-36)."""

    def numbered(index: int, second: int | None, *, old: bool = False, **options: object) -> Pod:
        result = pod(router, index, **options)
        result.metadata.creation_timestamp = None if second is None else f"2026-01-01T00:00:{second:02}Z"
        if old:
            result.metadata.labels[labels.TEMPLATE_HASH] = "old"
        return result

    running = {"node": "n", "phase": "Running"}
    expected = [
        numbered(0, 0, phase="Running", ready=True),  # not bound, although everything else is good
        numbered(1, 0, node="n", ready=True),
        numbered(2, 0, node="n", phase="Unknown", ready=True),
        numbered(3, 0, **running),
        numbered(4, 0, **running, ready=True, old=True),
        numbered(5, None, **running, ready=True),
        numbered(6, 9, **running, ready=True),
        numbered(9, 8, **running, ready=True),
        numbered(8, 8, **running, ready=True),
        numbered(7, 1, **running, ready=True),
    ]
    router.spec.replicas = 0
    assert balanced(router, expected[::-1]) == ([], expected)
