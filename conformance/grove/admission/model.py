"""Find the rules that a set breaks (docs/spec/admission.md, sections 6, 7 and 11). A row that describes a defect counts
as the rule that upstream should enforce.

A set must be well-formed: errors that the schema alone detects (types, unknown enum values) are not modeled. The
specification does not decide whether names may contain dots (DFT-14); generated names contain none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.grove.admission import durations, topology
from conformance.grove.admission.defaults import with_defaults
from conformance.grove.admission.violation import AdmissionFacts, Document, Violation, cliques, groups

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_KEY = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_VARIABLE = re.compile(r"[A-Za-z._-][A-Za-z0-9._-]*")
MNNVL = "grove.io/mnnvl-group"
MAX_COMBINED_LENGTH = 45


def creation_violations(pcs: Document, facts: AdmissionFacts) -> list[Violation]:
    """Return the violations of a new set."""
    defaulted_set = with_defaults(pcs)
    return [
        *common_violations(defaulted_set, facts),
        *_pods_of_new_sets(defaulted_set),
        *_mnnvl(defaulted_set, facts),
        *topology.creation_violations(defaulted_set, facts),
    ]


def open_questions(pcs: Document) -> list[str]:
    """Return the reasons why a set may be rejected although it breaks no rule: upstream's code accepts it, but
    documents reject it or do not mention it."""
    clique_specs = [clique["spec"] for clique in cliques(pcs)]
    reasons = []
    if not all(spec.get("replicas") for spec in clique_specs):
        reasons.append("a clique without replicas (DEF-10)")
    is_explicit = pcs["spec"]["template"].get("cliqueStartupType") == "CliqueStartupTypeExplicit"
    if not is_explicit and any(spec.get("startsAfter") for spec in clique_specs):
        reasons.append("startsAfter without explicit order (VAL-23)")
    sizes = [(spec.get("autoScalingConfig"), spec.get("replicas")) for spec in clique_specs]
    sizes += [(group.get("scaleConfig"), group.get("replicas")) for group in groups(pcs)]
    if any(scale and (scale.get("minReplicas") or 0) > (replicas or 1) for scale, replicas in sizes):
        reasons.append("fewer replicas than the minReplicas of autoscaling (VAL-37)")
    if not all(group["cliqueNames"] for group in groups(pcs)):
        reasons.append("a scaling group without members (VAL-52)")
    return reasons


def common_violations(defaulted_set: Document, facts: AdmissionFacts) -> Iterator[Violation]:
    """Yield the violations of a with_defaults set by the rules that apply on create and on every update."""
    if defaulted_set["spec"]["replicas"] < 0:
        yield Violation("SCH-20", "spec.replicas")
    if not cliques(defaulted_set):
        yield Violation("VAL-06", "cliques")
    yield from _names(defaulted_set)
    for clique in cliques(defaulted_set):
        yield from _clique(clique)
    yield from _groups(defaulted_set)
    yield from _startup(defaulted_set)
    yield from _sharing(defaulted_set)
    yield from _schedulers(defaulted_set, facts)
    delay = durations.seconds(defaulted_set["spec"]["template"]["terminationDelay"])
    if delay is None or delay <= 0:
        yield Violation("VAL-45", "terminationDelay")


def _names(defaulted_set: Document) -> Iterator[Violation]:
    name = defaulted_set["metadata"]["name"]
    clique_names = [clique["name"] for clique in cliques(defaulted_set)]
    members = {member for group in groups(defaulted_set) for member in group["cliqueNames"]}
    for clique in clique_names:
        if not clique:
            yield Violation("VAL-07", "name")
        elif not _NAME.fullmatch(clique):
            yield Violation("VAL-08", "name")
        if clique and clique not in members and len(name + clique) > MAX_COMBINED_LENGTH:
            yield Violation("VAL-09", "name")
    if _has_duplicates(clique_names):
        yield Violation("SCH-02", "cliques")
    if _has_duplicates(clique["spec"]["roleName"] for clique in cliques(defaulted_set)):
        yield Violation("VAL-12", "roleName")
    for group in groups(defaulted_set):
        if not _NAME.fullmatch(group["name"]):
            yield Violation("VAL-50", "name")
        if any(len(name + group["name"] + member) > MAX_COMBINED_LENGTH for member in group["cliqueNames"]):
            yield Violation("VAL-10", "name")
    if _has_duplicates(group["name"] for group in groups(defaulted_set)):
        yield Violation("VAL-58", "podCliqueScalingGroups.name")


def _clique(clique: Document) -> Iterator[Violation]:
    for key, value in (clique.get("labels") or {}).items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            yield Violation("VAL-14", "labels")
    if not all(_KEY.fullmatch(key.lower()) for key in clique.get("annotations") or {}):
        yield Violation("VAL-15", "annotations")
    spec = clique["spec"]
    replicas, min_available, scale = spec["replicas"], spec["minAvailable"], spec.get("autoScalingConfig")
    if replicas < 1:
        yield Violation("VAL-30", "replicas")
    if min_available < 1:
        yield Violation("VAL-32", "minAvailable")
    elif min_available > replicas:
        yield Violation("VAL-33", "minAvailable")
    if scale is not None:
        if scale["minReplicas"] < min_available:
            yield Violation("VAL-34", "autoScalingConfig.minReplicas")
        if scale["maxReplicas"] < scale["minReplicas"]:
            yield Violation("VAL-35", "autoScalingConfig.maxReplicas")
        if scale["maxReplicas"] < replicas:
            yield Violation("VAL-36", "autoScalingConfig.maxReplicas")
    for field in ("containers", "initContainers"):
        for container in spec["podSpec"].get(field) or []:
            names = [variable["name"] for variable in container.get("env") or []]
            if not all(map(_VARIABLE.fullmatch, names)):
                yield Violation("VAL-42", "name")
            if _has_duplicates(names):
                yield Violation("VAL-43", "env")


def _pods_of_new_sets(defaulted_set: Document) -> Iterator[Violation]:
    for clique in cliques(defaulted_set):
        pod = clique["spec"]["podSpec"]
        if "topologySpreadConstraints" in pod:
            yield Violation("VAL-40", "topologySpreadConstraints")
        if pod.get("nodeName"):
            yield Violation("VAL-41", "nodeName")


def _groups(defaulted_set: Document) -> Iterator[Violation]:
    clique_names = {clique["name"] for clique in cliques(defaulted_set)}
    members = [member for group in groups(defaulted_set) for member in group["cliqueNames"]]
    if _has_duplicates(members):
        yield Violation("VAL-59", "cliqueNames")
    for clique in cliques(defaulted_set):
        if clique["name"] in members and clique["spec"].get("autoScalingConfig") is not None:
            yield Violation("VAL-38", "podCliqueScalingGroups")
    for group in groups(defaulted_set):
        if not clique_names.issuperset(group["cliqueNames"]):
            yield Violation("VAL-51", "cliqueNames")
        replicas, min_available, scale = group["replicas"], group["minAvailable"], group.get("scaleConfig")
        if replicas < 1:
            yield Violation("VAL-53", "replicas")
        if min_available < 1:
            yield Violation("VAL-54", "minAvailable")
        elif min_available > replicas:
            yield Violation("VAL-55", "minAvailable")
        if scale is not None:
            if scale["minReplicas"] < min_available:
                yield Violation("VAL-56", "scaleConfig.minReplicas")
            if scale["maxReplicas"] < max(scale["minReplicas"], replicas):
                yield Violation("DFT-04", "scaleConfig.maxReplicas")


def _startup(defaulted_set: Document) -> Iterator[Violation]:
    if defaulted_set["spec"]["template"]["cliqueStartupType"] != "CliqueStartupTypeExplicit":
        return
    parents = {clique["name"]: set(clique["spec"].get("startsAfter") or []) for clique in cliques(defaulted_set)}
    for clique in cliques(defaulted_set):
        listed = clique["spec"].get("startsAfter") or []
        if "" in listed:
            yield Violation("VAL-18", "startsAfter")
        if clique["name"] in listed:
            yield Violation("VAL-19", "startsAfter")
        if _has_duplicates(listed):
            yield Violation("VAL-20", "startsAfter")
        if not set(listed) <= parents.keys():
            yield Violation("VAL-21", "startsAfter")
    # Repeatedly remove all cliques that do not wait for a remaining clique. Cliques that cannot be removed form a cycle
    # or wait for one.
    predecessors_by_name = {name: (predecessors & parents.keys()) - {name} for name, predecessors in parents.items()}
    while unblocked := [name for name, predecessors in predecessors_by_name.items() if not predecessors]:
        for name in unblocked:
            del predecessors_by_name[name]
        predecessors_by_name = {
            name: predecessors - set(unblocked) for name, predecessors in predecessors_by_name.items()
        }
    if predecessors_by_name:
        yield Violation("VAL-22", "cliques")


def _sharing(defaulted_set: Document) -> Iterator[Violation]:
    template = defaulted_set["spec"]["template"]
    claims = template.get("resourceClaimTemplates") or []
    internal_names = [claim.get("name") or "" for claim in claims]
    for claim in claims:
        if not claim.get("name"):
            yield Violation("VAL-04", "name")
        spec: Any = claim["templateSpec"].get("spec") or {}
        if not (spec.get("devices") or {}).get("requests"):
            yield Violation("VAL-05", "requests")
    if _has_duplicates(internal_names):
        yield Violation("VAL-05b", "name")
    clique_names = {clique["name"] for clique in cliques(defaulted_set)}
    group_names = {group["name"] for group in groups(defaulted_set)}
    lists = [(template.get("resourceSharing") or [], clique_names, group_names)]
    lists += [(group.get("resourceSharing") or [], set(group["cliqueNames"]), set()) for group in groups(defaulted_set)]
    lists += [(clique.get("resourceSharing") or [], set(), set()) for clique in cliques(defaulted_set)]
    for entries, clique_choices, group_choices in lists:
        names = [entry.get("name") or "" for entry in entries]
        if not all(names):
            yield Violation("VAL-60", "name")
        if _has_duplicates(filter(None, names)):
            yield Violation("VAL-61", "name")
        for entry in entries:
            if entry.get("namespace") and entry.get("name") in internal_names:
                yield Violation("VAL-62", "namespace")
            if (entry_filter := entry.get("filter")) is None:
                continue
            by_clique = entry_filter.get("childCliqueNames") or []
            by_group = entry_filter.get("childScalingGroupNames") or []
            if not by_clique and not by_group:
                yield Violation("VAL-64", "filter")
            if not clique_choices.issuperset(by_clique):
                yield Violation("VAL-65", "childCliqueNames")
            if not group_choices.issuperset(by_group):
                yield Violation("VAL-65", "childScalingGroupNames")


def _schedulers(defaulted_set: Document, facts: AdmissionFacts) -> Iterator[Violation]:
    names = {clique["spec"]["podSpec"].get("schedulerName") or "" for clique in cliques(defaulted_set)}
    if len(names - {""}) > 1:
        yield Violation("VAL-16", "schedulerName")
    if names - {"", *facts.schedulers}:
        yield Violation("VAL-17", "schedulerName")


def _mnnvl(defaulted_set: Document, facts: AdmissionFacts) -> Iterator[Violation]:
    for holder in (defaulted_set["metadata"], *cliques(defaulted_set), *groups(defaulted_set)):
        value = (holder.get("annotations") or {}).get(MNNVL)
        if value is None or value == "none":
            continue
        if not LABEL.fullmatch(value):
            yield Violation("MNV-02", MNNVL)
        if not facts.mnnvl:
            yield Violation("MNV-03", MNNVL)


def _has_duplicates(values: Iterable[object]) -> bool:
    listed = list(values)
    return len(set(listed)) < len(listed)
