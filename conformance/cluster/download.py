"""Download official release files and verify them by their pinned digests.

Without a network, PATIENCE is spent once: all sites are probed at the same time, in threads (a name server that does
not answer cannot be timed out otherwise), and a site that failed is not asked again by this process.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from conformance.cluster.pins import Program
from conformance.errors import HarnessError

PATIENCE = 2.4
"""Seconds within which a site must answer. A bad network costs at most twice this in total."""
STALL = 15.0
"""Seconds without a byte after which an attempt is aborted."""
ATTEMPTS = 3
PAUSE = 1.0
"""Seconds before the second attempt. Each further pause is twice as long."""
_CHUNK = 1 << 20


class Unavailable(Exception):
    """No verified official file is available; `str()` says why. The caller builds the program instead."""


class _Passing(Exception):
    """A transient error: another attempt may succeed."""


class ChecksumMismatch(HarnessError):
    """A file does not have the pinned digest. This never falls back to another source."""


class Sites:
    """Which release sites answer. Results are kept for the lifetime of this object."""

    def __init__(self) -> None:
        self._failed: dict[str, str] = {}
        self._answered: set[str] = set()

    def probe(self, urls: Iterable[str]) -> None:
        """Probe every unknown site, all at once. Returns after PATIENCE seconds at the latest."""
        sites = {_site(url) for url in urls} - self._answered - self._failed.keys()
        threads = [threading.Thread(target=self._ask, args=(site,), daemon=True) for site in sites]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for site in sites - self._answered:
            self._failed.setdefault(site, f"no answer within {PATIENCE:g} s")

    def require(self, url: str) -> None:
        """Raise Unavailable if the site of `url` is known to fail."""
        if reason := self._failed.get(_site(url)):
            raise Unavailable(f"{_site(url)}: {reason}")

    def give_up(self, url: str, reason: object) -> Unavailable:
        """Note that the site of `url` fails, and return the error to raise."""
        self._failed[_site(url)] = str(reason)
        return Unavailable(f"{_site(url)}: {reason}")

    def _ask(self, site: str) -> None:
        request = urllib.request.Request(site + "/", method="HEAD")  # noqa: S310 - a setting of ours or the user's
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE):  # noqa: S310
                pass
        except urllib.error.HTTPError:
            pass  # "not found" is an answer too
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._failed[site] = str(getattr(error, "reason", error))
            return
        self._answered.add(site)


def fetch(program: Program, into: Path, sites: Sites) -> str:
    """Download `program` to the file `into`, verify it, and return the URL.

    Raises Unavailable (not available, or its digest is not pinned) or ChecksumMismatch.
    """
    if not program.sha256:
        raise Unavailable("no digest of an official file is pinned")
    sites.require(program.url)
    archive = into.with_name(into.name + ".download")
    attempts = Retrying(
        retry=retry_if_exception_type(_Passing),
        wait=wait_exponential(multiplier=PAUSE, max=10),
        stop=stop_after_attempt(ATTEMPTS),
        reraise=True,
    )
    try:
        digest = attempts(_stream, program.url, archive, sites)
    except _Passing as error:
        raise sites.give_up(program.url, error) from error
    if digest != program.sha256:
        archive.unlink()
        raise ChecksumMismatch(
            f"wrong checksum: expected sha256 {program.sha256}, found {digest}",
            where=program.url,
            hint="try again; if that does not help, the release site, a proxy or the pin in assets.yaml is wrong",
        )
    if program.member:
        _extract(archive, program.member, into)
        archive.unlink()
    else:
        archive.rename(into)
    return program.url


def _stream(url: str, into: Path, sites: Sites) -> str:
    """Write the body of `url` to a file and return its SHA-256. Errors of the local disk are raised as OSError."""
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=STALL) as response, into.open("wb") as file:  # noqa: S310
            length = int(response.headers.get("Content-Length") or -1)
            while chunk := response.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
            if length not in (-1, file.tell()):
                raise _Passing(f"cut off after {file.tell()} of {length} bytes")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (408, 429) or error.code >= 500:
            raise _Passing(f"HTTP {error.code}") from error
        raise Unavailable(f"{url}: HTTP {error.code}") from error
    except urllib.error.URLError as error:  # it never answered
        raise sites.give_up(url, error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        raise _Passing(str(error) or type(error).__name__) from error
    return digest.hexdigest()


def _extract(archive: Path, member: str, into: Path) -> None:
    try:
        with tarfile.open(archive) as tar:
            source = tar.extractfile(member)
            if source is None:
                raise KeyError(member)
            with into.open("wb") as file:
                while chunk := source.read(_CHUNK):
                    file.write(chunk)
    except (KeyError, tarfile.TarError) as error:
        raise Unavailable(f"{archive.name}: contains no file {member}") from error


def _site(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
