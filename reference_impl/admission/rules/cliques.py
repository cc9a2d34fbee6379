"""Rules about a single clique: labels, annotations, sizes, autoscaling, pod spec (VAL-14, VAL-15, VAL-30 to VAL-44)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.admission.errors import FieldError, duplicate, invalid, required
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.syntax import (
    annotation_errors,
    duplicates,
    is_variable,
    label_errors,
    mappings,
)
from reference_impl.api.models import AutoScaling, PodCliqueSet, PodCliqueSpec, PodSpec

MUST_BE_POSITIVE = "must be greater than 0"
MINIMUM_ABOVE_REPLICAS = "minAvailable must not be greater than replicas"


def violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Apply the rules for creates and updates."""
    for i, clique in enumerate(pcs.spec.template.cliques):
        path = paths.clique(i)
        yield from label_errors(f"{path}.labels", clique.labels)
        yield from annotation_errors(f"{path}.annotations", clique.annotations)
        yield from _size_errors(f"{path}.spec", clique.spec)
        yield from _variable_errors(f"{path}.spec.podSpec", clique.spec.pod_spec)


def reserved_field_violations(pcs: PodCliqueSet, old: PodCliqueSet | None) -> Iterator[FieldError]:
    """Reject pod fields that Grove reserves, unless the stored set already has them (VAL-40, VAL-41; DFT-06)."""
    old_specs = {clique.name: clique.spec.pod_spec for clique in old.spec.template.cliques} if old else {}
    for i, clique in enumerate(pcs.spec.template.cliques):
        old_spec, path = old_specs.get(clique.name, {}), f"{paths.clique(i)}.spec.podSpec"
        for field, empty_value in (("topologySpreadConstraints", None), ("nodeName", "")):
            value = clique.spec.pod_spec.get(field)
            if value not in (empty_value, None) and old_spec.get(field) in (empty_value, None):
                yield invalid(f"{path}.{field}", value, "must not be set")


def warnings(pcs: PodCliqueSet) -> Iterator[str]:
    """Warn about a restart policy other than Always, because a pod that has ended is replaced nevertheless (VAL-44,
    DFT-03, OBJ-257)."""
    for i, clique in enumerate(pcs.spec.template.cliques):
        policy = clique.spec.pod_spec.get("restartPolicy")
        if policy not in (None, "", "Always"):
            path = f"{paths.clique(i)}.spec.podSpec.restartPolicy"
            yield f"{path}: pods run with {policy}; a pod that has ended is replaced by a new one"


def _size_errors(path: str, spec: PodCliqueSpec) -> Iterator[FieldError]:
    if spec.replicas <= 0:
        yield invalid(f"{path}.replicas", spec.replicas, MUST_BE_POSITIVE)
    if spec.min_available is None:
        yield required(f"{path}.minAvailable", "field is required")
    elif spec.min_available <= 0:
        yield invalid(f"{path}.minAvailable", spec.min_available, MUST_BE_POSITIVE)
    elif spec.min_available > spec.replicas:
        yield invalid(f"{path}.minAvailable", spec.min_available, MINIMUM_ABOVE_REPLICAS)
    if spec.auto_scaling_config is not None:
        yield from _autoscaling_errors(f"{path}.autoScalingConfig", spec, spec.auto_scaling_config)


def _autoscaling_errors(path: str, spec: PodCliqueSpec, scale: AutoScaling) -> Iterator[FieldError]:
    """Compare the bounds of the autoscaler with `replicas` and `minAvailable` (VAL-34 to VAL-36)."""
    if scale.min_replicas is not None:
        if spec.min_available is not None and scale.min_replicas < spec.min_available:
            detail = "must be greater than or equal to podCliqueSpec.minAvailable"
            yield invalid(f"{path}.minReplicas", scale.min_replicas, detail)
        if scale.max_replicas < scale.min_replicas:
            detail = "must be greater than or equal to podCliqueSpec.minReplicas"
            yield invalid(f"{path}.maxReplicas", scale.max_replicas, detail)
    if scale.max_replicas < spec.replicas:
        yield invalid(f"{path}.maxReplicas", scale.max_replicas, "must be greater than or equal to replicas")


def _variable_errors(path: str, pod: PodSpec) -> Iterator[FieldError]:
    """Validate the names of environment variables, which must be unique within a container (VAL-42, VAL-43)."""
    for field in ("initContainers", "containers"):
        for j, container in mappings(pod.get(field)):
            env_path = f"{path}.{field}[{j}].env"
            names = []
            for k, variable in mappings(container.get("env")):
                name = str(variable.get("name") or "")
                names.append(name)
                if not is_variable(name):
                    yield invalid(f"{env_path}[{k}].name", name, "must be a valid environment variable name")
            if repeated_names := duplicates(names):
                yield duplicate(env_path, repeated_names)
