"""Detect that an implementation has nothing left to do, so that a wait can no longer succeed.

A wait for something that the implementation does not support would last for its whole timeout. It may end early if, for
SILENCE_SECONDS, nothing in the namespace changes, the test does nothing (`History.record_action`) and the
implementation sends no request. SILENCE_SECONDS is longer than any interval at which implementations poll for work;
delays that the contract defines are added.

An implementation whose requests are rejected backs off: each delay is a multiple of the previous one, as in client-go,
so the next attempt is made within a multiple of the time since the first rejection. The silence must last longer than
that.

An implementation that waits without success may poll every few seconds forever, and write each time that it is still
waiting. A request or an object state that has been repeated many times since anything else changed is therefore not a
sign of life (`history.circles`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from conformance.cluster import users
from conformance.cluster.audit import AuditedRequest
from conformance.grove.admission import durations
from conformance.grove.fields import count, text
from conformance.history.circles import RepetitionCounter
from conformance.history.view import View

SILENCE_SECONDS = 30.0
NOT_FOUND, CONFLICT = 404, 409
BACKOFF_GROWTH = 4
"""The next attempt of a back-off is made within this multiple of the time since its first attempt. (If delays double
without jitter, the multiple is two.)"""


@dataclass
class _Refusals:
    """The times of the first and the last rejection of similar requests, and the longest time between two rejections,
    by the server's clock."""

    first: float
    last: float
    longest: float = 0.0

    def add(self, at: float) -> None:
        self.longest, self.last = max(self.longest, at - self.last), max(self.last, at)

    @property
    def next(self) -> float:
        """Return the seconds within which the next attempt is made, whether the delays grow or stay the same."""
        return BACKOFF_GROWTH * min(self.last - self.first, BACKOFF_GROWTH * self.longest)


class Silence:
    """The requests of the implementation as seen by one test. `poll` returns the requests since the last call."""

    def __init__(
        self, poll: Callable[[], list[AuditedRequest]], namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._poll, self._namespace, self._clock = poll, namespace, clock
        self._last = self._polled = clock()
        self._circles = RepetitionCounter()
        self._refusals: dict[Hashable, _Refusals] = {}

    def is_lasting(self, still: float, minimum: float) -> bool:
        """Return whether nothing more is to be expected: there was no change and no new request for `minimum` seconds,
        and for as long as a back-off may last. `still`: seconds since the last change."""
        now = self._clock()
        if still < now - self._polled:
            self._circles.forget()
        self._polled = now
        requests = [request for request in self._poll() if _of_implementation(request)]
        if sum(self._circles.is_new(request._replace(at=0, message="")) for request in requests):
            self._last = now
        for request in requests:
            # Rejections in other namespaces do not count: the namespace of an earlier test is being deleted and rejects
            # everything.
            if _backs_off(request) and request.namespace in ("", self._namespace):
                # A back-off is about one object, or about a collection in which each attempt uses another name.
                for name in (request.name, None):
                    key = request.verb, request.resource, name
                    self._refusals.setdefault(key, _Refusals(request.at, request.at)).add(request.at)
        longest = max((refusals.next for refusals in self._refusals.values()), default=0.0)
        return self.lasts(still) >= max(minimum, longest)

    def lasts(self, still: float) -> float:
        """Return the number of seconds since the last known change or new request."""
        return min(still, self._clock() - self._last)


def delay(view: View, timeout: float) -> float:
    """Return the longest delay that a set or Lease of the namespace defines and that does not exceed the timeout; 0 if
    there is none."""
    delays = (text(obj, "spec", "template", "terminationDelay") for obj in view.list("podcliquesets"))
    lengths = [float(durations.seconds(seconds) or 0) for seconds in delays]
    lengths += [float(count(obj, "spec", "leaseDurationSeconds")) for obj in view.list("leases")]
    return max((seconds for seconds in lengths if seconds <= timeout), default=0.0)


def _backs_off(request: AuditedRequest) -> bool:
    """Return whether the next attempt may follow only after a back-off. A write that conflicts with a newer version is
    retried at once; a create that conflicts with an existing object is retried until that object is gone."""
    if request.code == CONFLICT:
        return request.verb == "create"
    return request.code >= 400 and request.code != NOT_FOUND


def _of_implementation(request: AuditedRequest) -> bool:
    """Return whether a request was sent by a client other than the suite and the components of the cluster, which send
    requests regardless of the implementation."""
    return request.user != users.SUITE and not users.is_component(request.user)
