"""Rules about the scheduler of a set's pods, and each scheduler's own rules about a set (VAL-16, VAL-17, SBV-01 to
SBV-05, SBV-07, SBV-09)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.admission.errors import FieldError, forbidden, invalid
from reference_impl.admission.rules import paths
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import kai
from reference_impl.plan.workload_api import tree as workload_tree
from reference_impl.runtime.configuration import DEFAULT_SCHEDULER, Scheduler

PATH = f"{paths.CLIQUES}.spec.podSpec.schedulerName"


def scheduler_names(pcs: PodCliqueSet, settings: Scheduler) -> list[str]:
    """Return the cliques' schedulers in order, without duplicates, with an empty name replaced by the default."""
    requested = [clique.spec.pod_spec.get("schedulerName") for clique in pcs.spec.template.cliques]
    return list(dict.fromkeys(settings.resolve(name if isinstance(name, str) else "") for name in requested))


def violations(pcs: PodCliqueSet, settings: Scheduler) -> Iterator[FieldError]:
    """Require that all cliques have the same scheduler and that it is enabled."""
    schedulers = scheduler_names(pcs, settings)
    if len(schedulers) > 1:
        yield invalid(PATH, ", ".join(schedulers), "the schedulerName for all pods have to be the same")
    if schedulers and schedulers[0] not in settings.names:
        detail = "this scheduler is not enabled in OperatorConfiguration"
        yield invalid(PATH, schedulers[0], f"schedulerName must be an enabled scheduler backend; {detail}")


def backend_violations(pcs: PodCliqueSet, settings: Scheduler) -> Iterator[FieldError]:
    """Apply the scheduler's own rules to the whole set (docs/spec/admission.md, section 11)."""
    schedulers = scheduler_names(pcs, settings)
    if not schedulers:
        return
    if schedulers[0] not in settings.names:
        yield invalid("spec", schedulers[0], f'schedulerName "{schedulers[0]}" is not enabled in OperatorConfiguration')
    elif schedulers[0] == kai.SCHEDULER:
        yield from _queue_errors(pcs)
    elif schedulers[0] == DEFAULT_SCHEDULER and settings.gangs_of_kubernetes is not None:
        yield from _priority_class_errors(pcs)
    elif schedulers[0] in ("volcano", "lpx-scheduler"):
        yield from _topology_errors(pcs, schedulers[0])


def change_violations(pcs: PodCliqueSet, old: PodCliqueSet, settings: Scheduler) -> Iterator[FieldError]:
    """Reject a change to the priority class for a gang on kube-scheduler. While an update replaces pods one by one, the
    gang would have pods of two classes, and kube-scheduler would never try to place the new pods (WL37-B06,
    WL37-B34)."""
    if settings.gangs_of_kubernetes is None or scheduler_names(pcs, settings) != [DEFAULT_SCHEDULER]:
        return
    old_classes, new_classes = workload_tree.pod_classes(old), workload_tree.pod_classes(pcs)
    for i, clique in enumerate(pcs.spec.template.cliques):
        if clique.name in old_classes and old_classes[clique.name] != new_classes[clique.name]:
            path = f"{paths.clique(i)}.spec.podSpec.priorityClassName"
            if pcs.spec.template.priority_class_name or old.spec.template.priority_class_name:
                path = f"{paths.TEMPLATE}.priorityClassName"
            yield forbidden(path, f"{PRIORITY_CLASS_KEPT}: create the PodCliqueSet again to change it")
            return


PRIORITY_CLASS_KEPT = f"the pods of a gang on {DEFAULT_SCHEDULER} keep their priority class"


def _priority_class_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Require the same priority class for all pods of a gang on kube-scheduler (WL37-B34, WL37-V13)."""
    priority_classes = workload_tree.pod_classes(pcs)
    if len(set(priority_classes.values())) > 1:
        classes = ", ".join(f"{clique}: {name or 'none'}" for clique, name in priority_classes.items())
        detail = f"with gangScheduling, {DEFAULT_SCHEDULER} places only gangs whose pods have one priority class"
        yield invalid(f"{paths.CLIQUES}.spec.podSpec.priorityClassName", classes, detail)


def _queue_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Require the same KAI queue for all cliques of a set (SBV-03 to SBV-05)."""
    full_name = f"{pcs.metadata.namespace}/{pcs.metadata.name}"
    set_queue = kai.queue_of(pcs.metadata.labels, pcs.metadata.annotations)
    clique_queues = {
        c.name: queue for c in pcs.spec.template.cliques if (queue := kai.queue_of(c.labels, c.annotations))
    }
    distinct_queues = sorted(set(clique_queues.values()))
    if not set_queue and not distinct_queues:
        detail = f"no KAI queue is configured on PodCliqueSet {full_name} or its PodClique templates"
        yield invalid("spec", None, detail)
    elif set_queue:
        for clique, queue in clique_queues.items():
            if queue != set_queue:
                detail = f'KAI queue on PodCliqueSet {full_name} is "{set_queue}" but PodClique template "{clique}"'
                yield invalid("spec", queue, f'{detail} resolves to "{queue}"')
                return
    elif len(distinct_queues) > 1:
        queues = " ".join(distinct_queues)
        yield invalid(
            "spec",
            distinct_queues,
            f"conflicting KAI queues on PodCliqueSet {full_name} PodClique templates: [{queues}]",
        )


def _topology_errors(pcs: PodCliqueSet, scheduler: str) -> Iterator[FieldError]:
    """Reject topology constraints for a scheduler that does not support them (SBV-07, SBV-09)."""
    template = pcs.spec.template
    owners = [("PodCliqueSet", template.topology_constraint)]
    owners += [(f'PodClique "{c.name}"', c.topology_constraint) for c in template.cliques]
    groups = template.pod_clique_scaling_groups or []
    owners += [(f'PodCliqueScalingGroup "{g.name}"', g.topology_constraint) for g in groups]
    for owner, constraint in owners:
        if constraint is not None:
            yield invalid("spec", scheduler, f"{scheduler} does not support topologyConstraint on {owner}")
            return
