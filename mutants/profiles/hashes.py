"""Mutants of template hashes. An order that matters is ignored, an order that does not matter counts, or inputs are
missing or added."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from typing import Any

import orjson

from mutants.registry import mutant
from mutants.replacement import Original, around, note_calls, on_result_of, replace, replace_data
from reference_impl.api.models import CliqueTemplate, PodCliqueSet
from reference_impl.plan import hashes
from reference_impl.plan.hashing import canonical, schemes
from reference_impl.plan.hashing.schemes import Scheme, Template
from reference_impl.plan.hashing.window import STANDARD, CurrentHashes, Policy
from reference_impl.runtime import configuration

_OF_POD = {
    "containers": "containers",
    "volumes": "volumes",
    "pull-secrets": "imagePullSecrets",
    "host-aliases": "hostAliases",
    "gates": "schedulingGates",
    "pod-claims": "resourceClaims",
}
_OF_CONTAINER = {"ports": "ports", "mounts": "volumeMounts", "devices": "volumeDevices"}


def _unsorted(name: str, keys: dict[str, Any], field: str) -> None:
    @mutant("operator", f"includes the order of {field} in the hash", "TMPL-001", name=f"hash-order-{name}")
    def _order_counts() -> None:
        del keys[field]
        note_calls(canonical, "_with_sorted_lists")


for _name, _field in _OF_POD.items():
    _unsorted(_name, canonical._POD_LIST_KEYS, _field)
for _name, _field in _OF_CONTAINER.items():
    _unsorted(_name, canonical._CONTAINER_LIST_KEYS, _field)
_unsorted("claims", canonical._RESOURCE_LIST_KEYS, "claims")


@mutant("operator", "does not sort the lists of init containers before hashing", "TMPL-001")
def _hash_order_in_init() -> None:
    replace_data(
        canonical, "_CONTAINER_FIELDS", ("containers", "ephemeralContainers"), read_by=(canonical, "canonical_pod_spec")
    )


@mutant("operator", "sorts ports by number alone, so that the order of protocols matters", "TMPL-001")
def _hash_ports_by_number() -> None:
    canonical._CONTAINER_LIST_KEYS["ports"] = lambda item: item.get("containerPort") or 0
    note_calls(canonical, "_canonical_container")


@mutant("operator", "hashes templates in their stored form", "TMPL-001", "TMPL-002", "TMPL-010")
def _hash_stored_form() -> None:
    legacy = schemes.SCHEMES["legacy-0.34"]
    replace(configuration.Hashes, "policy", property(lambda self: changed(Policy(), written=legacy)))


def _sorted_too(name: str, keys: dict[str, Any], field: str, by: str) -> None:
    @mutant("operator", f"ignores the order of {field}", "TMPL-005", name=f"hash-sorts-{name}")
    def _too_many() -> None:
        keys[field] = lambda item: item.get(by) or "" if isinstance(item, Mapping) else item
        note_calls(canonical, "_with_sorted_lists")


_sorted_too("init-containers", canonical._POD_LIST_KEYS, "initContainers", "name")
_sorted_too("tolerations", canonical._POD_LIST_KEYS, "tolerations", "key")
_sorted_too("readiness-gates", canonical._POD_LIST_KEYS, "readinessGates", "conditionType")
_sorted_too("env", canonical._CONTAINER_LIST_KEYS, "env", "name")
_sorted_too("args", canonical._CONTAINER_LIST_KEYS, "args", "")
_sorted_too("command", canonical._CONTAINER_LIST_KEYS, "command", "")


def _sorted_as_text(name: str, field: str) -> None:
    """Register a mutant whose canonical form sorts a list field of containers by the JSON of its items."""

    @mutant("operator", f"ignores the order of {field}", "TMPL-005", name=f"hash-sorts-{name}")
    def _too_many() -> None:
        canonical._CONTAINER_LIST_KEYS[field] = lambda item: orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        note_calls(canonical, "_with_sorted_lists")


_sorted_as_text("env-from", "envFrom")
_sorted_as_text("restart-rules", "restartPolicyRules")


@mutant("operator", "hashes templates without their native sidecars", "TMPL-006", name="hash-without-sidecars")
@on_result_of(canonical, "canonical_pod_spec")
def _without_sidecars(result: dict[str, Any], *_: Any) -> dict[str, Any]:
    containers = [c for c in result.get("initContainers") or () if c.get("restartPolicy") != "Always"]
    return {**result, "initContainers": containers} if "initContainers" in result else result


def _templates_without(part: str) -> None:
    """Omit one input from the hashes of templates: `labels`, `annotations` or `priority`."""
    original = Template.of.__func__  # type: ignore[attr-defined]

    def of(
        cls: type[Template], name: str, labels: object, annotations: object, spec: dict[str, Any], priority: str | None
    ) -> Template:
        inputs = {"labels": labels, "annotations": annotations, "priority": priority, part: None}
        template: Template = original(cls, name, inputs["labels"], inputs["annotations"], spec, inputs["priority"])
        return template

    replace(Template, "of", classmethod(of))


@mutant("operator", "omits the labels of a clique's template from its hash", "TMPL-016", name="hash-without-labels")
def _without_labels() -> None:
    _templates_without("labels")


@mutant("operator", "omits the annotations of a clique's template from its hash", "TMPL-016")
def _hash_without_annotations() -> None:
    _templates_without("annotations")


@mutant("operator", "omits the priority class of the set from the hash", "TMPL-016")
def _hash_without_priority() -> None:
    _templates_without("priority")


def _containers_without(field: str) -> None:
    original = canonical._canonical_container

    def container(manifest: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in original(manifest).items() if name != field}

    replace(canonical, "_canonical_container", container)


@mutant("operator", "omits the mounts of containers from the hash", "TMPL-006", "TMPL-010")
def _hash_without_mounts() -> None:
    _containers_without("volumeMounts")


@mutant("operator", "omits the arguments of containers from the hash", "TMPL-005", "TMPL-006")
def _hash_without_args() -> None:
    _containers_without("args")


@mutant("operator", "includes the name of the set in the hash", "TMPL-009")
@around(hashes, "generation_hashes")
def _hash_of_names_too(original: Original, pcs: PodCliqueSet, policy: Policy = STANDARD) -> CurrentHashes:
    current_hashes = original(pcs, policy)
    return CurrentHashes(salted(current_hashes.written, pcs.metadata.name), dict)


@mutant("operator", "includes the replicas of a set in its hash", "TMPL-003")
@around(hashes, "generation_hashes")
def _hash_of_replicas_too(original: Original, pcs: PodCliqueSet, policy: Policy = STANDARD) -> CurrentHashes:
    return CurrentHashes(salted(original(pcs, policy).written, str(pcs.spec.replicas)), dict)


@mutant("operator", "gives a set another hash once it was changed five times", "TMPL-002")
@around(hashes, "generation_hashes")
def _hash_of_a_burst(original: Original, pcs: PodCliqueSet, policy: Policy = STANDARD) -> CurrentHashes:
    current_hashes = original(pcs, policy)
    return (
        CurrentHashes(salted(current_hashes.written, "often"), dict)
        if (pcs.metadata.generation or 0) > 5
        else current_hashes
    )


@mutant("operator", "includes the replicas of a clique in its hash", "TMPL-003")
@around(hashes, "template_hashes")
def _hash_of_clique_replicas(
    original: Original, template: CliqueTemplate, priority_class: str | None, policy: Policy = STANDARD
) -> CurrentHashes:
    return CurrentHashes(salted(original(template, priority_class, policy).written, str(template.spec.replicas)), dict)


@mutant("operator", "never gives a template the hash that it had before", "TMPL-008")
def _hash_changes_each_time() -> None:
    original, last, number = hashes.template_hashes, dict[str, tuple[str, int]](), itertools.count()

    def known_template(
        template: CliqueTemplate, priority_class: str | None, policy: Policy = STANDARD
    ) -> CurrentHashes:
        written_hash = original(template, priority_class, policy).written
        if last.get(template.name, ("", 0))[0] != written_hash:
            last[template.name] = written_hash, next(number)
        return CurrentHashes(salted(written_hash, str(last[template.name][1])), dict)

    replace(hashes, "template_hashes", known_template)


@mutant("operator", "gives every clique the hash of the whole set", "TMPL-007", "TMPL-012")
def _hash_of_the_whole_set() -> None:
    generations: dict[str, str] = {}
    original = hashes.generation_hashes

    def known_generation(pcs: PodCliqueSet, policy: Policy = STANDARD) -> CurrentHashes:
        current_hashes = original(pcs, policy)
        generations.update({template_key(template): current_hashes.written for template in pcs.spec.template.cliques})
        return current_hashes

    def known_template(
        template: CliqueTemplate, priority_class: str | None, policy: Policy = STANDARD
    ) -> CurrentHashes:
        return CurrentHashes(generations.get(template_key(template), "4444"), dict)

    def template_key(template: CliqueTemplate) -> str:
        return template.name

    replace(hashes, "generation_hashes", known_generation)
    replace(hashes, "template_hashes", known_template)


def _of_set(wrong_order: bool, names: bool) -> None:
    original = schemes.generation_hash

    def of_set(templates: Sequence[Template], scheme: Scheme, *, in_order: bool) -> str:
        hashed = list(templates)
        if wrong_order and in_order:
            hashed.sort(key=lambda template: template.name)
        if not names:
            hashed = [changed(template, name="") for template in hashed]
        return original(hashed, scheme, in_order=in_order)

    replace(schemes, "generation_hash", of_set)


@mutant("operator", "includes the order of all cliques in the generation hash", "TMPL-002", "TMPL-009")
def _hash_cliques_as_stored() -> None:
    _of_set(wrong_order=False, names=False)  # without their names, the cliques are not sorted


@mutant("operator", "ignores the order of cliques where it is the startup order", "TMPL-004")
def _hash_cliques_sorted() -> None:
    _of_set(wrong_order=True, names=True)


@mutant("operator", "omits the names of cliques where their order is the startup order", "TMPL-015")
@around(schemes, "generation_hash")
def _hash_order_without_names(
    original: Original, templates: Sequence[Template], scheme: Scheme, *, in_order: bool
) -> str:
    hashed = [changed(template, name="") for template in templates] if in_order else list(templates)
    return original(hashed, scheme, in_order=in_order)


@mutant("operator", "treats cliques that start in order as unordered", "TMPL-004", "TMPL-015")
@around(schemes, "generation_hash")
def _hash_no_order_at_all(original: Original, templates: Sequence[Template], scheme: Scheme, *, in_order: bool) -> str:
    return original(templates, scheme, in_order=False)


@mutant("operator", "hashes templates with another function", "TMPL-010")
def _hash_of_its_own() -> None:
    original_template, original_set = schemes.template_hash, schemes.generation_hash

    def of_template(template: Template, scheme: Scheme) -> str:
        return salted(original_template(template, scheme), "")

    def of_set(templates: Sequence[Template], scheme: Scheme, *, in_order: bool) -> str:
        return salted(original_set(templates, scheme, in_order=in_order), "")

    replace(schemes, "template_hash", of_template)
    replace(schemes, "generation_hash", of_set)


@mutant("operator", "computes generation hashes that are not valid label values", "TMPL-011")
@around(hashes, "generation_hashes")
def _hash_not_for_labels(original: Original, pcs: PodCliqueSet, policy: Policy = STANDARD) -> CurrentHashes:
    return CurrentHashes(f"sha256:{original(pcs, policy).written}==", dict)


def salted(hash: str, salt: str) -> str:
    """Return another hash of the same length."""
    return hashlib.sha256(f"{hash} {salt}".encode()).hexdigest()[:16]
