"""Labels, annotations, finalizers and the scheduling gate (spec LBL-01 to LBL-20, OBJ-201 to OBJ-216, GATE-01)."""

from __future__ import annotations

OWNED_PREFIX = "grove.io/"
GATE = "grove.io/podgang-pending-creation"

MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
MANAGER = "grove-operator"

PODCLIQUE = "grove.io/podclique"
PODGANG = "grove.io/podgang"
BASE_PODGANG = "grove.io/base-podgang"
REPLICA_INDEX = "grove.io/podcliqueset-replica-index"
SCALING_GROUP = "grove.io/podcliquescalinggroup"
SCALING_GROUP_REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX = "grove.io/podclique-pod-index"
TEMPLATE_HASH = "grove.io/pod-template-hash"
GENERATION_HASH = "grove.io/podcliqueset-generation-hash"
"""Label of a gang on the release line `maps` with the generation hash of its pods (GM-16, GM-17)."""
EPOCH = "grove.io/epoch"
"""Label of a gang on the release line `maps` with the epoch of its entry (GM-16)."""
GANG_ROLE = "grove.io/podgang-role"
"""Label of a gang on the release line `maps` with the role of its entry (GM-16)."""
SCHEDULER_NAME = "grove.io/scheduler-name"

REPLACES = "grove.io/replaces-pod"
"""Annotation of a pod that names the pod that it replaces in an update (specific to the reference; upstream counts pods
instead, see CHG-DF06)."""
TOPOLOGY_NAME = "grove.io/topology-name"
GANG_LAYOUT = "grove.io/coherent-gang-layout"
"""Annotation of a set that replaces `spec.updateStrategy.coherent.gangLayout` for CRDs without this field (specific to
the reference)."""
MNNVL_GROUP = "grove.io/mnnvl-group"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

INIT_CONTAINER = "grove-initc"
"""The init container that waits for other cliques. The operator does not add claims and environment variables to it, as
it does to the template's containers."""

SET_FINALIZER = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER = "grove.io/podclique.grove.io"
SCALING_GROUP_FINALIZER = "grove.io/podcliquescalinggroup.grove.io"
COMPUTE_DOMAIN_FINALIZER = "grove.io/computedomain-finalizer"

MANAGED_SELECTOR = f"{MANAGED_BY}={MANAGER}"


def common_labels(pcs: str, component: str, name: str | None = None) -> dict[str, str]:
    """Return the labels of every managed object. Gangs have no `name` (OBJ-203)."""
    labels = {MANAGED_BY: MANAGER, PART_OF: pcs, COMPONENT: component}
    return labels if name is None else {**labels, NAME: name}


def mirrored_metadata(
    grove_entries: dict[str, str], existing: dict[str, str] | None, of_set: dict[str, str] | None
) -> dict[str, str]:
    """Return the labels or annotations of a gang: existing entries with Grove's prefix, entries of the set without this
    prefix, and then `grove_entries` (OBJ-230). The annotation of `kubectl apply` is not copied."""
    owned = {key: value for key, value in (existing or {}).items() if key.startswith(OWNED_PREFIX)}
    copied = {
        key: value for key, value in (of_set or {}).items() if not key.startswith(OWNED_PREFIX) and key != LAST_APPLIED
    }
    return {**owned, **copied, **grove_entries}
