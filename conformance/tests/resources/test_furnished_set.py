"""A set with autoscalers, resource claims at each level, and labels for its gangs: everything that it becomes."""

from __future__ import annotations

from conformance.grove import expected_claims, expected_pods, expected_secondary, labels, names
from conformance.grove.expected import Expected, expected
from conformance.grove.expected_claims import Claim
from conformance.grove.fields import Document, at, items, mapping, name, number, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.checks import ABSENT, Absent
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates
from conformance.testing.comparison import carried, of, same

OTHER_SPEC = {"devices": {"requests": [{"name": "other", "exactly": {"deviceClassName": "other.example.com"}}]}}


@requirements(
    *(f"RES-{number:03}" for number in (1, 2, 3, 4, 5, 6)),
    *(f"RES-{number:03}" for number in (14, 20, 23)),
    *(f"RES-{number:03}" for number in (30, 31)),
    *(f"RES-{number:03}" for number in (40, 41, 42, 43, 44)),
    "RES-090",
)
def test_a_furnished_set_has_everything_beside_its_pods(case: Case) -> None:
    # A template of the same name as one of the set's own, which goes before it (OBJ-820).
    case.create(claim_template("cache", OTHER_SPEC))
    workload = case.workload("furnished", replicas=2)
    wanted = expected(workload)
    planned = expected_claims.claims(workload, wanted)
    scalers = expected_secondary.autoscalers(workload)
    case.create(workload)
    case.until("RES-043", "all pods exist", predicates.all_exist(list(wanted.cliques.values())))
    case.eventually("RES-030", "the autoscalers exist", observed.there("horizontalpodautoscalers", scalers))
    case.eventually("RES-040", "the claims exist", observed.there("resourceclaims", planned))
    case.eventually("RES-006", "the control plane puts a token into the Secret", _token(name(workload)))
    view = case.settled("the gangs carry the labels of the set", _mirrored(workload, wanted))

    _check_attendants(case, workload, view)
    case.expect("RES-014", "groups and gangs made before a standalone clique", [], _too_early(case, wanted))
    _check_gangs_and_templates(case, workload, wanted, view)
    _check_autoscalers(case, workload, view)
    _check_claims(case, workload, planned, view)
    _check_pods(case, workload, wanted, view)

    case.delete("podcliquesets", name(workload))
    kinds = ("serviceaccounts", "roles", "rolebindings", "secrets", "horizontalpodautoscalers", "resourceclaims")
    parts = {labels.PART_OF: name(workload)}
    gone = observed.all_of(*(observed.gone(resource, view.names(resource, parts)) for resource in kinds))
    case.eventually("RES-090", "with the set goes all that was part of it", gone, timeout=150)


def claim_template(template_name: str, spec: object) -> Object:
    """A ResourceClaimTemplate in the namespace of the test."""
    metadata = {"name": template_name}
    kind = "ResourceClaimTemplate"
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": {"spec": spec}}


def _token(set_name: str) -> predicates.Predicate:
    secret = names.token_secret(set_name)

    def seen(view: View) -> bool | Unmet:
        found = view.get("secrets", secret)
        return text(found, "data", "token") != "" or Unmet(f"secrets/{secret} has no token")

    return seen


def _too_early(case: Case, wanted: Expected) -> list[str]:
    """Scaling groups and gangs of a replica that were there before all of its standalone cliques."""
    first: dict[tuple[str, str], int] = {}
    for record in case.history.records():
        first.setdefault((record.resource, record.name), record.revision)
    found = []
    for index in range(len(wanted.services)):
        alone = [c.name for c in wanted.cliques.values() if c.set_index == index and not c.group]
        last = max(first.get(("podcliques", clique), 0) for clique in alone)
        gangs = {clique.gang for clique in wanted.cliques.values() if clique.set_index == index}
        groups = {clique.group for clique in wanted.cliques.values() if clique.set_index == index and clique.group}
        later = [*(("podgangs", gang) for gang in gangs), *(("podcliquescalinggroups", group) for group in groups)]
        found += [f"{resource}/{one}" for resource, one in later if first.get((resource, one), last) < last]
    return sorted(found)


def _check_attendants(case: Case, workload: Document, view: View) -> None:
    """RES-001, RES-002, RES-003, RES-004, RES-005."""
    wanted = expected_secondary.secondary_resources(workload)
    cliques = [record.revision for record in case.history.records("podcliques")]
    for one in wanted:
        found = view.get(one.resource, one.name)
        case.expect("RES-001", f"{one.resource}/{one.name} exists", True, found is not None)
        observed.same_labels(case, "RES-002", one.resource, {one.name: one.labels}, view)
        observed.same_owners(case, "RES-003", one.resource, {one.name: ("PodCliqueSet", name(workload))}, view)
        made = [record.revision for record in case.history.records(one.resource, one.name)]
        early = min(made) < min(cliques) if made and cliques else ABSENT
        case.expect("RES-005", f"{one.resource}/{one.name} exists before the first clique", True, early)
    account, role = wanted[0].name, wanted[1].name
    found_role, binding = view.get("roles", role), view.get("rolebindings", role)
    rules = [
        {key: sorted(values) for key, values in rule.items() if isinstance(values, list)}
        for rule in items(found_role, "rules")
    ]
    case.expect("RES-004", "rules of the Role", expected_secondary.rules(), of(found_role, rules))
    bound = {
        "role": [text(binding, "roleRef", "kind"), text(binding, "roleRef", "name")],
        "subjects": [[text(s, key) for key in ("kind", "name", "namespace")] for s in items(binding, "subjects")],
    }
    right = {"role": ["Role", role], "subjects": [["ServiceAccount", account, case.namespace]]}
    same(case, "RES-004", "what RoleBindings bind", {role: right}, {role: of(binding, bound)})


def _check_gangs_and_templates(case: Case, workload: Document, wanted: Expected, view: View) -> None:
    """RES-020, RES-023."""
    for kind in ("labels", "annotations"):
        right = dict.fromkeys(wanted.gangs, mirrored(workload, kind))
        same(case, "RES-020", f"{kind} of the set on its gangs", right, _on_gangs(workload, wanted, view, kind))
    tagged = {gang: mapping(view.get("podgangs", gang), "metadata", "labels") for gang in wanted.gangs}
    foo = [gang for gang, tags in tagged.items() if "grove.io/foo" in tags]
    case.expect("RES-020", "gangs with a grove.io label of the set", [], foo)
    managers = {gang: of(view.get("podgangs", gang), tags.get(labels.MANAGED_BY)) for gang, tags in tagged.items()}
    same(case, "RES-020", "who manages the gangs", dict.fromkeys(wanted.gangs, labels.OPERATOR), managers)
    for clique in wanted.cliques.values():
        pods = predicates.pods_of(view, clique.name)
        for what, found in ((clique.name, view.get("podcliques", clique.name)), *((name(p), p) for p in pods)):
            own = {**clique.template.labels, labels.GANG: clique.gang} if clique.template.labels else {}
            have = mapping(found, "metadata", "labels")
            same(case, "RES-023", "labels", {what: own}, {what: of(found, {key: have.get(key) for key in own})})
            kept: dict[str, str | None] = {**clique.template.annotations, labels.TOPOLOGY: None}
            notes = mapping(found, "metadata", "annotations")
            noted = {what: of(found, {key: notes.get(key) for key in kept})}
            same(case, "RES-023", "annotations", {what: kept}, noted)
    kinds = {
        group: of(found := view.get("podcliquescalinggroups", group), observed.annotation(found, KIND))
        for group in wanted.groups
    }
    given = {text(config, "name"): text(config, "annotations", KIND) for config in _groups(workload)}
    right_kinds = {group: next(v for short, v in given.items() if group.endswith(f"-{short}")) for group in kinds}
    same(case, "RES-023", "annotations of scaling groups", right_kinds, kinds)


KIND = "example.com/kind"


def _groups(workload: Document) -> list[Document]:
    return items(workload, "spec", "template", "podCliqueScalingGroups")


def mirrored(workload: Document, kind: str) -> dict[str, str]:
    """The labels or annotations of a set that its gangs are to carry, apart from those that Grove sets (OBJ-230)."""
    own = mapping(workload, "metadata", kind)
    return {k: v for k, v in own.items() if not k.startswith(labels.OWN_PREFIX) and k != labels.MANAGED_BY}


def _on_gangs(workload: Document, wanted: Expected, view: View, kind: str) -> dict[str, dict[str, str | None] | Absent]:
    """What the gangs have for the labels or annotations that they are to carry; they may have others beside them."""
    have = {gang: of(found := view.get("podgangs", gang), mapping(found, "metadata", kind)) for gang in wanted.gangs}
    return carried(dict.fromkeys(wanted.gangs, mirrored(workload, kind)), have)


def _mirrored(workload: Document, wanted: Expected) -> predicates.Predicate:
    right = dict.fromkeys(wanted.gangs, mirrored(workload, "labels"))
    return lambda view: _on_gangs(workload, wanted, view, "labels") == right


def _check_autoscalers(case: Case, workload: Document, view: View) -> None:
    """RES-030, RES-031."""
    wanted = expected_secondary.autoscalers(workload)
    case.expect("RES-030", "autoscalers by name", sorted(wanted), view.names("horizontalpodautoscalers"))
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for one in wanted.values():
        found = view.get(one.resource, one.name)
        spec = at(found, "spec")
        right[one.name] = {"target": list(one.target), "min": one.least, "max": one.most, "metrics": one.metrics}
        target = [text(spec, "scaleTargetRef", "kind"), text(spec, "scaleTargetRef", "name")]
        metrics = expected_pods.kept(one.metrics, at(spec, "metrics"))
        least, most = number(spec, "minReplicas"), number(spec, "maxReplicas")
        seen[one.name] = of(found, {"target": target, "min": least, "max": most, "metrics": metrics})
    same(case, "RES-030", "specs of autoscalers", right, seen)
    resource = "horizontalpodautoscalers"
    observed.same_labels(case, "RES-031", resource, {one.name: one.labels for one in wanted.values()}, view)
    owner = ("PodCliqueSet", name(workload))
    observed.same_owners(case, "RES-031", resource, dict.fromkeys(wanted, owner), view)


def _check_claims(case: Case, workload: Document, planned: dict[str, Claim], view: View) -> None:
    """RES-040, RES-041, RES-042."""
    case.expect("RES-040", "claims by name", sorted(planned), view.names("resourceclaims"))
    observed.same_labels(case, "RES-041", "resourceclaims", {c.name: c.labels for c in planned.values()}, view)
    observed.same_owners(case, "RES-041", "resourceclaims", {c.name: c.owner for c in planned.values()}, view)
    right = {claim.name: expected_claims.own_spec(workload, claim) for claim in planned.values()}
    seen = {
        found: of(claim := view.get("resourceclaims", found), expected_pods.kept(spec, at(claim, "spec")))
        for found, spec in right.items()
    }
    same(case, "RES-042", "specs of claims", right, seen)


def _check_pods(case: Case, workload: Document, wanted: Expected, view: View) -> None:
    """RES-043, RES-044. A filter that is ignored shows as a claim too many, one that takes too much as one too few."""
    for clique in wanted.cliques.values():
        for pod in predicates.pods_of(view, clique.name):
            index = expected_pods.index(pod)
            right = expected_claims.of_pod(workload, clique, -1 if index is None else index)
            given = observed.claims_of_pod(pod)
            missing = [claim for claim in right if claim not in given]
            case.expect("RES-043", f"claims that {name(pod)} lacks", [], missing)
            case.expect("RES-044", f"claims that {name(pod)} has too many", [], [c for c in given if c not in right])
            for container in expected_pods.containers(pod.get("spec")):
                used = observed.claims_of_container(pod, container)
                what = f"claims that {name(pod)}/{text(container, 'name')} doesn't use"
                case.expect("RES-043", what, [], [claim for claim in right if claim not in used])
