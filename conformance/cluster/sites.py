"""Probes of release sites.

Without a network, only PATIENCE seconds are lost: all sites are probed at the same time, in threads (there is no other
way to time out a name server that does not respond), and this process does not contact a failed site again.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable

from conformance.cluster.pins import Site

PATIENCE = 2.4
"""Seconds within which a site must respond. A bad network costs at most twice this time in total."""


class Unavailable(Exception):
    """No verified official file is available; `str()` gives the reason. The caller then builds the program."""


class Sites:
    """The release sites that respond. Results are kept for the lifetime of this object."""

    def __init__(self) -> None:
        self._failed: dict[str, str] = {}
        self._answered: set[str] = set()

    def probe(self, sites: Iterable[Site]) -> None:
        """Probe all sites that have not been probed yet, at the same time. Takes at most PATIENCE seconds."""
        roots = {site.root for site in sites} - self._answered - self._failed.keys()
        threads = [threading.Thread(target=self._probe_root, args=(root,), daemon=True) for root in roots]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for root in roots - self._answered:
            self._failed.setdefault(root, f"no answer within {PATIENCE:g} s")

    def require(self, site: Site) -> None:
        """Raise Unavailable if the site is known to fail."""
        if reason := self._failed.get(site.root):
            raise Unavailable(f"{site.root}: {reason}")

    def give_up(self, site: Site, reason: object) -> Unavailable:
        """Record that the site fails, and return the error to raise."""
        self._failed[site.root] = str(reason)
        return Unavailable(f"{site.root}: {reason}")

    def _probe_root(self, root: str) -> None:
        request = urllib.request.Request(root + "/", method="HEAD")  # noqa: S310 - pins.py lets only http(s) pass
        try:
            with _OPENER.open(request, timeout=PATIENCE):
                pass
        except urllib.error.HTTPError:
            pass  # "not found" and redirects are also responses
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._failed[root] = str(getattr(error, "reason", error))
            return
        self._answered.add(root)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects: the front page of a site may redirect to another host, which need not respond."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)
