"""Sets made from random numbers, judged by the implementation and by the suite's own model of the rules.

Of the rules, only those count that some other requirement has as a MUST: what breaks one of these is to be refused, and
what breaks none of any kind is to be accepted. Between the two, either verdict is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove.admission import examples, model, updates
from conformance.grove.admission.defaults import differences, documented, without_coherent
from conformance.grove.admission.violation import Facts, Violation
from conformance.suite.registry.requirement import Level, load, requirements
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.dry_run import Reply
from conformance.tests.admission import judging

CREATED = 240
STORED, CHANGES = 12, 10
SHOWN = 5


@requirements("ADM-037")
def test_generated_sets_get_the_verdict_of_the_rules(case: Case) -> None:
    """Each complaint names the requirements whose rules the set breaks."""
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
    judged_by = _judged_by()
    refused = sum(any(rule.rule in judged_by for rule in rules) for rules in wanted)
    wrong = [
        {"because": why, "set": pcs}
        for pcs, rules, reply in zip(made, wanted, replies, strict=True)
        if (why := _complaint(pcs, rules, reply, judged_by, coherent="coherent" in case.implementation.features))
    ]
    about = f"{len(made)} {what}, of which the rules refuse {refused}: those judged otherwise"
    case.expect("ADM-037", about, [0], [len(wrong), *wrong[:SHOWN]] if wrong else [0])


def _judged_by() -> dict[str, str]:
    """The MUSTs by the rules that they cite."""
    listed = load().requirements.values()
    binding = [entry for entry in listed if entry.profile == "admission" and entry.level is Level.MUST]
    return {rule: entry.id for entry in binding for rule in entry.source}


def _complaint(
    pcs: dict[str, Any], rules: Sequence[Violation], reply: Reply, judged_by: Mapping[str, str], *, coherent: bool
) -> str:
    """Why an answer is wrong; empty for a right one."""
    broken = [f"{judged_by[each.rule]} ({each.rule} at {each.leaf})" for each in rules if each.rule in judged_by]
    if broken:
        return "" if judging.refused(reply) else f"broken is {', '.join(broken)}, yet {reply}"
    if not (reply.accepted or judging.refused(reply)):
        return f"no verdict: {reply}"
    if not rules:
        if not reply.accepted:
            return "" if model.left_open(pcs) else f"no rule is broken, yet {reply}"
        spec = reply.object.get("spec")
        if coherent and isinstance(spec, dict):
            spec = without_coherent(pcs, spec)
        other = differences(documented(pcs)["spec"], spec, "spec")
        return f"the accepted set has other values: {other}" if other else ""
    return ""
