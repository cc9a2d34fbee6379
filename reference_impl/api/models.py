"""The Grove kinds as typed models (docs/spec/api.md, sections 1 and 2). Decoding ignores unknown fields and accepts
missing ones; the constraints of the CRDs are in the `crd(…)` annotations."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from kube.objects import ObjectMeta
from kube.resource import Resource
from reference_impl.api.base import Counter, Domain, Int, Long, Model, Required, Time
from reference_impl.api.base import PodSpec as PodSpec
from reference_impl.api.base import to_json as to_json
from reference_impl.api.coherent import CoherentOptions, RollingUpdate
from reference_impl.api.coherent import GangLayout as GangLayout
from reference_impl.api.coherent import MapEntry as MapEntry
from reference_impl.api.coherent import PodGangMap as PodGangMap
from reference_impl.api.coherent import PodGangMapSpec as PodGangMapSpec
from reference_impl.api.schema import crd

GROUP = "grove.io"
SCHEDULER_GROUP = "scheduler.grove.io"

PODCLIQUESETS = Resource(GROUP, "v1alpha1", "podcliquesets", "PodCliqueSet")
PODCLIQUES = Resource(GROUP, "v1alpha1", "podcliques", "PodClique")
SCALING_GROUPS = Resource(GROUP, "v1alpha1", "podcliquescalinggroups", "PodCliqueScalingGroup")
TOPOLOGY_BINDINGS = Resource(GROUP, "v1alpha1", "clustertopologybindings", "ClusterTopologyBinding", namespaced=False)
PODGANGMAPS = Resource(GROUP, "v1alpha1", "podgangmaps", "PodGangMap")
PODGANGS = Resource(SCHEDULER_GROUP, "v1alpha1", "podgangs", "PodGang")


class Condition(Model):
    """`metav1.Condition`."""

    type: Annotated[str, crd(required=True, maxLength=316)] = ""
    status: Annotated[str, crd(required=True, enum=["True", "False", "Unknown"])] = "Unknown"
    reason: Annotated[
        str, crd(required=True, minLength=1, maxLength=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = ""
    message: Annotated[str, crd(required=True, maxLength=32768)] = ""
    last_transition_time: Annotated[str, crd(required=True, format="date-time")] = ""
    observed_generation: Annotated[int, crd(format="int64", minimum=0)] | None = None


class LastError(Model):
    """The error of the last reconcile. It stays until a reconcile succeeds."""

    code: Annotated[str, Required] = ""
    description: Annotated[str, Required] = ""
    observed_at: Annotated[str, crd(required=True, format="date-time")] = ""


class StartupType(StrEnum):
    """The order in which the cliques of a replica start (API-007)."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    EXPLICIT = "CliqueStartupTypeExplicit"


class UpdateStrategyType(StrEnum):
    """The strategies for replacing pods in an update (API-004, COH-060)."""

    COHERENT = "Coherent"
    ROLLING_RECREATE = "RollingRecreate"
    ON_DELETE = "OnDelete"


class Scope(StrEnum):
    """The scope of a shared resource claim (API-014)."""

    ALL_REPLICAS = "AllReplicas"
    PER_REPLICA = "PerReplica"


class Pack(Model):
    """The topology domains into which the pods of a gang or of a part of it are packed (API-061)."""

    required: Domain | None = None
    preferred: Domain | None = None


class TopologyConstraint(Model):
    """The topology domains into which pods are packed (API-060 to API-064)."""

    topology_name: str | None = None
    pack: Annotated[
        Pack | None,
        crd(
            rules=[
                {
                    "rule": "has(self.required) || has(self.preferred)",
                    "message": "pack must specify at least one of required or preferred",
                    "reason": "FieldValueRequired",
                }
            ]
        ),
    ] = None
    pack_domain: Domain | None = None


_Topology = Annotated[
    TopologyConstraint | None,  # outside the union, or msgspec would ignore the constraints
    crd(
        rules=[
            {
                "rule": "has(self.pack) || has(self.packDomain)",
                "message": "topologyConstraint must specify pack or deprecated packDomain",
                "reason": "FieldValueRequired",
                "fieldPath": ".pack",
            },
            {
                "rule": "!has(self.packDomain) || !has(self.pack) || !has(self.pack.required)",
                "message": "must not set both pack.required and deprecated packDomain",
                "reason": "FieldValueInvalid",
                "fieldPath": ".pack.required",
            },
        ]
    ),
]


class AutoScaling(Model):
    """Bounds and metrics of a HorizontalPodAutoscaler (API-076 to API-078)."""

    min_replicas: Int | None = None
    max_replicas: Annotated[int, crd(required=True, format="int32")] = 0
    metrics: list[Annotated[dict[str, Any], crd(openapi="io.k8s.api.autoscaling.v2.MetricSpec")]] | None = None


class SharingFilter(Model):
    """The cliques and scaling groups that share a resource claim of the set (API-014)."""

    child_clique_names: list[str] | None = None
    child_scaling_group_names: list[str] | None = None


class GroupSharingFilter(Model):
    """The cliques that share a resource claim of a scaling group (API-023)."""

    child_clique_names: list[str] | None = None


class CliqueSharing(Model):
    """`resourceSharing[]` of a clique (API-028)."""

    name: Annotated[str, Required] = ""
    namespace: str | None = None
    scope: Annotated[Scope, Required] = Scope.ALL_REPLICAS


class GroupSharing(CliqueSharing):
    """`resourceSharing[]` of a scaling group (API-023)."""

    filter: GroupSharingFilter | None = None


class SetSharing(CliqueSharing):
    """`resourceSharing[]` of the set (API-014)."""

    filter: SharingFilter | None = None


class ClaimTemplate(Model):
    """A ResourceClaimTemplate of the set (API-013)."""

    name: Annotated[str, Required] = ""
    template_spec: Annotated[
        dict[str, Any], crd(required=True, openapi="io.k8s.api.resource.v1.ResourceClaimTemplateSpec")
    ] = {}


class PodCliqueSpec(Model):
    """`spec` of a PodClique (API-070 to API-078). `replicas` is the number of pods, `min_available` the minimum for the
    gang."""

    role_name: Annotated[str, Required] = ""
    pod_spec: Annotated[PodSpec, crd(required=True, openapi="io.k8s.api.core.v1.PodSpec")] = {}
    replicas: Annotated[int, crd(required=True, format="int32")] = 1
    min_available: Int | None = None
    starts_after: list[str] | None = None
    auto_scaling_config: AutoScaling | None = None

    @property
    def minimum(self) -> int:
        """`minAvailable`, or `replicas` if no webhook has set the default (DEF-11)."""
        return self.replicas if self.min_available is None else self.min_available


class CliqueTemplate(Model):
    """`spec.template.cliques[]`."""

    name: Annotated[str, Required] = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    topology_constraint: _Topology = None
    resource_sharing: list[CliqueSharing] | None = None
    rolling_update: RollingUpdate | None = None
    spec: Annotated[PodCliqueSpec, Required] = msgspec.field(default_factory=PodCliqueSpec)


class ScalingGroupConfig(Model):
    """`spec.template.podCliqueScalingGroups[]`: cliques that are scaled together."""

    name: Annotated[str, Required] = ""
    clique_names: Annotated[list[str], Required] = []
    annotations: dict[str, str] | None = None
    replicas: Annotated[int, crd(default=1, format="int32")] = 1
    min_available: Annotated[int, crd(default=1, format="int32")] = 1
    scale_config: AutoScaling | None = None
    resource_sharing: list[GroupSharing] | None = None
    rolling_update: RollingUpdate | None = None
    topology_constraint: _Topology = None


class HeadlessService(Model):
    """`spec.template.headlessServiceConfig`."""

    publish_not_ready_addresses: Annotated[bool, crd(required=True, default=True)] = True


class SetTemplate(Model):
    """`spec.template` of a PodCliqueSet."""

    cliques: Annotated[list[CliqueTemplate], crd(required=True, list_map="name")] = []
    clique_startup_type: Annotated[StartupType, crd(default=StartupType.ANY_ORDER)] = StartupType.ANY_ORDER
    priority_class_name: str | None = None
    headless_service_config: HeadlessService | None = None
    topology_constraint: _Topology = None
    termination_delay: str | None = None
    resource_claim_templates: list[ClaimTemplate] | None = None
    resource_sharing: list[SetSharing] | None = None
    pod_clique_scaling_groups: list[ScalingGroupConfig] | None = None


class UpdateStrategy(Model):
    """`spec.updateStrategy` (API-004)."""

    type: Annotated[UpdateStrategyType, crd(default=UpdateStrategyType.ROLLING_RECREATE)] = (
        UpdateStrategyType.ROLLING_RECREATE
    )
    coherent: CoherentOptions | None = None


class PodCliqueSetSpec(Model):
    """`spec` of a PodCliqueSet."""

    replicas: Annotated[int, crd(default=0, format="int32")] = 0
    update_strategy: UpdateStrategy | None = None
    template: Annotated[SetTemplate, Required] = msgspec.field(default_factory=SetTemplate)


class PodGangStatusEntry(Model):
    """An entry of `status.podGangStatuses` (API-046). The operator never writes it; the field is kept for
    compatibility."""

    name: Annotated[str, Required] = ""
    phase: Annotated[str, crd(required=True, enum=["Pending", "Starting", "Running", "Failed", "Succeeded"])] = ""
    conditions: list[Condition] | None = None


class ReplicaUpdate(Model):
    """The update progress of one replica (API-050). Only coherent updates write the last two fields (GM-153)."""

    replica_index: Annotated[int, crd(required=True, format="int32")] = 0
    update_started_at: Time | None = None
    update_ended_at: Time | None = None
    in_flight_epochs: list[str] | None = None
    message: str | None = None


class SetUpdateProgress(Model):
    """`status.updateProgress` of a PodCliqueSet (API-048 to API-051). The last two fields are the scope of a coherent
    update (GM-153)."""

    update_started_at: Time | None = None
    update_ended_at: Time | None = None
    updated_pod_cliques_count: Annotated[int, crd(default=0, format="int32")] = 0
    total_pod_cliques_count: Annotated[int, crd(default=0, format="int32")] = 0
    updated_pod_clique_scaling_groups_count: Annotated[int, crd(default=0, format="int32")] = 0
    total_pod_clique_scaling_groups_count: Annotated[int, crd(default=0, format="int32")] = 0
    currently_updating: list[ReplicaUpdate] | None = None
    in_scope_standalone_pod_cliques: list[str] | None = None
    in_scope_pod_clique_scaling_groups: list[str] | None = None


class PodCliqueSetStatus(Model):
    """`status` of a PodCliqueSet (API-040 to API-051)."""

    observed_generation: Long | None = None
    conditions: list[Condition] | None = None
    last_errors: list[LastError] | None = None
    replicas: Int | None = None
    updated_replicas: Counter = 0
    available_replicas: Counter = 0
    hpa_pod_selector: str | None = None
    pod_gang_statuses: list[PodGangStatusEntry] | None = None
    current_generation_hash: str | None = None
    update_progress: SetUpdateProgress | None = None


class PodCliqueSet(Model):
    """A PodCliqueSet (KIND-01)."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[PodCliqueSetSpec, Required] = msgspec.field(default_factory=PodCliqueSetSpec)
    status: PodCliqueSetStatus | None = None


class PodSelection(Model):
    """The pod that is being replaced, and the pods that have been replaced."""

    current: Annotated[str, Required] = ""
    completed: list[str] | None = None


class CliqueUpdateProgress(Model):
    """`status.updateProgress` of a PodClique (API-082 to API-084)."""

    update_started_at: Time | None = None
    update_ended_at: Time | None = None
    pod_clique_set_generation_hash: Annotated[str, Required] = ""
    pod_template_hash: Annotated[str, Required] = ""
    ready_pods_selected_to_update: PodSelection | None = None


class PodCliqueStatus(Model):
    """`status` of a PodClique (API-080 to API-084)."""

    observed_generation: Long | None = None
    last_errors: list[LastError] | None = None
    replicas: Int | None = None
    ready_replicas: Counter = 0
    updated_replicas: Counter = 0
    schedule_gated_replicas: Counter = 0
    scheduled_replicas: Counter = 0
    hpa_pod_selector: str | None = None
    conditions: list[Condition] | None = None
    current_pod_clique_set_generation_hash: str | None = None
    current_pod_template_hash: str | None = None
    update_progress: CliqueUpdateProgress | None = None


class PodClique(Model):
    """A PodClique."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[PodCliqueSpec, Required] = msgspec.field(default_factory=PodCliqueSpec)
    status: PodCliqueStatus | None = None


class ScalingGroupSpec(Model):
    """`spec` of a PodCliqueScalingGroup (API-090 to API-092)."""

    replicas: Annotated[int, crd(required=True, default=1, format="int32")] = 1
    min_available: Annotated[int, crd(default=1, format="int32")] = 1
    clique_names: Annotated[list[str], Required] = []


class ReplicaSelection(Model):
    """The scaling group replica that is being replaced, and the replicas that have been replaced."""

    current: Annotated[int, crd(required=True, format="int32")] = 0
    completed: list[Int] | None = None


class GroupUpdateProgress(Model):
    """`status.updateProgress` of a PodCliqueScalingGroup (API-094)."""

    update_started_at: Annotated[str, crd(required=True, format="date-time")] = ""
    update_ended_at: Time | None = None
    pod_clique_set_generation_hash: Annotated[str, Required] = ""
    updated_pod_cliques_count: Annotated[int, crd(default=0, format="int32")] = 0
    total_pod_cliques_count: Annotated[int, crd(default=0, format="int32")] = 0
    ready_replica_indices_selected_to_update: ReplicaSelection | None = None


class ScalingGroupStatus(Model):
    """`status` of a PodCliqueScalingGroup (API-093)."""

    observed_generation: Long | None = None
    last_errors: list[LastError] | None = None
    replicas: Int | None = None
    scheduled_replicas: Counter = 0
    available_replicas: Counter = 0
    updated_replicas: Counter = 0
    selector: str | None = None
    conditions: list[Condition] | None = None
    current_pod_clique_set_generation_hash: str | None = None
    update_progress: GroupUpdateProgress | None = None


class PodCliqueScalingGroup(Model):
    """A PodCliqueScalingGroup."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[ScalingGroupSpec, Required] = msgspec.field(default_factory=ScalingGroupSpec)
    status: ScalingGroupStatus | None = None


class TopologyLevel(Model):
    """A level of a ClusterTopologyBinding: a domain and its node label key (API-101, API-102)."""

    domain: Annotated[str, crd(required=True, minLength=1, maxLength=63, pattern="^[a-z][a-z0-9-]*$")] = ""
    key: Annotated[
        str,
        crd(
            required=True,
            minLength=1,
            maxLength=63,
            pattern="^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
        ),
    ] = ""


class SchedulerTopology(Model):
    """A reference to a scheduler's own topology resource for the binding."""

    scheduler_name: Annotated[str, Required] = ""
    topology_reference: Annotated[str, Required] = ""


class TopologyBindingSpec(Model):
    """`spec` of a ClusterTopologyBinding."""

    levels: Annotated[list[TopologyLevel], crd(required=True, minItems=1)] = []
    scheduler_topology_bindings: list[SchedulerTopology] | None = None


class SchedulerTopologyStatus(SchedulerTopology):
    """Whether a scheduler's own topology resource agrees with the binding."""

    in_sync: Annotated[bool, Required] = False
    scheduler_backend_topology_observed_generation: Long | None = None
    message: str | None = None


class TopologyBindingStatus(Model):
    """`status` of a ClusterTopologyBinding."""

    observed_generation: Long | None = None
    conditions: list[Condition] | None = None
    scheduler_topology_statuses: list[SchedulerTopologyStatus] | None = None


class ClusterTopologyBinding(Model):
    """A ClusterTopologyBinding."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[TopologyBindingSpec, Required] = msgspec.field(default_factory=TopologyBindingSpec)
    status: TopologyBindingStatus | None = None


class PackConstraint(Model):
    """The topology domains to pack into, as node label keys instead of domain names (API-112)."""

    required: str | None = None
    preferred: str | None = None


class GangTopology(Model):
    """The topology constraint of a gang, or of a part of it."""

    pack_constraint: PackConstraint | None = None


class NamespacedName(Model):
    """A reference to a pod."""

    namespace: Annotated[str, Required] = ""
    name: Annotated[str, Required] = ""


class PodGroup(Model):
    """A clique in a gang: at least `min_replicas` of the referenced pods must be placed (GS-F02 to GS-F04)."""

    name: Annotated[str, Required] = ""
    min_replicas: Annotated[int, crd(required=True, format="int32")] = 0
    pod_references: Annotated[list[NamespacedName], Required] = []
    topology_constraint: GangTopology | None = None


class TopologyGroup(Model):
    """PodGroups that are packed together (OBJ-115)."""

    name: Annotated[str, Required] = ""
    pod_group_names: Annotated[list[str], Required] = []
    topology_constraint: GangTopology | None = None


class PodGangSpec(Model):
    """`spec` of a PodGang (API-110 to API-115)."""

    podgroups: Annotated[list[PodGroup], Required] = []
    topology_constraint: GangTopology | None = None
    topology_constraint_group_configs: list[TopologyGroup] | None = None
    priority_class_name: str | None = None
    reuse_reservation_ref: NamespacedName | None = None


class PodGangStatus(Model):
    """`status` of a PodGang (API-116, API-117). The last two fields are additions of the reference (COH-086,
    COH-087)."""

    phase: Annotated[str, Required] = ""
    conditions: list[Condition] | None = None
    placement_score: Annotated[float, crd(format="double")] | None = None
    last_scheduled: Time | None = None
    last_ready: Time | None = None


class PodGang(Model):
    """A PodGang."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[PodGangSpec, Required] = msgspec.field(default_factory=PodGangSpec)
    status: PodGangStatus | None = None
