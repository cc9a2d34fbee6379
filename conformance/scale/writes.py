"""API writes of a phase, by client and resource, from the API server's audit log."""

from __future__ import annotations

from collections import Counter

from conformance.cluster.audit import AuditKey

NOT_COUNTED = frozenset({"kwok-controller", "kube-scheduler"})
"""Programs that would write as much without any operator: the fake kubelet and the default scheduler."""
HARNESS = "grove-conformance"


def counted(writes: Counter[AuditKey], pods: int) -> dict[str, object]:
    """Return totals and a table of writes. `perPod` counts all clients except KWOK, kube-scheduler and the suite."""
    table: Counter[tuple[str, str, str]] = Counter()
    refused = 0
    for key, count in writes.items():
        table[key.program, key.verb, key.resource] += count
        if key.code >= 400 and not _left_out(key):
            refused += count
    total = sum(count for key, count in writes.items() if not _left_out(key))
    rows = [
        {"program": program, "verb": verb, "resource": resource, "count": count, "perPod": round(count / pods, 3)}
        for (program, verb, resource), count in sorted(table.items(), key=lambda item: (-item[1], item[0]))
    ]
    return {"total": total, "perPod": round(total / pods, 3), "refused": refused, "rows": rows}


def _left_out(key: AuditKey) -> bool:
    return key.program in NOT_COUNTED or key.program.startswith(HARNESS)
