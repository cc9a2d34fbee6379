"""Detect that an implementation has nothing left to do, so that a wait cannot succeed any more.

A wait for something that the implementation does not know would last for its whole timeout. It may end early if, for
SILENCE seconds, nothing in the namespace changes, the test does nothing (`History.stir`) and the implementation sends
no request. That is more than any interval at which an implementation looks for work; delays that the contract defines
are added.

An implementation whose requests are rejected backs off: each delay is a multiple of the one before, as in client-go, so
the next attempt comes within a multiple of the time since the first rejection. The silence must be longer than that.

An implementation that waits in vain may look again every few seconds for ever, and write each time that it still waits.
A request or the state of an object that has come again and again since anything else has changed is no sign of life
(`history.circles`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from conformance.cluster import users
from conformance.cluster.audit import AuditedRequest
from conformance.grove.admission import durations
from conformance.grove.fields import count, text
from conformance.history.circles import Circles
from conformance.history.view import View

SILENCE = 30.0
NOT_FOUND, CONFLICT = 404, 409
GROWTH = 4
"""The next attempt of a back-off comes within this many times the time since its first: twice, if delays double without
jitter."""


@dataclass
class _Refusals:
    """The times of the first and the last rejection of like requests, and the longest time between two, by the server's
    clock."""

    first: float
    last: float
    longest: float = 0.0

    def add(self, at: float) -> None:
        self.longest, self.last = max(self.longest, at - self.last), max(self.last, at)

    @property
    def next(self) -> float:
        """Return within which time the next attempt comes, whether its delays grow or stay the same."""
        return GROWTH * min(self.last - self.first, GROWTH * self.longest)


class Silence:
    """The requests of the implementation as one test knows them. `poll` returns those since the last call."""

    def __init__(
        self, poll: Callable[[], list[AuditedRequest]], namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._poll, self._namespace, self._clock = poll, namespace, clock
        self._last = self._polled = clock()
        self._circles = Circles()
        self._refusals: dict[Hashable, _Refusals] = {}

    def is_lasting(self, still: float, minimum: float) -> bool:
        """Return whether nothing more is to be expected: no new request was sent for `minimum` seconds, and for as long
        as a back-off may last. `still`: seconds since something last changed."""
        now = self._clock()
        if still < now - self._polled:
            self._circles.forget()
        self._polled = now
        requests = [request for request in self._poll() if _of_implementation(request)]
        if sum(self._circles.new(request._replace(at=0)) for request in requests):
            self._last = now
        for request in requests:
            # In the namespace of an earlier test, which is being deleted, everything is rejected.
            if _backs_off(request) and request.namespace in ("", self._namespace):
                # A back-off is that of one object, or of a collection in which each attempt has another name.
                for like in (request.name, None):
                    key = request.verb, request.resource, like
                    self._refusals.setdefault(key, _Refusals(request.at, request.at)).add(request.at)
        longest = max((refusals.next for refusals in self._refusals.values()), default=0.0)
        return self.lasts(still) >= max(minimum, longest)

    def lasts(self, still: float) -> float:
        """Return for how many seconds nothing has changed, and no new request was sent, as far as it is known."""
        return min(still, self._clock() - self._last)


def delay(view: View, timeout: float) -> float:
    """Return the longest delay that a set or Lease of the namespace defines, among those that end within the
    timeout."""
    delays = (text(obj, "spec", "template", "terminationDelay") for obj in view.list("podcliquesets"))
    named = [float(durations.seconds(seconds) or 0) for seconds in delays]
    named += [float(count(obj, "spec", "leaseDurationSeconds")) for obj in view.list("leases")]
    return max((seconds for seconds in named if seconds <= timeout), default=0.0)


def _backs_off(request: AuditedRequest) -> bool:
    """Return whether the next attempt may follow only after a back-off. A write that met a newer version is repeated at
    once; a create that met an existing object waits until that is gone."""
    if request.code == CONFLICT:
        return request.verb == "create"
    return request.code >= 400 and request.code != NOT_FOUND


def _of_implementation(request: AuditedRequest) -> bool:
    """Return whether anybody but the suite and the components of the cluster sent a request: those send some whatever
    the implementation does."""
    return request.user != users.SUITE and not users.is_component(request.user)
