"""The operator's informer caches, one informer for each kind, and the queries of the reconcilers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.objects import Object
from kube.resource import PODS, SERVICES
from reference_impl.api import kubernetes, models
from reference_impl.api.models import (
    ClusterTopologyBinding,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodGang,
    PodGangMap,
)
from reference_impl.api.pods import Pod, Service
from reference_impl.control.features import NO_FEATURES, Features
from reference_impl.plan import labels, ownership, part_errors
from reference_impl.plan.reconcile_error import ReconcileError

T = TypeVar("T", bound=Object)

BY_OWNER = "owner"
"""Index by the uid of the controller."""
BY_GANG = "gang"
"""Index by namespace/name of the gang that a label names."""
BY_OWNER_NAME = "kin"
"""Index by kind, namespace and name of the controller or, for an object without a controller, of the owner named by its
labels."""
BY_REPLICA = "replica"
"""Index by the key of the set's replica that an object belongs to. The key is `namespace/set-index`, which is also the
key of its PodGangMap."""


def object_key(namespace: str, name: str) -> str:
    """Return the key of an index: `namespace/name`."""
    return f"{namespace}/{name}"


def _by_owner(item: Object) -> Iterable[str]:
    controller = item.metadata.controller
    return (controller.uid,) if controller else ()


def owner_name_key(kind: str, namespace: str, name: str) -> str:
    """Return a key of the index KIN."""
    return f"{kind}/{namespace}/{name}"


def _by_owner_name(item: Object) -> Iterable[str]:
    meta, controller = item.metadata, item.metadata.controller
    if controller is not None:
        return (owner_name_key(controller.kind, meta.namespace, controller.name),)
    for kind, label in (
        ("PodClique", labels.PODCLIQUE),
        ("PodCliqueScalingGroup", labels.SCALING_GROUP),
        ("PodCliqueSet", labels.PART_OF),
    ):
        if name := meta.label(label):
            return (owner_name_key(kind, meta.namespace, name),)
    return ()


def replica_keys(item: Object) -> tuple[str, ...]:
    """Return the key of the set's replica that an object belongs to, if any. It is the key of the replica's
    PodGangMap."""
    pcs, index = item.metadata.label(labels.PART_OF), ownership.replica_index(item)
    return (object_key(item.metadata.namespace, f"{pcs}-{index}"),) if pcs and index else ()


def _by_label(label: str) -> Any:
    def index(item: Object) -> Iterable[str]:
        value = item.metadata.label(label)
        return (object_key(item.metadata.namespace, value),) if value else ()

    return index


class Cache:
    """All informer caches of the operator. Caches of kinds whose objects have the label for managed objects hold only
    labeled objects."""

    def __init__(self, client: Client, features: Features = NO_FEATURES) -> None:
        managed = labels.MANAGED_SELECTOR
        self.sets = Informer(client, models.PODCLIQUESETS, typed_decoder(PodCliqueSet))
        self.cliques = Informer(client, models.PODCLIQUES, typed_decoder(PodClique), label_selector=managed)
        self.groups = Informer(
            client, models.SCALING_GROUPS, typed_decoder(PodCliqueScalingGroup), label_selector=managed
        )
        self.gangs = Informer(client, models.PODGANGS, typed_decoder(PodGang), label_selector=managed)
        self.maps = Informer(client, models.PODGANGMAPS, typed_decoder(PodGangMap), label_selector=managed)
        self._serves_maps = features.maps
        self.pods = Informer(client, PODS, typed_decoder(Pod), label_selector=managed)
        self.services = Informer(client, SERVICES, typed_decoder(Service), label_selector=managed)
        self.accounts = Informer(
            client, kubernetes.SERVICE_ACCOUNTS, typed_decoder(kubernetes.ServiceAccount), label_selector=managed
        )
        self.secrets = Informer(client, kubernetes.SECRETS, typed_decoder(kubernetes.Secret), label_selector=managed)
        self.roles = Informer(client, kubernetes.ROLES, typed_decoder(kubernetes.Role), label_selector=managed)
        self.role_bindings = Informer(
            client, kubernetes.ROLE_BINDINGS, typed_decoder(kubernetes.RoleBinding), label_selector=managed
        )
        self.autoscalers = Informer(
            client, kubernetes.AUTOSCALERS, typed_decoder(kubernetes.Autoscaler), label_selector=managed
        )
        self.claims = Informer(client, kubernetes.CLAIMS, typed_decoder(kubernetes.Claim), label_selector=managed)
        self.claim_templates = Informer(
            client, kubernetes.CLAIM_TEMPLATES, typed_decoder(kubernetes.ResourceClaimTemplate)
        )
        self.topologies = Informer(client, models.TOPOLOGY_BINDINGS, typed_decoder(ClusterTopologyBinding))
        self.domains = Informer(
            client, kubernetes.COMPUTE_DOMAINS, typed_decoder(kubernetes.ComputeDomain), label_selector=managed
        )
        self.secondary: tuple[Informer[Any], ...] = (
            *(self.services, self.accounts, self.secrets, self.roles, self.role_bindings),
            *(self.autoscalers, self.claims),
            *((self.domains,) if features.mnnvl else ()),
        )
        """Secondary resources: objects of kinds other than Grove's own that a set needs. They are corrected after a
        change and recreated after a deletion."""
        self._optional_kinds = (self.claim_templates, *((self.topologies,) if features.topology else ()))
        grove_informers: tuple[Informer[Any], ...] = (
            self.cliques,
            self.groups,
            self.gangs,
            self.maps,
            self.pods,
            self.domains,
        )
        for informer in (*grove_informers, *self.secondary):
            informer.add_index(BY_OWNER, _by_owner)
            informer.add_index(BY_OWNER_NAME, _by_owner_name)
        self.pods.add_index(BY_GANG, _by_label(labels.PODGANG))
        self.cliques.add_index(BY_GANG, _by_label(labels.PODGANG))
        for part in (self.cliques, self.groups, self.gangs):
            part.add_index(BY_REPLICA, replica_keys)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """All informers."""
        grove_informers = (
            self.sets,
            self.cliques,
            self.groups,
            self.gangs,
            self.pods,
            *((self.maps,) if self._serves_maps else ()),
        )
        return (*grove_informers, *self.secondary, *self._optional_kinds)

    def child_finder(self, informer: Informer[T], owner: Object) -> Callable[[str], T | None]:
        """Return a function that finds the owner's children by name. The function does not find an object of another
        owner with that name (OBJ-123)."""

        def find(name: str) -> T | None:
            item = informer.get(owner.metadata.namespace, name)
            return item if item is not None and ownership.owns(owner, item) else None

        return find

    def pods_of(self, clique: PodClique) -> list[Pod]:
        """Return the pods that a clique controls, including terminating ones."""
        return self.pods.indexed(BY_OWNER, clique.metadata.uid)

    def errors_of_parts(self, pcs: PodCliqueSet) -> list[ReconcileError]:
        """Return the errors that the cliques and scaling groups of a set report."""
        replicas = (object_key(pcs.metadata.namespace, f"{pcs.metadata.name}-{n}") for n in range(pcs.spec.replicas))
        informers: tuple[Informer[Any], ...] = (self.cliques, self.groups)
        return part_errors.part_errors(
            pcs,
            (part for replica in replicas for informer in informers for part in informer.indexed(BY_REPLICA, replica)),
        )

    def has_members(self, namespace: str, gang: str) -> bool:
        """Return whether a gang has a pod that has a controller and is not terminating."""
        gang_pods: list[Pod] = self.pods.indexed(BY_GANG, object_key(namespace, gang))
        return any(not pod.terminating and pod.metadata.controller is not None for pod in gang_pods)

    def has_owner(self, pod: Pod) -> bool:
        """Return whether the clique that controls a pod exists and is not terminating."""
        if (owner := pod.metadata.controller) is None:
            return False
        clique = self.cliques.get(pod.metadata.namespace, owner.name)
        return clique is not None and ownership.owns(clique, pod) and clique.metadata.deletion_timestamp is None

    def count_scheduled_pods(self, namespace: str, clique: str) -> int:
        """Return the number of bound pods of a clique that are not terminating, or 0 if the clique does not exist."""
        item = self.cliques.get(namespace, clique)
        if item is None:
            return 0
        return sum(pod.scheduled and not pod.terminating for pod in self.pods_of(item))

    def claim_spec(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return the spec for claims of a ResourceClaimTemplate, or None if the template does not exist."""
        template = self.claim_templates.get(namespace, name)
        return None if template is None else dict(template.spec.get("spec") or {})

    def set_of(self, item: Object) -> PodCliqueSet | None:
        """Return the set that an object belongs to, or None if the set does not exist."""
        return self.sets.get(item.metadata.namespace, item.metadata.label(labels.PART_OF))
