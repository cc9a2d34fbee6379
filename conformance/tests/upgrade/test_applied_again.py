"""After a take-over, users apply the manifests again that their sets were created from: nothing is restarted."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.grove.template_hashes import LEGACY
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import incarnations, predicates, sets
from conformance.testing.comparison import same
from conformance.testing.sets import Object
from conformance.tests.upgrade import takeover


@requirements("UPG-010")
def test_a_manifest_can_be_applied_again_after_an_upgrade(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    old = case.roles.upgrades[0]
    case.roles.downgrade(old)
    case.create(sent(case, "again"))
    case.until("UPG-010", f"{old.about}: the set has its pods", takeover.has_all_hashes("again", PODS))
    case.until("UPG-010", f"{old.about}: the set is available", predicates.available("again", 1))
    case.quiet(1)
    since = case.history.mark()
    case.roles.upgrade()
    case.create(sent(case, "model"))
    what = "the hashes become those that the new operator writes"
    case.eventually("UPG-010", what, takeover.has_hashes_of("again", "model"))
    _apply_again(case, "UPG-010", "again", since)


@requirements("UPG-011")
def test_a_manifest_can_be_applied_again_to_what_a_go_operator_stored(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    case.create(stored(case, "again"))
    case.until("UPG-011", "the set has its pods", takeover.has_all_hashes("again", PODS))
    case.until("UPG-011", "the set is available", predicates.available("again", 1))
    own = takeover.everything(case.quiet(1), "again")
    case.roles.stop("operator")
    takeover.write_hashes(case, "again", LEGACY[0])
    since = case.history.mark()
    case.roles.restart("operator")
    case.eventually("UPG-011", "the hashes become the operator's own", takeover.has_hashes("again", own))
    _apply_again(case, "UPG-011", "again", since)


def _apply_again(case: Case, id: str, name: str, since: int) -> None:
    before = _uids(case, name)
    # The second replica shows that the operator has looked at the new spec.
    sets.become(case, sent(case, name, replicas=2))
    case.until(id, "the set has the replica that it was given with it", sets.have_second_replica([name]))
    case.quiet(2)
    now = _uids(case, name)
    same(case, id, "uids of pods", before, {pod: now.get(pod, "") for pod in before})
    case.expect(id, "states in which the set is updated", [], takeover.updates(case, name, since))


def _uids(case: Case, name: str) -> dict[str, str]:
    found = incarnations.uids(case.history.view(), "pods")
    return {pod: uid for pod, uid in found.items() if pod.startswith(f"{name}-")}


NOTATIONS = template_pairs.read().notations
PODS = len(NOTATIONS)


def sent(case: Case, name: str, replicas: int = 1) -> Object:
    """A set with quantities as its user writes them."""
    return sets.made(case, name, [pair.after for pair in NOTATIONS], replicas=replicas)


def stored(case: Case, name: str) -> Object:
    """The set as a Go operator's webhook has written it."""
    return sets.made(case, name, [pair.before for pair in NOTATIONS])
