"""Probes of release sites.

Without a network, only TIMEOUT_SECONDS seconds are lost: all sites are probed at the same time, in threads (there is no
other way to time out a name server that does not respond), and this process does not contact a failed site again.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable

from conformance.cluster.pins import Site

TIMEOUT_SECONDS = 2.4
"""Seconds within which a site must respond. A bad network costs at most twice this time in total."""


class Unavailable(Exception):
    """No verified official file is available; `str()` gives the reason. The caller then builds the program."""


class Sites:
    """The release sites that respond. Results are kept for the lifetime of this object."""

    def __init__(self) -> None:
        self._failures: dict[str, str] = {}
        self._responding_roots: set[str] = set()

    def probe(self, sites: Iterable[Site]) -> None:
        """Probe all sites that have not been probed yet, at the same time. Takes at most TIMEOUT_SECONDS seconds."""
        roots = {site.root for site in sites} - self._responding_roots - self._failures.keys()
        threads = [threading.Thread(target=self._probe_root, args=(root,), daemon=True) for root in roots]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + TIMEOUT_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for root in roots - self._responding_roots:
            self._failures.setdefault(root, f"no answer within {TIMEOUT_SECONDS:g} s")

    def require(self, site: Site) -> None:
        """Raise Unavailable if the site is known to fail."""
        if reason := self._failures.get(site.root):
            raise Unavailable(f"{site.root}: {reason}")

    def record_failure(self, site: Site, reason: object) -> Unavailable:
        """Record that the site fails, and return the error to raise."""
        self._failures[site.root] = str(reason)
        return Unavailable(f"{site.root}: {reason}")

    def _probe_root(self, root: str) -> None:
        request = urllib.request.Request(root + "/", method="HEAD")  # noqa: S310 - pins.py lets only http(s) pass
        try:
            with _OPENER.open(request, timeout=TIMEOUT_SECONDS):
                pass
        except urllib.error.HTTPError:
            pass  # "not found" and redirects are also responses
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._failures[root] = str(getattr(error, "reason", error))
            return
        self._responding_roots.add(root)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects: the front page of a site may redirect to another host, which need not respond."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)
