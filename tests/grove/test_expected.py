"""Tests of the oracle with the example of docs/spec/objects.md: set `p` with the standalone clique `fe` and the scaling
group `sg` (replicas 3, minAvailable 1) of the cliques `ld` and `wk`."""

from __future__ import annotations

from conformance.grove import expected_pods, labels
from conformance.grove.expected import expected
from conformance.grove.fields import pruned


def clique(name, replicas=1, **spec):
    return {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": {"containers": []}, **spec}}


def workload(replicas=1, **group):
    return {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {
            "replicas": replicas,
            "template": {
                "cliques": [clique("fe", 2, minAvailable=1), clique("ld"), clique("wk", 3)],
                "podCliqueScalingGroups": [{"name": "sg", "cliqueNames": ["ld", "wk"], "replicas": 3, **group}],
            },
        },
    }


def test_names_are_those_of_the_worked_example():
    objects = expected(workload())
    assert set(objects.services) == {"p-0"}
    assert set(objects.groups) == {"p-0-sg"}
    members = {f"p-0-sg-{j}-{name}" for j in range(3) for name in ("ld", "wk")}
    assert set(objects.cliques) == {"p-0-fe"} | members
    assert set(objects.gangs) == {"p-0", "p-0-sg-0", "p-0-sg-1"}


def test_the_base_gang_contains_standalone_cliques_and_the_replicas_below_min_available():
    objects = expected(workload(minAvailable=2))
    assert objects.gangs["p-0"].minimums == {
        "p-0-fe": 1,
        "p-0-sg-0-ld": 1,
        "p-0-sg-0-wk": 3,
        "p-0-sg-1-ld": 1,
        "p-0-sg-1-wk": 3,
    }
    assert objects.gangs["p-0-sg-0"].minimums == {"p-0-sg-2-ld": 1, "p-0-sg-2-wk": 3}
    assert [gang.name for gang in objects.base_gangs] == ["p-0"]


def test_only_scaled_cliques_name_a_base_gang():
    objects = expected(workload())
    assert labels.BASE_GANG not in objects.cliques["p-0-sg-0-wk"].labels
    scaled = objects.cliques["p-0-sg-2-wk"].labels
    assert scaled[labels.BASE_GANG] == "p-0"
    assert scaled[labels.GANG] == "p-0-sg-1"
    assert scaled[labels.GROUP] == "p-0-sg"
    assert scaled[labels.GROUP_INDEX] == "2"


def test_owners_lead_up_to_the_set():
    objects = expected(workload())
    assert objects.cliques["p-0-fe"].owner == ("PodCliqueSet", "p")
    assert objects.cliques["p-0-sg-1-ld"].owner == ("PodCliqueScalingGroup", "p-0-sg")
    assert objects.groups["p-0-sg"].owner == ("PodCliqueSet", "p")
    assert objects.gangs["p-0-sg-1"].owner == ("PodCliqueSet", "p")


def test_every_replica_of_the_set_has_its_own_objects():
    objects = expected(workload(replicas=2))
    assert set(objects.services) == {"p-0", "p-1"}
    assert objects.cliques["p-1-sg-2-wk"].base_gang == "p-1"
    assert objects.pods == 2 * (2 + 3 * 4)


def test_a_set_without_replicas_has_nothing_and_needs_none():
    bare = workload()
    del bare["spec"]["replicas"]
    assert expected(bare).cliques == {}


def test_min_available_is_the_replicas_unless_given():
    objects = expected(workload())
    assert objects.cliques["p-0-sg-0-wk"].template.min_available == 3
    assert objects.cliques["p-0-fe"].template.min_available == 1


def test_template_labels_lose_against_grove_s_own():
    manifest = workload()
    manifest["spec"]["template"]["cliques"][0]["labels"] = {"tier": "front", labels.GANG: "mine"}
    clique_labels = expected(manifest).cliques["p-0-fe"].labels
    assert clique_labels["tier"] == "front"
    assert clique_labels[labels.GANG] == "p-0"


def test_a_member_s_pod():
    pod = expected_pods.pod(expected(workload()).cliques["p-0-sg-1-wk"], "p", "n", 2)
    assert pod.hostname == "p-0-sg-1-wk-2"
    assert pod.subdomain == "p-0"
    assert pod.labels[labels.POD_INDEX] == "2"
    assert list(pod.environment.items()) == [
        ("GROVE_PCS_NAME", "p"),
        ("GROVE_PCS_INDEX", "0"),
        ("GROVE_PCLQ_NAME", "p-0-sg-1-wk"),
        ("GROVE_HEADLESS_SERVICE", "p-0.n.svc.cluster.local"),
        ("GROVE_PCLQ_POD_INDEX", "2"),
        ("GROVE_PCSG_NAME", "p-0-sg"),
        ("GROVE_PCSG_TEMPLATE_NUM_PODS", "4"),
        ("GROVE_PCSG_INDEX", "1"),
    ]


def test_pruned_ignores_additions_and_shows_missing_fields():
    desired = {"containers": [{"name": "a", "args": ["x"]}], "tolerations": [{"key": "pool"}]}
    actual = {
        "containers": [{"name": "side"}, {"name": "a", "args": ["x"], "image": "i"}],
        "tolerations": [{"key": "other"}, {"key": "pool", "effect": "NoSchedule"}],
        "dnsPolicy": "ClusterFirst",
    }
    assert pruned(desired, actual) == desired
    assert pruned(desired, {"containers": []}) == {"containers": [None], "tolerations": None}
    assert pruned(desired, "nonsense") != desired
