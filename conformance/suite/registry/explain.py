"""`grove-conformance explain ID`: everything that is known about a requirement or a row of the specification. The
functions return strings and print nothing."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from conformance import data, document_cache, specification
from conformance.documents import suggestion
from conformance.errors import UsageError
from conformance.grove.admission import manifests
from conformance.grove.scheduling import scenarios
from conformance.suite.registry import basis as bases
from conformance.suite.registry import coverage, declarations, limits, requirement
from conformance.suite.registry.basis import BasisKind, Quotation
from conformance.suite.registry.requirement import Registry, Requirement

MUTANTS = "grove_conformance.mutants"
"""The group of entry points that return requirement id → names of the mutants that it has detected."""
VARIANTS = "grove_conformance.variants"
"""The group of entry points that return requirement id → names of the variants (permitted differences) that pass it."""

BASIS_PHRASES = {
    BasisKind.DOCUMENT: "a public document says so",
    BasisKind.CONVENTION: "Kubernetes says so of every API",
    BasisKind.DECISION: "documents are silent or conflict, and this project chose: no MUST",
    BasisKind.CODE: "only upstream's code does so: compatibility, not conformance",
}
"""A phrase for each kind of basis."""
SCENARIO_RUNNER = ("conformance.testing.playing", "ScenarioRunner")
"""The class that runs scenarios of gang scheduling, with its module."""
WIDTH = 110
GENERATED_PAGES = ("requirements.md", "coverage.md")
"""Pages of `docs/` whose content this command prints anyway."""


def explain(id: str) -> str:
    """Return everything that is known about an id. Raises UsageError for an unknown id."""
    registry = requirement.load()
    names = {name.lower(): name for name in (*specification.load(), *registry.requirements, *registry.retired)}
    if id.lower() not in names:
        near_hint = suggestion(id.upper(), names.values()) + " (grove-conformance list has the requirements)"
        raise UsageError(f"{id!r} is neither a requirement nor an id of the specification", hint=near_hint)
    name = names[id.lower()]
    lines = _row(registry, name) if name in specification.load() else _requirement(registry.get(name))
    return "\n".join(lines)


# -- requirements ------------------------------------------------------------------------------------------------------


def _requirement(entry: Requirement) -> Iterator[str]:
    yield f"{entry.id} ({entry.level}, profile {entry.profile})"
    yield from _wrapped(entry.text)
    yield f"  judges:  {', '.join(entry.roles)}"
    yield f"  since:   {entry.since}"
    if entry.feature:
        yield f"  feature: {entry.feature} (only implementations that claim it are judged)"
    if entry.kubernetes:
        yield f"  from:    Kubernetes {entry.kubernetes}"
    if entry.limit:
        yield f"  limit:   {entry.limit} (nobody's failure)"
    if entry.seed:
        yield f"  seed:    {entry.seed} (not upstream's contract)"
    if entry.until:
        yield f"  until:   {entry.until} (later: {', '.join(entry.successors)})"
    if entry.unless:
        yield f"  unless:  {', '.join(entry.unless)} (implementations that claim it are not judged)"
    yield from _basis(entry)
    yield from (f"  test:    {test}" for test in declarations.of_requirement(entry.id))
    if waits := limits.of_requirement(entry.id):
        yield from _wrapped(f"limits:  waits at most {limits.in_words(waits)}", subsequent_indent="         ")
    if manifest_names := [manifest.name for manifest in manifests.load() if manifest.requirement == entry.id]:
        yield from _wrapped(f"manifests of fixtures/admission: {', '.join(manifest_names)}")
    if scenario_ids := [scenario.id for scenario in scenarios.load() if entry.id in scenario.checks]:
        yield from _wrapped(f"scenarios of fixtures/scheduling: {', '.join(scenario_ids)}")
        scenario_limits = limits.in_words(limits.of_scene(*SCENARIO_RUNNER))
        yield from _wrapped(
            f"limits:  a played scenario waits at most {scenario_limits}", subsequent_indent="         "
        )
    yield from (f"  rule:    {path}, in every history" for path in _rule_files().get(entry.id, ()))
    if mutants := _names_by_requirement(MUTANTS).get(entry.id):
        yield from _wrapped(f"mutants: {', '.join(mutants)}", subsequent_indent="         ")
    if variants := _names_by_requirement(VARIANTS).get(entry.id):
        yield from _wrapped(f"passes:  {', '.join(variants)} (variants)", subsequent_indent="         ")
    yield f"  run:     grove-conformance run --id {entry.id}, with --implementation FILE for one of your own"
    if entry.reproduce:
        yield from ("  by hand:", *(f"    {line}" for line in entry.reproduce))
    yield "  source:"
    for source in entry.source:
        yield from _source(source)
    yield from _decisions(entry)


def _basis(entry: Requirement) -> Iterator[str]:
    yield f"  basis:   {entry.basis} ({BASIS_PHRASES[entry.basis]})"
    yield from _quotations(entry.quotes)
    if entry.contradicts:
        yield "  but:     public documents that say otherwise"
        yield from _quotations(entry.contradicts)
    if entry.unwritten:
        yield from _wrapped(f"no document says: {entry.unwritten}", "    ")
    if entry.reason:
        yield from _wrapped(f"reason: {entry.reason}", "    ")
    if entry.demands:
        yield from _wrapped(f"beyond its sentence, the check demands: {entry.demands}")
    yield "  contest: an issue with the id and a public document's sentence that says otherwise (CONTRIBUTING.md)"


def _quotations(quotations: Iterable[Quotation]) -> Iterator[str]:
    for quotation in quotations:
        document = bases.load_documents()[quotation.document]
        yield from _wrapped(f"{document.title} ({document.version}): {quotation.place}", "    ")
        if quotation.words:
            yield from _wrapped(f"“{quotation.words}”", "      ", "      ")
        yield f"      {bases.address(quotation)}"


def _source(id: str) -> Iterator[str]:
    row = specification.load().get(id)
    yield f"    {id}  {row.link if row else 'a public document of upstream: docs/spec/README.md#upstream'}"
    if row:
        yield from _text(row, "      ")


def _decisions(entry: Requirement) -> Iterator[str]:
    """Yield the decision records that name a requirement or a row that it follows from. Only a checkout has them."""
    id_pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, (entry.id, *entry.source)))})(?![\w-])")
    for path in [] if data.is_wheel() else sorted((data.PROJECT / "docs" / "decisions").glob("[0-9]*.md")):
        text = path.read_text("utf-8")
        if id_pattern.search(text):
            yield f"  decision: docs/decisions/{path.name} ({text.partition(chr(10))[0].lstrip('# ')})"


def _names_by_requirement(group: str) -> Mapping[str, Iterable[str]]:
    """Return the mutants or variants of every registered package, by requirement id. Packages that cannot be imported
    are left out."""
    result: dict[str, list[str]] = {}
    for entry_point in metadata.entry_points(group=group):
        with suppress(ImportError, AttributeError):
            for id, names in _claims(entry_point).items():
                result.setdefault(id, []).extend(names)
    return result


def _claims(entry_point: metadata.EntryPoint) -> Mapping[str, list[str]]:
    """Return the result of an entry point's function. Raises ImportError or AttributeError if the function cannot be
    imported."""
    return _cached(entry_point.module, entry_point.value, lambda: entry_point.load()())


def _rule_files() -> Mapping[str, list[str]]:
    """Return the file of each rule for histories, by requirement id."""
    return _cached("conformance.invariants", "files of rules", _import_rules)


def _import_rules() -> dict[str, list[str]]:
    from conformance import invariants

    return {rule.id: [f"{type(rule).__module__.replace('.', '/')}.py"] for rule in invariants.rules()}


def _cached(package: str, name: str, compute: Callable[[], dict[str, list[str]]]) -> Mapping[str, list[str]]:
    """Return what `compute` returns. The user's cache stores it under `name` until a file of the package changes,
    because importing all mutants takes a second. Raises ImportError for an unknown package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(package)
    sources = "".join(path.read_text("utf-8") for path in sorted(Path(spec.origin).parent.rglob("*.py")))
    key = document_cache.key(sources, name)
    if contents := document_cache.load(key):
        value: Mapping[str, list[str]] = contents.value
        return value
    result = compute()
    document_cache.save(key, result, {})
    return result


# -- rows of the specification -----------------------------------------------------------------------------------------


def _row(registry: Registry, id: str) -> Iterator[str]:
    row = specification.load()[id]
    yield f"{id}  {row.link}"
    yield from _text(row, "  ")
    yield from _judging_requirements(registry, id)
    yield from _scenario(registry, id)
    yield from _reasons(id)
    yield from _manifests(id)
    id_pattern = re.compile(rf"(?<![\w-]){re.escape(id)}(?![\w-])")
    if rows := [
        other.id for other in specification.load().values() if other.id != id and id_pattern.search(other.text)
    ]:
        yield from _wrapped(f"named by {', '.join(rows)}")
    yield from _pages(id_pattern)


def _judging_requirements(registry: Registry, id: str) -> Iterator[str]:
    for entry in registry.requirements.values():
        if id in entry.source:
            yield from _judging_lines(entry)


def _judging_lines(entry: Requirement) -> list[str]:
    return _wrapped(f"judged by {entry.id} ({entry.level}, profile {entry.profile}): {entry.text}")


def _scenario(registry: Registry, id: str) -> Iterator[str]:
    for story in coverage.scenarios():
        if story.id == id:
            for requirement_id in story.checks:
                if id not in registry.requirements[requirement_id].source:
                    yield from _judging_lines(registry.requirements[requirement_id])
            if story.reason:
                yield from _wrapped(f"not checked: {story.reason}")
            yield from (f"  see {path}" for path in story.tests)


def _reasons(id: str) -> Iterator[str]:
    rows_table = coverage.rows()
    for reason in (*rows_table.reasons, *(reason for reasons in rows_table.uncaught.values() for reason in reasons)):
        if id in reason.rows:
            yield from _wrapped(f"no check: {reason.reason}")


def _manifests(id: str) -> Iterator[str]:
    if names := [manifest.name for manifest in manifests.load() if id in manifest.rules]:
        yield from _wrapped(f"manifests of fixtures/admission: {', '.join(names)}")


def _pages(id_pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines of the other pages of `docs/` that name an id. Only a checkout has these pages."""
    if data.is_wheel():
        return
    for path in sorted((data.PROJECT / "docs").rglob("*.md")):
        if path.name in GENERATED_PAGES or path.parent.name == "spec":
            continue
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if id_pattern.search(line):
                yield f"  {path.relative_to(data.PROJECT)}:{number}: {line.strip()}"


def _text(row: specification.Row, indent: str) -> Iterator[str]:
    for line in row.text.splitlines():
        yield from _wrapped(line, indent, indent)


def _wrapped(text: str, indent: str = "  ", subsequent_indent: str = "    ") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=subsequent_indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
