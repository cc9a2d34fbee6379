"""Downloads one file by HTTP and verifies it by its digest.

Redirects are followed, and the anonymous token that a registry may require is requested. A site, a mirror or the target
of a redirect need not be trusted, because no file is used whose digest is not the expected one.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from conformance.cluster import pins
from conformance.cluster.pins import Program
from conformance.cluster.progress import ProgressReporter, ThrottledReporter
from conformance.cluster.sites import Sites, Unavailable
from conformance.errors import HarnessError

STALL_SECONDS = 15.0
"""Seconds without a byte after which an attempt is aborted."""
ATTEMPTS = 3
PAUSE_SECONDS = 1.0
"""Seconds before the second attempt. Each following pause is twice as long."""
_CHUNK_BYTES = 1 << 20
_MB = 1_000_000


class _TransientError(Exception):
    """A transient error: another attempt may succeed."""


class ChecksumMismatch(HarnessError):
    """A file does not have the pinned digest. In this case, no other source is tried."""


class Transfers:
    """Transfers of files for one program."""

    def __init__(self, program: Program, sites: Sites, report: ProgressReporter) -> None:
        self._program, self._sites, self._report = program, sites, report

    def fetch(self, url: str, target: Path, digest: str, accept: str = "*/*") -> None:
        """Write the body of `url` to the file `target`. If the digest does not match, the file is removed.

        Raises Unavailable or ChecksumMismatch. Errors of the local disk are raised as OSError.
        """
        site = self._program.site
        self._sites.require(site)
        attempts = Retrying(
            retry=retry_if_exception_type(_TransientError),
            wait=wait_exponential(multiplier=PAUSE_SECONDS, max=10),
            stop=stop_after_attempt(ATTEMPTS),
            reraise=True,
        )
        try:
            actual_digest = attempts(self._stream, url, target, digest.partition(":")[0], accept)
        except _TransientError as error:
            raise self._sites.record_failure(site, error) from error
        if actual_digest != digest:
            target.unlink()
            raise ChecksumMismatch(
                f"wrong checksum, so {self._program.name} is not installed: expected {digest}, found {actual_digest}",
                where=url,
                hint=f"a site or a proxy changed the file, or the pin in {pins.source()} is wrong; set {site.variable} "
                f"to another site, or to {pins.NO_DOWNLOADS} to build from source",
            )

    def _stream(self, url: str, target: Path, algorithm: str, accept: str) -> str:
        """Write the body of `url` to a file and return its digest."""
        digest = hashlib.new(algorithm)
        report_progress = ThrottledReporter(self._report)
        try:
            with _open(url, accept) as response, target.open("wb") as file:
                length = int(response.headers.get("Content-Length") or -1)
                total_text = f" of {length / _MB:.0f}" if length >= 0 else ""
                while chunk := response.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
                    report_progress(self._program.name, f"downloaded {file.tell() / _MB:.0f}{total_text} MB")
                if length not in (-1, file.tell()):
                    raise _TransientError(f"cut off after {file.tell()} of {length} bytes")
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (408, 429) or error.code >= 500:
                raise _TransientError(f"HTTP {error.code}") from error
            raise Unavailable(f"{url}: HTTP {error.code}") from error
        except urllib.error.URLError as error:  # the site never responded
            raise self._sites.record_failure(self._program.site, error.reason) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
                raise
            raise _TransientError(str(error) or type(error).__name__) from error
        return f"{algorithm}:{digest.hexdigest()}"


def _open(url: str, accept: str) -> http.client.HTTPResponse:
    """Open a URL, and try again with an anonymous token if a registry requires one."""
    headers = {"Accept": accept}
    try:
        return _urlopen(urllib.request.Request(url, headers=headers))  # noqa: S310 - pins.py lets only http(s) pass
    except urllib.error.HTTPError as error:
        token = _token(error.headers.get("WWW-Authenticate", "")) if error.code == 401 else ""
        if not token or error.url is None:
            raise
        # The token goes to the host that required it, which may be the target of a redirect, but to no host to which
        # that host redirects.
        request = urllib.request.Request(error.url, headers=headers)  # noqa: S310 - redirects lead to http(s) only
        request.add_unredirected_header("Authorization", f"Bearer {token}")
        return _urlopen(request)


def _token(challenge: str) -> str:
    """Return the anonymous token for a registry's challenge; empty if the registry requires something else."""
    fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    realm = fields.get("realm", "")
    if not challenge.lower().startswith("bearer ") or not re.match("https?://", realm):
        return ""
    query = urlencode({key: fields[key] for key in ("service", "scope") if key in fields})
    with _urlopen(urllib.request.Request(f"{realm}?{query}")) as response:  # noqa: S310 - http(s), see above
        document = json.loads(response.read(_CHUNK_BYTES))
    token = document.get("token") or document.get("access_token") if isinstance(document, dict) else ""
    return token if isinstance(token, str) and re.fullmatch("[!-~]+", token) else ""


def _urlopen(request: urllib.request.Request) -> http.client.HTTPResponse:
    response = urllib.request.urlopen(request, timeout=STALL_SECONDS)  # noqa: S310
    assert isinstance(response, http.client.HTTPResponse)
    return response
