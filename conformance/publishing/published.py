"""The published implementations: their descriptions, and the reports and recorded runs that the descriptions name.

A folder has one `NAME.yaml` for each implementation, and may contain reports in the layout of `report submit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from conformance import documents
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.publishing import submission
from conformance.report import recorded
from conformance.report.recorded import Run

SCHEMA = Path(__file__).parent / "published.schema.json"
KIND = re.compile(r"^kind: PublishedImplementation$", re.M)


@dataclass(frozen=True)
class PublishedVersion:
    """A version of an implementation, with the runs in which it was judged; `runs` is empty if it has not been judged
    yet."""

    version: str
    title: str
    contract: str
    runs: tuple[Run, ...]
    findings: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class PublishedUpgrade:
    """The effect on running sets when a version took over from another; `run` is None if this has not been judged
    yet."""

    source: str
    target: str
    run: Run | None
    findings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedImplementation:
    """A published implementation. `findings` are paths of pages, relative to the folder of descriptions."""

    name: str
    title: str
    about: str
    url: str
    rank: float
    versions: tuple[PublishedVersion, ...]
    upgrades: tuple[PublishedUpgrade, ...] = field(default=())


def read(folder: Path) -> list[PublishedImplementation]:
    """Return the implementations of a folder, in the order in which the page shows them. Raises UsageError with file,
    line and field if a description is invalid, or if there are no implementations."""
    if not folder.is_dir():
        raise UsageError(
            "is not a folder", where=documents.display_path(folder), hint="give a folder of implementations"
        )
    description = [documents.read(path, SCHEMA) for path in sorted(folder.glob("*.yaml"))]
    implementations = {document.value["name"]: _described(document) for document in description}
    for path in sorted(folder.glob(f"*/*/*{submission.SUFFIX}")):
        (run,) = recorded.read(path)
        implementations[run.implementation] = _with_report(implementations.get(run.implementation), run)
    if not implementations:
        hint = "add a description, or a report with report submit"
        raise UsageError("has no implementations", where=documents.display_path(folder), hint=hint)
    return sorted(implementations.values(), key=lambda implementation: (implementation.rank, implementation.name))


def _described(document: Document) -> PublishedImplementation:
    value = document.value
    return PublishedImplementation(
        name=value["name"],
        title=value["title"],
        about=value["about"],
        url=value.get("url", ""),
        rank=value.get("rank", float("inf")),
        versions=tuple(_version(document, number) for number in range(len(value["versions"]))),
        upgrades=tuple(_upgrade(document, number) for number in range(len(value.get("upgrades", ())))),
    )


def _version(document: Document, number: int) -> PublishedVersion:
    at = ("versions", number)
    value = document.value["versions"][number]
    runs = [
        run
        for place in range(len(value.get("reports", ())))
        for run in _runs(document, (*at, "reports", place), value["reports"][place])
    ]
    mismatch = next((run for run in runs if run.version != value["version"]), None)
    if mismatch is not None:
        problem = f"has a run of version {mismatch.version}"
        raise UsageError(problem, where=document.location(*at, "reports"), hint=f"name reports of {value['version']}")
    contract = next((run.contract for run in runs if run.contract), value.get("contract", ""))
    return PublishedVersion(
        version=value["version"],
        title=value.get("title", value["version"]),
        contract=contract,
        runs=tuple(runs),
        findings=_pages(document, (*at, "findings"), value.get("findings", ())),
        note=value.get("note", ""),
    )


def _upgrade(document: Document, number: int) -> PublishedUpgrade:
    at = ("upgrades", number)
    value: Mapping[str, str] = document.value["upgrades"][number]
    run = None
    if "report" in value:
        runs = _runs(document, (*at, "report"), value["report"])
        matching = [candidate for candidate in runs if candidate.digest == value.get("digest", candidate.digest)]
        if len(matching) != 1:
            problem = f"names {len(matching)} of {len(runs)} runs"
            raise UsageError(problem, where=document.location(*at, "report"), hint="give the digest of one of them")
        run = matching[0]
    pages: Sequence[str] = document.value["upgrades"][number].get("findings", ())
    return PublishedUpgrade(value["from"], value["to"], run, _pages(document, (*at, "findings"), pages))


def _runs(document: Document, at: tuple[str | int, ...], relative: str) -> list[Run]:
    path = document.path.parent / relative
    if not path.is_file():
        raise UsageError(
            f"{relative} does not exist", where=document.location(*at), hint="give a path relative to this file"
        )
    return recorded.read(path)


def _pages(document: Document, at: tuple[str | int, ...], pages: Iterable[str]) -> tuple[str, ...]:
    for page in pages:
        if not (document.path.parent / page.partition("#")[0]).is_file():
            raise UsageError(
                f"{page} does not exist", where=document.location(*at), hint="give a path relative to this file"
            )
    return tuple(pages)


def _with_report(description: PublishedImplementation | None, run: Run) -> PublishedImplementation:
    """Add a submitted report to its version if that has no report yet, otherwise as a separate version."""
    new_version = PublishedVersion(run.version, run.version, run.contract, (run,))
    if description is None:
        return PublishedImplementation(run.implementation, run.implementation, "", "", float("inf"), (new_version,))
    versions = [
        replace(version, runs=(run,), contract=run.contract or version.contract)
        if version.version == run.version and not version.runs
        else version
        for version in description.versions
    ]
    if not any(run in version.runs for version in versions):
        versions.append(new_version)
    return replace(description, versions=tuple(versions))
