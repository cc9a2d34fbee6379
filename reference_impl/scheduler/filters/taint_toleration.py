"""The filter for taints and tolerations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod, Taint, Toleration
from reference_impl.scheduler.selectors import integer

_REPELLING_EFFECTS = ("NoSchedule", "NoExecute")
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")


class TaintToleration(Plugin):
    """Rejects nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""

    def refusal(self, node: Node) -> str:
        if not node.spec.taints or tolerates(self.pod, node.spec.taints):
            return ""
        return "node had untolerated taint(s)"


def tolerates(pod: Pod, taints: Iterable[Taint]) -> bool:
    """Return whether the pod tolerates all NoSchedule and NoExecute taints."""
    tolerations = pod.spec.tolerations or []
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _REPELLING_EFFECTS
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Gt" | "Lt":
            limit, number = _number(toleration.value), _number(taint.value)
            if limit is None or number is None:
                return False
            return number > limit if toleration.operator == "Gt" else number < limit
    return False


def _number(text: str) -> int | None:
    """Return the value of a decimal integer without leading zeros; None for any other text."""
    return integer(text) if _DECIMAL.fullmatch(text) else None
