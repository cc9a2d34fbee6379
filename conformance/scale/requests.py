"""API requests of a phase, by program, verb and resource, from the API server's audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from conformance.cluster import users
from conformance.cluster.audit import READ_VERBS, AuditKey

NOT_COUNTED = frozenset({"kwok-controller", "kube-scheduler"})
"""Programs that would send the same number of requests without any operator: the fake kubelet and the default
scheduler."""
CONTROL_PLANE = frozenset({"kube-apiserver", "kube-controller-manager"})
"""Programs whose reads depend on time and not on the operator. They are listed, but not included in the totals of
reads."""


def summarize(requests: Counter[AuditKey], pods: int) -> dict[str, dict[str, object]]:
    """Return `writes` and `reads`, each with totals and a table. KWOK, kube-scheduler and the suite are not included in
    the totals."""
    return {
        "writes": _table(
            Counter({key: n for key, n in requests.items() if key.verb not in READ_VERBS}), pods, NOT_COUNTED
        ),
        "reads": _table(
            Counter({key: n for key, n in requests.items() if key.verb in READ_VERBS}),
            pods,
            NOT_COUNTED | CONTROL_PLANE,
        ),
    }


def is_counted(user: str, program: str, excluded_programs: Collection[str] = NOT_COUNTED) -> bool:
    """Return whether a request counts: it is not from the suite, and not from a component in
    `excluded_programs`."""
    return user != users.SUITE and not (users.is_component(user) and program in excluded_programs)


def count_throttled(requests: Counter[AuditKey]) -> int:
    """Return the number of requests, from all clients, that the API server rejected because there were too many."""
    return sum(count for key, count in requests.items() if key.code == 429)


def _table(requests: Counter[AuditKey], pods: int, excluded_programs: frozenset[str]) -> dict[str, object]:
    rows: Counter[tuple[str, str, str]] = Counter()
    rejected = conflicts = total = 0
    for key, count in requests.items():
        rows[key.program, key.verb, key.resource] += count
        if not is_counted(key.user, key.program, excluded_programs):
            continue
        total += count
        rejected += count if key.code >= 400 else 0
        conflicts += count if key.code == 409 else 0
    return {
        "total": total,
        "perPod": _per_pod(total, pods),
        "refused": rejected,
        "conflicts": conflicts,
        "rows": [
            {"program": program, "verb": verb, "resource": resource, "count": count, "perPod": _per_pod(count, pods)}
            for (program, verb, resource), count in sorted(rows.items(), key=lambda item: (-item[1], item[0]))
        ],
    }


def _per_pod(count: int, pods: int) -> float:
    return round(count / max(pods, 1), 3)
