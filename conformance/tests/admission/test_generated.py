"""Tests with randomly generated sets, for which the implementation's verdict is compared with the suite's own model of
the rules.

A set that breaks the rule of another MUST requirement must be rejected, and a set that breaks no rule must be accepted.
For any other set, either verdict is correct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove.admission import examples, model, updates
from conformance.grove.admission.defaults import differences, with_documented_defaults, without_coherent_defaults
from conformance.grove.admission.violation import AdmissionFacts, Violation
from conformance.suite.registry.requirement import Level, load, requirements
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.dry_run import Reply
from conformance.tests.admission import judging

CREATED_SETS = 240
STORED_SETS, CHANGES_PER_SET = 12, 10
MAX_SHOWN_COMPLAINTS = 5


@requirements("ADM-037")
def test_generated_sets_get_the_verdict_of_the_rules(case: Case) -> None:
    """Each error message names the requirements whose rules the set breaks."""
    with judging.cluster_topology_binding(case) as binding:
        facts = _facts(case, binding)
        new_sets = [examples.valid_set(case.random, facts) for _ in range(CREATED_SETS)]
        new_sets = [examples.mutated_set(case.random, pcs) if i % 4 else pcs for i, pcs in enumerate(new_sets)]
        expected = [model.creation_violations(pcs, facts) for pcs in new_sets]
        _judge(case, "new sets", new_sets, expected, case.dry_run.all([case.dry_run.create(pcs) for pcs in new_sets]))

        changed_sets, expected, stored_sets, created = [], [], [], []
        for i in range(STORED_SETS):
            stored = examples.valid_set(case.random, facts, name=f"stored-{i}")
            created.append(case.create(stored))
            stored_sets.append(stored)
            for _ in range(CHANGES_PER_SET):
                pcs = examples.mutated_set(case.random, stored)
                pcs["metadata"]["name"] = stored["metadata"]["name"]
                changed_sets.append(pcs)
                expected.append(updates.update_violations(pcs, stored, facts))
        _judge(case, "stored sets", stored_sets, [()] * STORED_SETS, [Reply(201, obj) for obj in created])
        replies = case.dry_run.all([case.dry_run.replace_spec(pcs) for pcs in changed_sets])
        _judge(case, "updates", changed_sets, expected, replies)


def _facts(case: Case, binding: str) -> AdmissionFacts:
    features = case.implementation.features
    return AdmissionFacts(
        topology="topology" in features,
        mnnvl="mnnvl" in features,
        schedulers=(case.implementation.scheduler_name,),
        bindings={binding: list(judging.LEVELS)},
    )


def _judge(
    case: Case,
    title: str,
    sets: Sequence[dict[str, Any]],
    expected: Sequence[Sequence[Violation]],
    replies: Sequence[Reply],
) -> None:
    requirement_by_rule = _requirements_by_rule()
    rejected_sets = sum(
        any(violation.rule in requirement_by_rule for violation in violations) for violations in expected
    )
    has_coherent = "coherent" in case.implementation.features
    complaints = [
        {"because": complaint, "set": pcs}
        for pcs, violations, reply in zip(sets, expected, replies, strict=True)
        if (complaint := _complaint(pcs, violations, reply, requirement_by_rule, has_coherent=has_coherent))
    ]
    subject = f"{len(sets)} {title}, of which the rules refuse {rejected_sets}: those judged otherwise"
    case.expect("ADM-037", subject, [0], [len(complaints), *complaints[:MAX_SHOWN_COMPLAINTS]] if complaints else [0])


def _requirements_by_rule() -> dict[str, str]:
    """Return rule → id of the mandatory requirement that cites it."""
    entries = load().requirements.values()
    binding = [entry for entry in entries if entry.profile == "admission" and entry.level is Level.MUST]
    return {rule: entry.id for entry in binding for rule in entry.source}


def _complaint(
    pcs: dict[str, Any],
    violations: Sequence[Violation],
    reply: Reply,
    requirement_by_rule: Mapping[str, str],
    *,
    has_coherent: bool,
) -> str:
    """Return why a reply is wrong, or an empty string if it is right."""
    violated_rules = [
        f"{requirement_by_rule[violation.rule]} ({violation.rule} at {violation.leaf})"
        for violation in violations
        if violation.rule in requirement_by_rule
    ]
    if violated_rules:
        return "" if judging.is_refused(reply) else f"broken is {', '.join(violated_rules)}, yet {reply}"
    if not (reply.accepted or judging.is_refused(reply)):
        return f"no verdict: {reply}"
    if not violations:
        if not reply.accepted:
            return "" if model.open_questions(pcs) else f"no rule is broken, yet {reply}"
        spec = reply.object.get("spec")
        if has_coherent and isinstance(spec, dict):
            spec = without_coherent_defaults(pcs, spec)
        different_values = differences(with_documented_defaults(pcs)["spec"], spec, "spec")
        return f"the accepted set has other values: {different_values}" if different_values else ""
    return ""
