"""A miniature cluster for updates. The planners of all levels take their steps in turn, and their decisions are carried
out at once. It has no API server, no events, and no time other than a count of seconds."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import msgspec

from kube.objects import ObjectMeta
from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet, UpdateStrategy, UpdateStrategyType
from reference_impl.api.pods import Pod, PodCondition
from reference_impl.plan import (
    children,
    labels,
    names,
    pods,
    revisions,
    statuses,
    template_drift,
    timestamps,
    update_clique_pods,
    update_group_replicas,
    update_progress,
    update_set_replicas,
)
from tests.reference.examples import balanced, disaggregated, members, pod, standalone


class Rolling:
    """A set from `disaggregated` (router standalone; prefill and decode in the group workers), at rest."""

    def __init__(self, replicas: int = 1, group_replicas: int = 2, min_available: int = 1) -> None:
        self.pcs = disaggregated(replicas, group_replicas, min_available)
        self.second, self._born = 0, 0
        self.cliques: dict[str, PodClique] = {}
        self.groups: dict[str, PodCliqueScalingGroup] = {}
        self.pods: dict[str, Pod] = {}
        self.held_cliques: set[str] = set()
        """Cliques whose new pods do not become Ready."""
        self.deleted_pods: list[str] = []
        """Names of pods in the order of their deletion."""
        self.settle()

    # -- changes -------------------------------------------------------------------------------------------------

    def change(self, *cliques: str, image: str = "y") -> None:
        self.pcs = copy.deepcopy(self.pcs)
        for template in self.pcs.spec.template.cliques:
            if template.name in cliques:
                template.spec.pod_spec = {"containers": [{"name": "main", "image": image}]}

    def strategy(self, kind: UpdateStrategyType) -> None:
        self.pcs.spec.update_strategy = UpdateStrategy(type=kind)

    def unready(self, *names_of_pods: str) -> None:
        for name in names_of_pods:
            self.pods[name].status.conditions = []

    # -- state ---------------------------------------------------------------------------------------------------

    def of(self, clique: str) -> list[Pod]:
        """Return the pods of a clique by index."""
        owner = self.cliques.get(clique)
        clique_pods = [
            p for p in self.pods.values() if owner is not None and p.metadata.controller.uid == owner.metadata.uid
        ]
        return sorted(clique_pods, key=pods.index_of)

    def names(self, clique: str) -> list[str]:
        return [member.metadata.name for member in self.of(clique)]

    def outdated(self) -> list[str]:
        """Return the names of the pods that do not have the current template."""
        pod_names = []
        for name, clique in self.cliques.items():
            current = update_progress.revision(self.pcs, clique)
            pod_names += [
                p.metadata.name for p in self.of(name) if current and update_clique_pods.is_outdated(p, current)
            ]
        return pod_names

    @property
    def progress(self):
        return self.pcs.status.update_progress

    def ended(self) -> bool:
        return self.progress is not None and self.progress.update_ended_at is not None

    # -- time ----------------------------------------------------------------------------------------------------

    def settle(self, passes: int = 200) -> None:
        """Advance time until nothing changes any more."""
        for _ in range(passes):
            before = self.picture()
            self.tick()
            if self.picture() == before:
                return
        raise AssertionError("it does not come to rest")

    def picture(self) -> bytes:
        return msgspec.json.encode([self.pcs.status, self.cliques, self.groups, self.pods])

    def tick(self) -> None:
        """Advance by one second. Each controller reconciles once, and pods that are at least a second old and not held
        become Ready."""
        self.second += 1
        now = timestamps.format_timestamp(1_800_000_000 + self.second)
        self.set_pass(now)
        for group in list(self.groups.values()):
            self.group_pass(group, now)
        for clique in list(self.cliques.values()):
            self.clique_pass(clique, now)
        for member in self.pods.values():
            owner = member.metadata.controller.name
            is_young = member.metadata.creation_timestamp == now
            if not member.status.conditions and owner not in self.held_cliques and not is_young:
                member.status.conditions, member.status.phase = [PodCondition("Ready", "True")], "Running"
                member.spec.node_name = "n"
        for clique in self.cliques.values():
            clique.status = statuses.clique_status(clique, self.of(clique.metadata.name), self.pcs, now)
        for group in self.groups.values():
            group.status = statuses.group_status(group, self.pcs, self.cliques.get, now)

    def set_pass(self, now: str) -> None:
        revision = revisions.set_revision(self.pcs)
        observed = update_set_replicas.ObservedSet(
            self.pcs, self.cliques.get, self.groups.get, lambda _: self.cliques.get
        )
        progress = update_set_replicas.progress(self.pcs, revision, observed, now)
        self.pcs.status = statuses.set_status(
            self.pcs, revision.hash, self.cliques.get, self.groups.get, True, progress
        )
        expected_names = set()
        for index in range(self.pcs.spec.replicas):
            for template in children.standalone_templates(self.pcs):
                self.follow(standalone(self.pcs, index, template), now)
                expected_names.add(names.clique("llm", index, template.name))
            for config in children.group_configs(self.pcs):
                manifest = children.scaling_group(self.pcs, index, config)
                name = manifest["metadata"]["name"]
                expected_names.add(name)
                if name not in self.groups:
                    self.groups[name] = self.born(manifest, PodCliqueScalingGroup, now)
        for name in [n for n, c in self.cliques.items() if c.metadata.controller.kind == "PodCliqueSet"]:
            if name not in expected_names:
                self.drop(name)
        for name in [n for n in self.groups if n not in expected_names]:
            for member in [n for n in self.cliques if n.startswith(f"{name}-")]:
                self.drop(member)
            del self.groups[name]

    def group_pass(self, group: PodCliqueScalingGroup, now: str) -> None:
        step = update_group_replicas.step(self.pcs, group, self.cliques.get, lambda c: self.of(c.metadata.name), now)
        if step.progress is not None:
            group.status = msgspec.structs.replace(group.status or statuses.ScalingGroupStatus())
            group.status.update_progress = step.progress
        for wave in step.deletion_waves:
            for clique in wave:
                self.drop(clique.metadata.name)
        config = children.group_config(self.pcs, group.metadata.label(labels.REPLICA_INDEX), group.metadata.name)
        assert config is not None
        manifests = list(members(self.pcs, group))
        for manifest in manifests:
            self.follow(manifest, now, in_place=update_progress.is_on_delete(self.pcs))
        for name in [n for n in self.cliques if n.startswith(f"{group.metadata.name}-")]:
            if name not in {m["metadata"]["name"] for m in manifests}:
                self.drop(name)

    def clique_pass(self, clique: PodClique, now: str) -> None:
        name = clique.metadata.name
        current = self.of(name)
        missing, surplus = balanced(clique, current)
        vacancy = update_clique_pods.pod_to_replace(clique, current)
        for index in missing:
            self._born += 1
            new = pod(clique, index)
            new.metadata.name, new.metadata.uid = f"{name}-{self._born:05}", f"u-{self._born}"
            new.metadata.labels = dict(new.metadata.labels or {})
            new.metadata.creation_timestamp = now
            new.metadata.annotations = {labels.REPLACES: vacancy} if vacancy else None
            vacancy = None
            self.pods[new.metadata.name] = new
        step = update_clique_pods.step(self.pcs, clique, self.of(name), now)
        if step.progress is not None:
            assert clique.status is not None
            clique.status = msgspec.structs.replace(clique.status, update_progress=step.progress)
        for member in [
            *surplus,
            *step.unready_pods,
            *step.additional_pods,
            *([step.selected] if step.selected else []),
        ]:
            if self.pods.pop(member.metadata.name, None) is not None:
                self.deleted_pods.append(member.metadata.name)

    def follow(self, manifest: dict, now: str, in_place: bool = True) -> None:
        name = manifest["metadata"]["name"]
        existing = self.cliques.get(name)
        if existing is None:
            self.cliques[name] = self.born(manifest, PodClique, now)
            return
        current = update_progress.revision(self.pcs, existing)
        assert current is not None
        if in_place and template_drift.is_outdated(existing, current):
            existing.metadata.labels = manifest["metadata"]["labels"]
            existing.spec.pod_spec = manifest["spec"]["podSpec"]

    def born(self, manifest: dict, kind: type, now: str):
        self._born += 1
        metadata = {**manifest["metadata"], "uid": f"u-{self._born}", "generation": 1, "creationTimestamp": now}
        return msgspec.convert({**manifest, "metadata": metadata}, kind)

    def drop(self, clique: str) -> None:
        for member in self.of(clique):
            del self.pods[member.metadata.name]
            self.deleted_pods.append(member.metadata.name)
        del self.cliques[clique]

    def until_ended(self, passes: int = 200) -> Iterator[None]:
        """Yield after each second of an update, until the update has ended."""
        for _ in range(passes):
            self.tick()
            yield
            if self.ended():
                return
        raise AssertionError(f"the update does not end: {self.progress}")


__all__ = ["ObjectMeta", "PodCliqueSet", "Rolling"]
