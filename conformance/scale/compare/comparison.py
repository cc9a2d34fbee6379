"""The comparison of two sides as a document: verdict, estimates, counts, unused rounds, and warnings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.errors import Exit, UsageError
from conformance.scale.compare import metrics, validity
from conformance.scale.compare.rounds import Round
from conformance.scale.compare.statistics import ALPHA, estimate
from conformance.scale.compare.verdicts import (
    CountJudgement,
    CountVerdict,
    TimeJudgement,
    TimeVerdict,
    judge_count,
    judge_time,
)
from conformance.scale.results import Result

MIN_CHANGE = 0.05
"""The smallest change of one kind of write, per pod, that is listed."""
API_VERSION, KIND = "conformance.grove.io/v1alpha1", "ScaleComparison"


@dataclass(frozen=True)
class Question:
    """The question that a comparison answers. Effects and thresholds are fractions. If a threshold is None, the exit
    code does not depend on it."""

    metric: str = ""
    minimum_effect: float = 0.05
    count_effect: float = 0.02
    threshold: float | None = None
    count_threshold: float | None = 0.05
    alpha: float = ALPHA
    seed: int = 0
    force: bool = False


def compare(
    rounds: Sequence[Round], question: Question, names: tuple[str, str], warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the document. Raises UsageError if the results cannot be compared."""
    if not rounds:
        raise UsageError("there is no round to compare", hint="give at least one result of each side")
    results = [result for round_ in rounds for result in (round_.base, round_.head)]
    problems = validity.differences(results)
    problems += [f"base: {reason}" for reason in validity.implementation_changes([round_.base for round_ in rounds])]
    problems += [f"head: {reason}" for reason in validity.implementation_changes([round_.head for round_ in rounds])]
    if problems and not question.force:
        raise UsageError(
            f"the results are not comparable: {'; '.join(problems)}", hint="measure both sides alike, or use --force"
        )
    usable_rounds = [round_ for round_ in rounds if not round_.unused]
    unusable_rounds = [
        {"round": round_.number, "failed": round_.failed, "reasons": round_.unused}
        for round_ in rounds
        if round_.unused
    ]
    metric = metrics.tested_metric(_most_complete(results), question.metric)
    tested_judgement = judge_time(
        *_columns(usable_rounds, metric), question.minimum_effect, seed=question.seed, alpha=question.alpha
    )
    counts = {name: _judge_count(rounds, name, question.count_effect) for name in metrics.COUNTS}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "scenario": rounds[0].base["scenario"],
        "environment": rounds[0].base["environment"],
        "measured": {"from": min(_days(results)), "to": max(_days(results))},
        "base": _side(names[0], rounds[0].base),
        "head": _side(names[1], rounds[0].head),
        "question": asdict(question) | {"metric": metric},
        "rounds": {
            "played": len(rounds),
            "used": len(usable_rounds),
            "unused": unusable_rounds,
        },
        "warnings": [*warnings, *problems],
        "verdict": tested_judgement.verdict.value,
        "why": tested_judgement.reason,
        "primary": _describe_time(metric, usable_rounds, question),
        "counts": {name: _describe_count(name, rounds, judgement) for name, judgement in counts.items()},
        "changedWrites": _changed_writes(rounds),
        "times": {
            name: _describe_time(name, usable_rounds, question)
            for name in _common_times(usable_rounds)
            if name != metric
        },
        "gate": _gate_reasons(tested_judgement, counts[metrics.GATED_COUNT], rounds, question),
    }


def exit_code(document: dict[str, Any]) -> int:
    """Return the exit code of a comparison. Without usable times, counts are a sufficient answer unless a time
    threshold was requested."""
    if document["gate"]:
        return Exit.NOT_CONFORMANT
    has_counts = document["counts"][metrics.GATED_COUNT]["verdict"] != CountVerdict.INCONCLUSIVE
    is_answered = document["verdict"] != TimeVerdict.INVALID or (
        has_counts and document["question"]["threshold"] is None
    )
    return Exit.CONFORMANT if is_answered else Exit.NO_ANSWER


def _gate_reasons(
    tested_judgement: TimeJudgement, write_judgement: CountJudgement, rounds: Sequence[Round], question: Question
) -> list[str]:
    """Return the reasons for which the comparison fails; empty if it does not."""
    reasons = []
    if (
        tested_judgement.verdict == TimeVerdict.SLOWER
        and question.threshold is not None
        and tested_judgement.estimate is not None
    ):
        change = tested_judgement.estimate.ratio - 1
        if change > question.threshold:
            reasons.append(f"slower by {change:.1%}, beyond the threshold of {question.threshold:.0%}")
    if (
        write_judgement.verdict == CountVerdict.MORE
        and question.count_threshold is not None
        and write_judgement.band is not None
    ):
        change = write_judgement.band.ratio - 1
        if change > question.count_threshold:
            reasons.append(f"{change:.1%} more writes, beyond the threshold of {question.count_threshold:.0%}")
    if failed_rounds := [str(round_.number) for round_ in rounds if round_.failed]:
        reasons.append(f"the head did not do its work in round {', '.join(failed_rounds)}")
    return reasons


def _side(name: str, result: Result) -> dict[str, Any]:
    return {"name": name, "implementation": result["implementation"], "binder": result["binder"]}


def _days(results: Sequence[Result]) -> list[str]:
    return [result["startedAt"].partition("T")[0] for result in results]


def _most_complete(results: Sequence[Result]) -> Result:
    return max(results, key=lambda result: len(metrics.times(result)))


def _common_times(usable_rounds: Sequence[Round]) -> list[str]:
    """Return the names of the times that every run has, in the order of the first run."""
    if not usable_rounds:
        return []
    times_by_run = [metrics.times(result) for round_ in usable_rounds for result in (round_.base, round_.head)]
    return [name for name in times_by_run[0] if all(name in times for times in times_by_run)]


def _columns(usable_rounds: Sequence[Round], name: str) -> tuple[list[float], list[float]]:
    values = [(metrics.times(round_.base).get(name), metrics.times(round_.head).get(name)) for round_ in usable_rounds]
    pairs = [(base, head) for base, head in values if base and head]
    return [base for base, _ in pairs], [head for _, head in pairs]


def _describe_time(name: str, usable_rounds: Sequence[Round], question: Question) -> dict[str, Any]:
    base, head = _columns(usable_rounds, name)
    result = (
        estimate(base, head, question.minimum_effect, seed=question.seed, alpha=question.alpha)
        if len(base) > 1
        else None
    )
    return {"base": base, "head": head, "estimate": None if result is None else asdict(result)}


def _judge_count(rounds: Sequence[Round], name: str, minimum_effect: float) -> CountJudgement:
    """Judge a count, using the rounds in which both sides did their work, even disturbed rounds: other load on the
    machine does not change counts."""
    return judge_count(*_count_columns(rounds, name), minimum_effect)


def _count_columns(rounds: Sequence[Round], name: str) -> tuple[list[float], list[float]]:
    completed_rounds = _completed_rounds(rounds)
    base = [metrics.counts(round_.base)[name] for round_ in completed_rounds]
    return base, [metrics.counts(round_.head)[name] for round_ in completed_rounds]


def _completed_rounds(rounds: Sequence[Round]) -> list[Round]:
    return [round_ for round_ in rounds if not validity.failures(round_.base) and not validity.failures(round_.head)]


def _changed_writes(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """Return the kinds of writes whose medians differ, the largest difference first."""
    completed_rounds = _completed_rounds(rounds)
    base, head = (
        [metrics.writes(round_.base) for round_ in completed_rounds],
        [metrics.writes(round_.head) for round_ in completed_rounds],
    )
    requests: list[dict[str, Any]] = [
        {
            "request": name,
            "base": round(statistics.median(counts.get(name, 0.0) for counts in base), 4),
            "head": round(statistics.median(counts.get(name, 0.0) for counts in head), 4),
        }
        for name in dict.fromkeys(name for counts in (*base, *head) for name in counts)
    ]
    changed_requests = [request for request in requests if abs(request["head"] - request["base"]) >= MIN_CHANGE]
    return sorted(changed_requests, key=lambda request: -abs(request["head"] - request["base"]))


def _describe_count(name: str, rounds: Sequence[Round], judgement: CountJudgement) -> dict[str, Any]:
    base, head = _count_columns(rounds, name)
    ratio = judgement.band.ratio if judgement.band is not None and math.isfinite(judgement.band.ratio) else None
    noise = judgement.band.noise if judgement.band is not None else None
    return {
        "base": [round(value, 4) for value in base],
        "head": [round(value, 4) for value in head],
        "ratio": ratio,
        "noise": noise,
        "verdict": judgement.verdict.value,
        "why": judgement.reason,
    }
