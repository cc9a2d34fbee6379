"""When an implementation that could still do what is waited for has nothing left to do.

Whoever waits for something that the implementation does not know waits in vain for the whole time-out. A wait may end
early when, for SILENCE seconds, nothing of the namespace moves, the test does nothing (`History.stir`) and the
implementation sends no request. That is more than any interval at which an implementation looks for work, and the
delays that the contract names are added to it.

An implementation whose requests are refused backs off: each delay is a multiple of the one before, as client-go's, so
the next attempt comes within a multiple of the time since the first refusal. The silence must be longer than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from conformance.cluster.audit import Request
from conformance.grove.admission import durations
from conformance.grove.fields import count, text
from conformance.history.view import View

SILENCE = 30.0
NOT_FOUND, CONFLICT = 404, 409
GROWTH = 4
"""The next attempt of a back-off comes within so many times the time since its first: twice, if delays double without
jitter."""
OTHERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kwok-controller", "kwokctl")
"""Programs of the cluster, which ask on their own, whatever the implementation does."""


class Silence:
    """What one test knows of the implementation's requests. `poll` gives those since it was asked last."""

    def __init__(
        self, poll: Callable[[], list[Request]], namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._poll, self._namespace, self._clock = poll, namespace, clock
        self._last = clock()
        self._refusals: tuple[float, float] | None = None
        """When the first and the last request was refused, by the server's clock."""

    def over(self, still: float, least: float) -> bool:
        """Whether nothing is to be expected any more: for `least` seconds, or for as long as a back-off may last, no
        request was sent. `still`: seconds since something last moved."""
        requests = [request for request in self._poll() if _of_implementation(request)]
        if requests:
            self._last = self._clock()
        for request in requests:
            # In the namespace of an earlier test, which is being deleted, everything is refused.
            if _backs_off(request) and request.namespace in ("", self._namespace):
                first, last = self._refusals or (request.at, request.at)
                self._refusals = min(first, request.at), max(last, request.at)
        first, last = self._refusals or (0.0, 0.0)
        return min(still, self._clock() - self._last) >= max(least, GROWTH * (last - first))


def delay(view: View, timeout: float) -> float:
    """The longest delay that a set or a Lease of the namespace asks for, of those that end within the time-out."""
    asked = (text(found, "spec", "template", "terminationDelay") for found in view.list("podcliquesets"))
    named = [float(durations.seconds(each) or 0) for each in asked]
    named += [float(count(found, "spec", "leaseDurationSeconds")) for found in view.list("leases")]
    return max((each for each in named if each <= timeout), default=0.0)


def _backs_off(request: Request) -> bool:
    """Whether the next attempt may follow after a back-off only. A write that met a newer version is repeated at once;
    who creates what exists already waits until that is gone."""
    if request.code == CONFLICT:
        return request.verb == "create"
    return request.code >= 400 and request.code != NOT_FOUND


def _of_implementation(request: Request) -> bool:
    return request.program not in OTHERS and not request.program.startswith("grove-conformance")
