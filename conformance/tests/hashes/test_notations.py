"""Sets whose quantities are written in another notation of the same amounts: nothing is restarted."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import incarnations, sets
from conformance.testing.comparison import same
from conformance.tests.hashes.test_order_without_meaning import has_second


@requirements("TMPL-013", "TMPL-014")
def test_another_notation_restarts_nothing(case: Case) -> None:
    case.nodes("dgx-h100", 4)
    read = template_pairs.read()
    pairs = {"TMPL-013": ("usual", read.notations), "TMPL-014": ("foreign", read.foreign_notations)}
    for id, (name, notations) in pairs.items():
        case.create(sets.made(case, name, [pair.before for pair in notations]))
        what = f"{name} has its pods, with hashes"
        case.until(id, what, sets.have_pods({name: len(notations)}))
    before = incarnations.uids(case.quiet(1), "pods")

    for name, notations in pairs.values():
        sets.become(case, sets.made(case, name, [pair.after for pair in notations], replicas=2))
    # The second replica shows that the operator has looked at the new spec.
    for id, (name, _) in pairs.items():
        case.until(id, f"{name} has the replica that it was given with it", has_second([name]))
    view = case.quiet(1.5)
    now = incarnations.uids(view, "pods")
    for id, (name, _) in pairs.items():
        own = {pod: uid for pod, uid in before.items() if pod.startswith(f"{name}-")}
        same(case, id, f"uids of the pods of {name}", own, {pod: now.get(pod, "") for pod in own})
        case.expect(id, f"what {name} says of an update", None, sets.progress(view, name))
