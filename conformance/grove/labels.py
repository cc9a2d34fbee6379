"""Label keys, finalizers and the scheduling gate of the Grove API (docs/spec/api.md, section 3.2)."""

from __future__ import annotations

MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"

OPERATOR = "grove-operator"
"""The value of MANAGED_BY on every object that a Grove operator creates (OBJ-201)."""

CLIQUE = "grove.io/podclique"
GANG = "grove.io/podgang"
BASE_GANG = "grove.io/base-podgang"
EPOCH = "grove.io/epoch"
"""Label of a PodGangMap's gangs: the entry that the gang belongs to (GM-16)."""
GANG_ROLE, ANCHOR_ROLE, TAIL_ROLE, SCALE_OUT_ROLE = "grove.io/podgang-role", "Anchor", "Tail", "ScaleOut"
"""Label of a PodGangMap's gangs: the role of the gang's entry, and its values. Gangs with other roles depend on anchors
(GM-16, GM-31, GM-34)."""
SET_INDEX = "grove.io/podcliqueset-replica-index"
GROUP = "grove.io/podcliquescalinggroup"
GROUP_INDEX = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX = "grove.io/podclique-pod-index"
TEMPLATE_HASH = "grove.io/pod-template-hash"
"""Label of cliques and their pods: the template that they were created from. The contract does not define how the hash
is computed."""
GENERATION_HASH = "grove.io/podcliqueset-generation-hash"
"""Label of a PodGangMap's gangs: the generation of the gang's entry (GM-16, GM-17)."""
SCHEDULER = "grove.io/scheduler-name"
TOPOLOGY = "grove.io/topology-name"
"""Annotation of a gang: the ClusterTopologyBinding that translated its constraints (OBJ-452)."""
TRIGGER = "grove.io/reconcile-trigger"
"""Annotation of a set: changing it makes the operator reconcile the set (OBJ-233)."""
MNNVL = "grove.io/mnnvl-group"
"""Annotation, and label of a ComputeDomain: the group of cliques whose GPUs are linked (OBJ-841)."""
OWN_PREFIX = "grove.io/"
FOREIGN_PREFIX = "example.com/"
"""The prefix of scheduling gates that the suite adds on behalf of other clients."""

BY_HAND = "conformance.grove.io/scenario"
"""Label of gangs and pods that the suite creates instead of an operator: their scenario. Any client can write this
label, so only the suite's own requests identify the objects that it created (conformance/history/origins.py)."""

GATE = "grove.io/podgang-pending-creation"
"""The scheduling gate that every pod has until its gang is complete (GATE-01, OBJ-501)."""

SET_FINALIZER = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER = "grove.io/podclique.grove.io"
GROUP_FINALIZER = "grove.io/podcliquescalinggroup.grove.io"


class ComponentLabel:
    """Values of COMPONENT (OBJ-202)."""

    SERVICE = "pcs-headless-service"
    SCALING_GROUP = "pcs-podcliquescalinggroup"
    GANG = "podgang"
    STANDALONE_CLIQUE = "pcs-podclique"
    MEMBER_CLIQUE = "pcsg-podclique"
    SERVICE_ACCOUNT = "pod-service-account"
    ROLE = "pod-role"
    ROLE_BINDING = "pod-role-binding"
    TOKEN = "pod-sa-token-secret"  # noqa: S105  (a label value)
    AUTOSCALER = "pcs-hpa"
    CLAIM = "resource-claim"
    COMPUTE_DOMAIN = "pcs-computedomain"
