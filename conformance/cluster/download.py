"""Downloads of official releases: files, archives with one or several programs, and images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.cluster import archives, images, pins
from conformance.cluster.pins import Program
from conformance.cluster.progress import ProgressReporter
from conformance.cluster.sites import Sites, Unavailable
from conformance.cluster.transfer import Transfers


def fetch(programs: Sequence[Program], folder: Path, sites: Sites, report: ProgressReporter) -> None:
    """Download programs from one release file or image, verify the download, and write each program to a file with its
    name in `folder`.

    Raises Unavailable (the download is not available, or its digest is not pinned) or ChecksumMismatch.
    """
    first_program = programs[0]
    if not first_program.digest:
        raise Unavailable("no digest of an official file is pinned")
    sites.require(first_program.site)
    report(first_program.name, f"downloading {first_program.url}")
    transfers = Transfers(first_program, sites, report)
    members = {program.member: folder / program.name for program in programs}
    if first_program.image:
        images.fetch(first_program, members, pins.platform_name(), transfers)
        return
    file = folder / "download"
    transfers.fetch(first_program.url, file, first_program.digest)
    if not first_program.member:
        file.rename(folder / first_program.name)
        return
    found_members = archives.extract(file, members)
    file.unlink()
    if missing_members := members.keys() - found_members:
        raise Unavailable(f"{first_program.url}: contains no file {min(missing_members)}")
