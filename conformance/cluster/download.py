"""Official release files, verified by checksum; or the reason why there is none to be had.

Having no network costs PATIENCE once: all sites are tried at the same time, in threads (a name server that does not
answer cannot be timed out otherwise), and a site that failed is not asked again by this process.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from conformance.cluster.pins import Checksums, Program
from conformance.errors import HarnessError

PATIENCE = 2.4
"""Seconds until a site has to have answered a question. Twice this is the most that a bad network costs in total."""
STALL = 15.0
"""Seconds without a byte after which a download is given up."""
_CHUNK = 1 << 20


class Unavailable(Exception):
    """No verified official file can be had; `str()` says why. The caller builds instead."""


class ChecksumMismatch(HarnessError):
    """A file is not what its publisher says. Never a reason to go on in another way."""


class Sites:
    """Which release sites answer; remembers it for the life of this object."""

    def __init__(self) -> None:
        self._failed: dict[str, str] = {}
        self._answered: set[str] = set()

    def probe(self, urls: Iterable[str]) -> None:
        """Asks every site not yet known, all at once; returns after PATIENCE seconds at the latest."""
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
        """Raises Unavailable if the site of `url` is known to fail."""
        if reason := self._failed.get(_site(url)):
            raise Unavailable(f"{_site(url)}: {reason}")

    def give_up(self, url: str, reason: object) -> Unavailable:
        """Remembers that the site of `url` fails; returns the error to raise."""
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
    """Downloads `program` to the file `into`, verified; returns the address it came from.

    Raises Unavailable (not to be had, or no checksum to be had) or ChecksumMismatch.
    """
    sites.require(program.url)
    expected = program.sha256 or _published(program, sites)
    archive = into.with_name(into.name + ".download")
    digest = _stream(program.url, archive, sites)
    if digest != expected:
        archive.unlink()
        raise ChecksumMismatch(
            f"wrong checksum: expected sha256 {expected}, found {digest}",
            where=program.url,
            mend="try again; if it stays so, the release site, a proxy or a pin in assets.yaml is not to be trusted",
        )
    if program.member:
        _extract(archive, program.member, into)
        archive.unlink()
    else:
        archive.rename(into)
    return program.url


def _published(program: Program, sites: Sites) -> str:
    """The checksum (64 hex digits) that the publisher names; Unavailable when there is none."""
    file_name = program.url.rpartition("/")[2]
    match program.group.checksums:
        case Checksums.BESIDE:
            found = _text(program.url + ".sha256", sites).strip()
        case Checksums.LIST:
            listing = _text(program.url.rpartition("/")[0] + "/SHA256SUMS", sites)
            rows = (line.split() for line in listing.splitlines())
            found = next((row[0] for row in rows if len(row) == 2 and row[1].lstrip("*") == file_name), "")
        case Checksums.RELEASE_API:
            found = _digest_of(file_name, _text(program.group.digests, sites))
    if len(found) != 64 or not set(found.lower()) <= set("0123456789abcdef"):
        raise Unavailable(f"no checksum is published for {program.url}")
    return found.lower()


def _digest_of(file_name: str, release: str) -> str:
    try:
        files = json.loads(release)["assets"]
        digest = next((str(file.get("digest")) for file in files if file["name"] == file_name), "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return digest.removeprefix("sha256:")


def _text(url: str, sites: Sites) -> str:
    sites.probe([url])
    sites.require(url)
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as response:  # noqa: S310
            return str(response.read(_CHUNK).decode(errors="replace"))
    except urllib.error.HTTPError as error:
        raise Unavailable(f"{url}: HTTP {error.code}") from error
    except (OSError, http.client.HTTPException) as error:
        raise sites.give_up(url, error) from error


def _stream(url: str, into: Path, sites: Sites) -> str:
    """Writes the body of `url` to a file; returns its SHA-256. Errors of our own disk pass through as OSError."""
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=STALL) as response, into.open("wb") as file:  # noqa: S310
            length = int(response.headers.get("Content-Length") or -1)
            while chunk := response.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
            if length not in (-1, file.tell()):
                raise sites.give_up(url, f"cut off after {file.tell()} of {length} bytes")
    except urllib.error.HTTPError as error:
        raise Unavailable(f"{url}: HTTP {error.code}") from error
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        raise sites.give_up(url, error) from error
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
        raise Unavailable(f"{archive.name}: holds no file {member}") from error


def _site(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
