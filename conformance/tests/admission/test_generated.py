"""Sets made from random numbers, judged by the implementation and by the suite's own model of the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.grove.admission import examples, model, updates
from conformance.grove.admission.defaults import defaulted, differences, without_coherent
from conformance.grove.admission.violation import Facts, Violation
from conformance.suite.case import Case
from conformance.suite.dry_run import Reply
from conformance.suite.requirement import requirements
from conformance.tests.admission import judging

CREATED = 240
STORED, CHANGES = 12, 10
SHOWN = 5


@requirements("ADM-037")
def test_generated_sets_get_the_verdict_of_the_rules(case: Case) -> None:
    """Randomly generated sets and updates MUST get the verdict that the rules give."""
    with judging.bound(case) as binding:
        facts = _facts(case, binding)
        made = [examples.valid(case.random, facts) for _ in range(CREATED)]
        made = [examples.mutated(case.random, pcs) if i % 4 else pcs for i, pcs in enumerate(made)]
        wanted = [model.create(pcs, facts) for pcs in made]
        _judge(case, "new sets", made, wanted, case.dry_run.all([case.dry_run.create(pcs) for pcs in made]))

        changed, wanted, sent, created = [], [], [], []
        for i in range(STORED):
            stored = examples.valid(case.random, facts, name=f"stored-{i}")
            created.append(case.create(stored))
            sent.append(stored)
            for _ in range(CHANGES):
                pcs = examples.mutated(case.random, stored)
                pcs["metadata"]["name"] = stored["metadata"]["name"]
                changed.append(pcs)
                wanted.append(updates.update(pcs, stored, facts))
        _judge(case, "stored sets", sent, [()] * STORED, [Reply(201, obj) for obj in created])
        _judge(case, "updates", changed, wanted, case.dry_run.all([case.dry_run.replace_spec(pcs) for pcs in changed]))


def _facts(case: Case, binding: str) -> Facts:
    features = case.implementation.features
    return Facts(
        topology="topology" in features,
        mnnvl="mnnvl" in features,
        schedulers=(case.implementation.scheduler_name,),
        bindings={binding: list(judging.LEVELS)},
    )


def _judge(
    case: Case,
    what: str,
    made: Sequence[dict[str, Any]],
    wanted: Sequence[Sequence[Violation]],
    replies: Sequence[Reply],
) -> None:
    refused = sum(map(bool, wanted))
    wrong = [
        {"because": why, "set": pcs}
        for pcs, rules, reply in zip(made, wanted, replies, strict=True)
        if (why := _complaint(pcs, rules, reply, coherent="coherent" in case.implementation.features))
    ]
    about = f"{len(made)} {what}, of which the rules refuse {refused}: those judged otherwise"
    case.expect("ADM-037", about, [0], [len(wrong), *wrong[:SHOWN]] if wrong else [0])


def _complaint(pcs: dict[str, Any], rules: Sequence[Violation], reply: Reply, *, coherent: bool) -> str:
    """Why an answer is wrong; empty for a right one."""
    if not rules:
        if not reply.accepted:
            return f"no rule is broken, yet {reply}"
        spec = reply.object.get("spec")
        if coherent and isinstance(spec, dict):
            spec = without_coherent(pcs, spec)
        other = differences(defaulted(pcs)["spec"], spec, "spec")
        return f"the accepted set has other values: {other}" if other else ""
    broken = ", ".join(f"{rule.rule} at {rule.leaf}" for rule in rules)
    if not reply.refused:
        return f"{broken}, yet {reply}"
    # Where several rules are broken an earlier step may hide later ones. A hook that cannot decode names no field.
    named = any(error.is_at(rule.leaf) for error in reply.errors for rule in rules)
    return "" if named or reply.status == 400 else f"{broken}, yet the answer names none of them: {reply}"
