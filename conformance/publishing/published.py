"""A folder of published implementations: their descriptions, `NAME.yaml`, with the reports and recorded runs that these
name, and submitted reports, `<release>/<implementation>/<line>-<version>-<mode>-report.yaml`.

The layout of submitted reports follows Gateway API's conformance reports, with Grove's release and line in place of
Gateway API's version and channel. A README.md next to the reports lists them and says how to reproduce them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from conformance import documents, formats
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.report import reading, recorded
from conformance.report.document import Document as Report
from conformance.report.markdown import code, replace_between
from conformance.report.model import NO_VERDICT
from conformance.report.recorded import Run

SUFFIX = "-report.yaml"
SCHEDULERS_FOLDER = "gang-schedulers"
"""The folder of implementations that are not judged by a release of Grove: gang schedulers without an operator."""
README = "README.md"


Paths = Annotated[tuple[Text, ...], Meta(min_length=1, extra_json_schema={"uniqueItems": True})]


class VersionFormat(Format, frozen=True):
    """A version of an implementation, in its description."""

    version: Text
    title: Annotated[Text, Meta(description="name of the version for people")] = ""
    contract: Annotated[str, Meta(description="line and release of Grove's contract, if its reports do not say")] = ""
    reports: Annotated[
        Paths, Meta(description="reports or recorded runs, relative to this file; none if it is not judged yet")
    ] = ()
    findings: Annotated[Paths, Meta(description="pages about what is wrong, relative to this file")] = ()
    note: Annotated[Text, Meta(description="what a reader has to know of these reports, or why there is none")] = ""


class UpgradeFormat(Format, frozen=True, kw_only=True):
    """An upgrade: the version that had created the running sets, and the version that took them over."""

    source: Annotated[Text, Meta(description="implementation and version")] = field(name="from")
    to: Annotated[Text, Meta(description="version of this implementation")]
    report: Annotated[Text | None, Meta(description="report or recorded runs, relative to this file")] = None
    digest: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$", description="which of the recorded runs")] | None = (
        None
    )
    findings: Paths = ()


class ImplementationFormat(Format, frozen=True):
    """An implementation on the page of all implementations."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["PublishedImplementation"]
    name: Annotated[Text, Meta(description="name in its reports")]
    title: Annotated[Text, Meta(description="name for people")]
    about: Annotated[Text, Meta(description="what it is, in a sentence or two")]
    versions: Annotated[list[VersionFormat], Meta(min_length=1, description="the versions, the newest first")]
    url: Annotated[str, Meta(pattern="^https://", description="its page")] = ""
    rank: (
        Annotated[int, Meta(ge=1, description="its place on the page; those without one come last, by name")] | None
    ) = None
    upgrades: Annotated[
        tuple[UpgradeFormat, ...], Meta(min_length=1, description="what it took over running sets from")
    ] = ()


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
    upgrades: tuple[PublishedUpgrade, ...] = ()


def read(folder: Path) -> list[PublishedImplementation]:
    """Return the implementations of a folder, in the order in which the page shows them. Raises UsageError with file,
    line and field if a description is invalid, or if there are no implementations."""
    if not folder.is_dir():
        hint = "give a folder of implementations"
        raise UsageError("is not a folder", where=documents.display_path(folder), hint=hint)
    descriptions = [formats.read(path, ImplementationFormat) for path in sorted(folder.glob("*.yaml"))]
    implementations = {content.name: _described(document, content) for document, content in descriptions}
    for path in sorted(folder.glob(f"*/*/*{SUFFIX}")):
        (run,) = recorded.read(path)
        implementations[run.implementation] = _with_report(implementations.get(run.implementation), run)
    if not implementations:
        hint = "add a description, or a report with report submit"
        raise UsageError("has no implementations", where=documents.display_path(folder), hint=hint)
    return sorted(implementations.values(), key=lambda implementation: (implementation.rank, implementation.name))


def _described(document: Document, content: ImplementationFormat) -> PublishedImplementation:
    return PublishedImplementation(
        name=content.name,
        title=content.title,
        about=content.about,
        url=content.url,
        rank=float("inf") if content.rank is None else content.rank,
        versions=tuple(_version(document, number, entry) for number, entry in enumerate(content.versions)),
        upgrades=tuple(_upgrade(document, number, entry) for number, entry in enumerate(content.upgrades)),
    )


def _version(document: Document, number: int, entry: VersionFormat) -> PublishedVersion:
    at = ("versions", number)
    runs = [
        run for place, report in enumerate(entry.reports) for run in _runs(document, (*at, "reports", place), report)
    ]
    mismatch = next((run for run in runs if run.version != entry.version), None)
    if mismatch is not None:
        problem = f"has a run of version {mismatch.version}"
        raise UsageError(problem, where=document.location(*at, "reports"), hint=f"name reports of {entry.version}")
    return PublishedVersion(
        version=entry.version,
        title=entry.title or entry.version,
        contract=next((run.contract for run in runs if run.contract), entry.contract),
        runs=tuple(runs),
        findings=_pages(document, (*at, "findings"), entry.findings),
        note=entry.note,
    )


def _upgrade(document: Document, number: int, entry: UpgradeFormat) -> PublishedUpgrade:
    at = ("upgrades", number)
    run = None
    if entry.report is not None:
        runs = _runs(document, (*at, "report"), entry.report)
        matching = [candidate for candidate in runs if entry.digest in (None, candidate.digest)]
        if len(matching) != 1:
            problem = f"names {len(matching)} of {len(runs)} runs"
            raise UsageError(problem, where=document.location(*at, "report"), hint="give the digest of one of them")
        run = matching[0]
    return PublishedUpgrade(entry.source, entry.to, run, _pages(document, (*at, "findings"), entry.findings))


def _runs(document: Document, at: tuple[str | int, ...], relative: str) -> list[Run]:
    return recorded.read(_file(document, at, relative))


def _pages(document: Document, at: tuple[str | int, ...], pages: Iterable[str]) -> tuple[str, ...]:
    for page in pages:
        _file(document, at, page.partition("#")[0], page)
    return tuple(pages)


def _file(document: Document, at: tuple[str | int, ...], relative: str, text: str = "") -> Path:
    """Return the path of a file that a description names. Raises UsageError if the file does not exist."""
    path = document.path.parent / relative
    if not path.is_file():
        problem, hint = f"{text or relative} does not exist", "give a path relative to this file"
        raise UsageError(problem, where=document.location(*at), hint=hint)
    return path


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


# -- submitted reports ---------------------------------------------------------------------------------------------


def require_publishable(content: Report, location: str) -> None:
    """Raise UsageError if a report is too incomplete to be published. A report of an implementation that is not
    conformant may be published."""
    verdict = content["verdict"]
    if not verdict["complete"] or verdict["result"] in NO_VERDICT:
        problem, hint = f"has no verdict ({verdict['result']})", "repeat the run, and let it end by itself"
        raise UsageError(problem, where=location, hint=hint)
    if verdict["selection"]["ids"] or verdict["selection"].get("shard"):
        problem = "judges single requirements or a shard"
        raise UsageError(problem, where=location, hint="give the report of a run of everything, or of whole profiles")


def report_path(content: Report, mode: str) -> Path:
    """Return the path of a report within the folder of reports. Raises UsageError if a name cannot be turned into a
    file name."""
    implementation = content["verdict"]["implementation"]
    release = implementation.get("release") or SCHEDULERS_FOLDER
    name = "-".join(filter(None, (implementation.get("line", ""), implementation["version"], mode)))
    return Path(_component(release), _component(implementation["name"]), _component(name) + SUFFIX)


def readme(existing: str, content: Report, folder: Path, *, url: str = "") -> str:
    """Return the README of an implementation's folder. `existing`: the existing README, in which only the list of
    reports is replaced; empty if there is none."""
    rows = "\n".join(_rows(folder))
    if existing:
        return replace_between(existing, "reports", rows)
    implementation, selection = content["verdict"]["implementation"], content["verdict"]["selection"]
    profile_options = "".join(f" --profile {profile}" for profile in selection["profiles"])
    page = f"<{url}>\n\n" if url else ""
    return f"""# {_line(implementation["name"])}

{page}<!-- reports -->

{rows}

<!-- end -->

## Reproduce

    grove-conformance run --implementation DESCRIPTOR{profile_options}

Say here how to get the program that was judged, and its descriptor.
"""


def _rows(folder: Path) -> Iterator[str]:
    yield "| report | version | contract | judged as | Kubernetes | verdict | passed | failed |"
    yield "|---|---|---|---|---|---|---|---|"
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        content = reading.load(path)
        verdict, run = content["verdict"], content["run"]
        implementation, counts = verdict["implementation"], verdict["counts"]
        cells = (
            code(implementation["version"]),
            code(" ".join(filter(None, (implementation.get("line"), implementation.get("release"))))) or "–",
            code(", ".join(implementation["roles"])),
            code(run["environment"].get("kubernetes", "")),
            verdict["result"],
            str(counts["passed"]),
            str(counts["failed"] + counts["expected-failure"]),
        )
        yield f"| [{path.name}]({path.name}) | {' | '.join(cells)} |"


def _component(text: str) -> str:
    """Return a text as one component of a path. Raises UsageError if nothing is left of it."""
    component = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")
    if not component:
        raise UsageError(f"{text!r} cannot be a file name", hint="give the descriptor a name and a version of letters")
    return component


def _line(text: str) -> str:
    return " ".join(re.sub(r"[<>\[\]`|\\#*_]", " ", text).split())
