"""Rules about coherent updates (COH-061 to COH-066, COH-170, COH-Q31, COH-R01)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.admission import scaling
from reference_impl.admission.errors import ErrorType, FieldError, forbidden, invalid
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.cliques import MUST_BE_POSITIVE
from reference_impl.api.coherent import GangLayout, RollingUpdate
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import durations, labels
from reference_impl.plan.coherent import update
from reference_impl.plan.lines import EPOCH_DIGITS, LABEL_LIMIT

NOT_ON_MEMBERS = "must not be set for a PodClique that is part of a scaling group: set it for the scaling group"


def violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Apply the rules for creates and updates."""
    is_coherent = update.is_coherent(pcs)
    groups = pcs.spec.template.pod_clique_scaling_groups or []
    members = {name for group in groups for name in group.clique_names}
    for i, clique in enumerate(pcs.spec.template.cliques):
        path = f"{paths.clique(i)}.rollingUpdate"
        if clique.name in members:
            if clique.rolling_update is not None:
                yield forbidden(path, NOT_ON_MEMBERS)
        else:
            yield from _budget_errors(path, clique.rolling_update, clique.spec.minimum if is_coherent else 0)
            yield from _deadline_errors(path, clique.rolling_update)
    for i, group in enumerate(groups):
        path = f"{paths.group(i)}.rollingUpdate"
        yield from _budget_errors(path, group.rolling_update, group.min_available if is_coherent else 0)
        yield from _deadline_errors(path, group.rolling_update)
    if is_coherent:
        yield from _gang_name_errors(pcs)
    yield from gang_layout_violations(pcs)


def change_violations(pcs: PodCliqueSet, old: PodCliqueSet) -> Iterator[FieldError]:
    """Apply the rules for updates: `spec.replicas` must not change during a coherent update."""
    if pcs.spec.replicas != old.spec.replicas and scaling.is_updating(old):
        yield forbidden("spec.replicas", scaling.rejection_reason(pcs.metadata.namespace, pcs.metadata.name))


def gang_layout_violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Validate the annotation that replaces `spec.updateStrategy.coherent.gangLayout` if the CRD lacks this field."""
    annotation = (pcs.metadata.annotations or {}).get(labels.GANG_LAYOUT)
    if annotation is not None and annotation not in list(GangLayout):
        detail = f"supported values: {', '.join(GangLayout)}"
        yield FieldError(f"metadata.annotations[{labels.GANG_LAYOUT}]", ErrorType.NOT_SUPPORTED, annotation, detail)


def _budget_errors(path: str, rolling_update: RollingUpdate | None, minimum: int) -> Iterator[FieldError]:
    """Require a `maxUnavailable` of at least `minAvailable`, since a coherent update moves that many members together
    (COH-064)."""
    if rolling_update is None or rolling_update.max_unavailable is None:
        return
    if rolling_update.max_unavailable <= 0:
        yield invalid(f"{path}.maxUnavailable", rolling_update.max_unavailable, MUST_BE_POSITIVE)
    elif rolling_update.max_unavailable < minimum:
        detail = f"must not be less than minAvailable ({minimum}) with the update strategy Coherent"
        yield invalid(f"{path}.maxUnavailable", rolling_update.max_unavailable, detail)


def _deadline_errors(path: str, rolling_update: RollingUpdate | None) -> Iterator[FieldError]:
    """Require `progressDeadline` to be a positive Go duration (GM-102)."""
    if rolling_update is None or rolling_update.progress_deadline is None:
        return
    try:
        if durations.parse(rolling_update.progress_deadline) <= 0:
            yield invalid(f"{path}.progressDeadline", rolling_update.progress_deadline, MUST_BE_POSITIVE)
    except ValueError as error:
        yield invalid(f"{path}.progressDeadline", rolling_update.progress_deadline, str(error))


def _gang_name_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Limit the length of the names of gangs, `<set>-<replica>-<number>`, which are used as label values (COH-Q31)."""
    last_index = str(max(0, pcs.spec.replicas - 1))
    if (length := len(pcs.metadata.name) + len(last_index) + EPOCH_DIGITS + 2) > LABEL_LIMIT:
        detail = (
            f"with the update strategy Coherent the names of PodGangs would have {length} characters, "
            f"which exceeds the {LABEL_LIMIT} characters of a label value"
        )
        yield invalid("metadata.name", pcs.metadata.name, detail)
