"""`docs/contract.md`: the exact names and values that an implementation writes, generated from the suite's oracle.

Pure. Names, labels, owners and variables are computed by the oracle for an example set. Conditions are a table in this
module, because the oracle computes them only while it judges.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from conformance.grove import (
    expected,
    expected_domains,
    expected_pods,
    expected_secondary,
    kinds,
    labels,
    names,
    workloads,
)
from conformance.grove import startup as start
from conformance.grove.fields import Document
from conformance.grove.labels import ComponentLabel

SET_NAME, NAMESPACE = "inference", "team-a"
CONDITIONS: Sequence[tuple[str, str, str, str, str]] = (
    ("PodClique", "PodCliqueScheduled", "True", "SufficientScheduledPods", "scheduled replicas reach `minAvailable`"),
    ("PodClique", "PodCliqueScheduled", "False", "InsufficientScheduledPods", "they do not"),
    ("PodClique", "MinAvailableBreached", "Unknown", "UpdateInProgress", "while it is being updated"),
    (
        *("PodClique", "MinAvailableBreached", "True", "ScheduledReplicasBelowMinAvailable"),
        "scheduled replicas are below `minAvailable`, 0 included",
    ),
    (
        *("PodClique", "MinAvailableBreached", "True", "InsufficientReadyPods"),
        "without the pods that crashed, or started and are not Ready, they are below it",
    ),
    ("PodClique", "MinAvailableBreached", "False", "SufficientReadyPods", "else"),
    ("PodCliqueScalingGroup", "MinAvailableBreached", "Unknown", "UpdateInProgress", "while it is being updated"),
    (
        *("PodCliqueScalingGroup", "MinAvailableBreached", "True"),
        "InsufficientAvailablePodCliqueScalingGroupReplicas",
        "replicas that are complete and have no breached clique are below `minAvailable`",
    ),
    (
        *("PodCliqueScalingGroup", "MinAvailableBreached", "False"),
        "SufficientAvailablePodCliqueScalingGroupReplicas",
        "else",
    ),
    (
        *("PodCliqueScalingGroup", "GangTerminationInProgress", "True", "GangTerminationActive"),
        "its cliques were deleted by a gang termination; removed once it is no longer breached",
    ),
    ("PodCliqueSet, …", "UpdateInProgress", "True", "Progressing", "an update is running (after v0.1.0-alpha.13)"),
    ("PodCliqueSet, …", "UpdateInProgress", "False", "NoActiveUpdate", "else"),
    (
        *("PodCliqueSet, …", "UpdateInProgress", "Unknown", "ProgressDeadlineExceeded"),
        "the update of a component has not moved within its `progressDeadline`",
    ),
    ("PodGang", "Initialized", "False", "PodGangPodsCreationPending", "a pod of the gang is missing"),
    ("PodGang", "Initialized", "True", "PodGangPodsCreated", "all pods of the gang exist and are listed"),
    (
        *("PodCliqueSet", "TopologyLevelsUnavailable", "Unknown", "TopologyAwareSchedulingDisabled"),
        "it has constraints, and the feature is off",
    ),
    ("PodCliqueSet", "TopologyLevelsUnavailable", "Unknown", "TopologyNameMissing", "no constraint names a binding"),
    ("PodCliqueSet", "TopologyLevelsUnavailable", "Unknown", "ClusterTopologyNotFound", "there is no such binding"),
    (
        *("PodCliqueSet", "TopologyLevelsUnavailable", "True", "ClusterTopologyLevelsUnavailable"),
        "a requested domain is not a level of the binding",
    ),
    ("PodCliqueSet", "TopologyLevelsUnavailable", "False", "AllClusterTopologyLevelsAvailable", "else"),
)
"""Kind, condition type, status, reason, and the circumstances (api.md COND-01 to COND-17)."""

KEYS: Mapping[str, str] = {
    labels.MANAGED_BY: f"`{labels.OPERATOR}` on every object of the operator, pods included",
    labels.PART_OF: "name of the set",
    labels.NAME: "name of the object (with `-` for `:`); gangs have none, pods have their clique's",
    labels.COMPONENT: "what the object is, one of "
    + ", ".join(f"`{value}`" for name, value in vars(ComponentLabel).items() if name.isupper())
    + "; a pod has its clique's",
    labels.SET_INDEX: "replica of the set, from 0",
    labels.GANG: "the gang of a clique and its pods",
    labels.BASE_GANG: "line `names` only, of cliques of scaled gangs and their pods: the gang that they wait for",
    labels.CLIQUE: "the clique of a pod",
    labels.POD_INDEX: "index of a pod in its clique, from 0",
    labels.GROUP: "the scaling group of a clique and its pods",
    labels.GROUP_INDEX: "replica of that group, from 0",
    labels.TEMPLATE_HASH: "of cliques and pods: the template that they were created from; its computation is open",
    labels.EPOCH: "line `maps` only, of a gang: the epoch of its entry",
    labels.GANG_ROLE: "line `maps` only, of a gang: the role of its entry, "
    + ", ".join(f"`{role}`" for role in (labels.ANCHOR_ROLE, labels.TAIL_ROLE, labels.SCALE_OUT_ROLE)),
    labels.GENERATION_HASH: "line `maps` only, of a gang: the generation of its entry",
    labels.SCHEDULER: "of a gang: the name of the scheduler that places it",
    labels.MNNVL: "of a ComputeDomain: its group (also an annotation, see below)",
}
ANNOTATIONS: Mapping[str, str] = {
    labels.TOPOLOGY: "of a gang: the ClusterTopologyBinding that its constraints were translated with",
    labels.TRIGGER: "of a set: any change of it makes the operator look at the set again",
    labels.MNNVL: "of a set, a clique or a scaling group: the group of cliques whose GPUs are linked",
}
KINDS = {resource.plural: resource.kind for resource in kinds.SECONDARY_RESOURCES}
FINALIZERS = {
    "PodCliqueSet": labels.SET_FINALIZER,
    "PodClique": labels.CLIQUE_FINALIZER,
    "PodCliqueScalingGroup": labels.GROUP_FINALIZER,
    "ComputeDomain": expected_domains.FINALIZER,
}


def page() -> str:
    """Return the whole page."""
    workload = workloads.load("disaggregated", {"setName": SET_NAME, "workers": 2, "workersMinAvailable": 1})
    objects = expected.expected(workload)
    pod = _last_pod(objects)
    tags = (f"`{labels.MANAGED_BY}: {labels.OPERATOR}`", f"`{labels.PART_OF}: {SET_NAME}`", f"`{labels.NAME}`")
    parts = [
        "# What to write, letter by letter",
        _prose(
            "For whoever writes an operator or a gang scheduler: the names, labels, finalizers, conditions and",
            "variables that the suite compares. *Generated by `make docs` out of the suite's oracle; do not edit.*",
            "What has to happen when is in [requirements.md](requirements.md); the schemas are the CRDs in",
            "[reference_impl/crds/](../reference_impl/crds/) and [fixtures/crds/](../fixtures/crds/).",
        ),
        "## The objects of one set",
        _prose(
            f"The workload `disaggregated` as `{SET_NAME}`, with two replicas of its scaling group `workers` and a",
            "minimum of one: its first replica belongs to the base gang, the second one is a scaled gang. Gangs have",
            "the names and labels of the line `names`; on the line `maps` the PodGangMap of the replica says which",
            f"gang holds what, and nothing has `{labels.BASE_GANG}`. Every object also carries {tags[0]}, {tags[1]}",
            f"and, but for gangs, {tags[2]}. Controllers are owner references with `controller` and",
            "`blockOwnerDeletion`. Checked by CORE-001 to CORE-005, GANG-001 and RES-001 to RES-003.",
        ),
        _table(("kind", "name", labels.COMPONENT, "controller", "further labels"), _objects(workload, objects)),
        "## Names",
        _table(("object", "name"), _names()),
        "## Labels",
        _table(("key", "value"), _code_rows(KEYS)),
        "## Annotations",
        _table(("key", "meaning"), _code_rows(ANNOTATIONS)),
        "## Finalizers",
        _table(("kind", "finalizer"), ((kind, f"`{text}`") for kind, text in FINALIZERS.items())),
        "## Pods",
        _prose(
            f"A pod has the labels of its clique, `{labels.CLIQUE}` and `{labels.POD_INDEX}`; the scheduling gate",
            f"`{labels.GATE}` until its gang is complete; `<its clique>-<index>` as hostname and the name of the",
            f"Service as subdomain. If its clique waits for others, it has the init container `{start.WAITER}`. Each",
            f"container gets these variables, as a literal or from a field; here those of `{pod.prefix}…` in the",
            f"namespace `{NAMESPACE}` (CORE-008, CORE-009). The `GROVE_PCSG_…` ones are for pods of a scaling group.",
        ),
        _table(("variable", "value"), ((f"`{key}`", f"`{value}`") for key, value in pod.environment.items())),
        "## Conditions",
        _prose(
            "Where a requirement compares a reason, it is one of these. On a PodGang the operator writes `Initialized`",
            "alone; `Scheduled`, `Ready`, `Unhealthy` and `DisruptionTarget` are the scheduler's.",
        ),
        _table(
            ("kind", "type", "status", "reason", "when"),
            ((kind, f"`{of}`", status, f"`{reason}`", condition) for kind, of, status, reason, condition in CONDITIONS),
        ),
        "## Your process",
        _prose(
            "It has the environment of the suite, without the variables that would direct a client to another cluster,",
            "and what `env` of the descriptor adds ([writing-an-implementation.md](writing-an-implementation.md)).",
            f"Operators that elect a leader do so by the Lease that `lease` there names, `{kinds.LEASE}` without it.",
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _objects(workload: Document, objects: expected.ExpectedObjects) -> Iterable[tuple[str, ...]]:
    rows: list[tuple[str, str, Mapping[str, str], expected.Owner]] = []
    set_owner = (expected_secondary.OWNER, SET_NAME)
    rows += [(KINDS[a.resource], a.name, a.labels, set_owner) for a in expected_secondary.secondary_resources(workload)]
    rows += [("Service", s.name, s.labels, s.owner) for s in objects.services.values()]
    rows += [("PodCliqueScalingGroup", g.name, g.labels, g.owner) for g in objects.groups.values()]
    rows += [("PodClique", c.name, c.labels, c.owner) for c in objects.cliques.values()]
    rows += [("PodGang", g.name, g.labels, g.owner) for g in objects.gangs.values()]
    common = {labels.MANAGED_BY, labels.PART_OF, labels.NAME, labels.COMPONENT}
    for kind, name, object_labels, owner in rows:
        other_labels = ", ".join(f"`{key}: {value}`" for key, value in object_labels.items() if key not in common)
        yield kind, f"`{name}`", f"`{object_labels[labels.COMPONENT]}`", f"{owner[0]} `{owner[1]}`", other_labels


def _names() -> Iterable[tuple[str, str]]:
    set_name, group, clique = "<set>", "<set>-<i>-<group>", "<clique>"
    i, j, min_available, scaled_index = 7, 8, 3, 5
    words = {i: "<i>", j: "<j>", scaled_index: "<j - minAvailable>"}  # Numbers stand for words while names are built.
    for description, name in (
        ("Service of a replica of the set", names.service(set_name, i)),
        ("PodGangMap of a replica of the set (line `maps`)", names.gang_map(set_name, i)),
        ("PodGang of an Anchor entry (line `maps`)", names.anchor_gang(set_name, i, "<epoch>")),
        (
            "PodGang of another entry, for replica j of a scaling group (line `maps`)",
            names.member_gang(set_name, i, "<epoch>", "<group>", j),
        ),
        ("base PodGang of a replica of the set (line `names`)", names.base_gang(set_name, i)),
        ("scaled PodGang of replica j of a scaling group (line `names`)", names.scaled_gang(group, j, min_available)),
        ("PodClique, standalone", names.clique(set_name, i, clique)),
        ("PodClique of replica j of a scaling group", names.member_clique(group, j, clique)),
        ("PodCliqueScalingGroup", names.scaling_group(set_name, i, "<group>")),
        ("Pod", "<its clique>-<five characters that the API server chooses>"),
        ("ServiceAccount", names.service_account(set_name)),
        ("Role, RoleBinding", names.role(set_name)),
        ("token Secret", names.token_secret(set_name)),
        ("HorizontalPodAutoscaler", "<its target>"),
        ("ResourceClaim of all replicas of an owner", names.shared_claim("<owner>", "<template>")),
        ("ResourceClaim of one replica", names.replica_claim("<owner>", i, "<template>")),
        ("ComputeDomain and its ResourceClaimTemplate", names.compute_domain(set_name, i, "<mnnvl group>")),
    ):
        for number, word in words.items():
            name = name.replace(f"-{number}", f"-{word}")
        yield description, f"`{name}`"


def _last_pod(objects: expected.ExpectedObjects) -> expected_pods.ExpectedPod:
    *_, clique = (clique for clique in objects.cliques.values() if clique.group)
    return expected_pods.pod(clique, SET_NAME, NAMESPACE, 0)


def _code_rows(rows: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return ((f"`{key}`", text) for key, text in rows.items())


def _prose(*lines: str) -> str:
    return textwrap.fill(" ".join(lines), 120, break_long_words=False, break_on_hyphens=False)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
