"""The table of gaps as a document, for the terminal, and as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from conformance.lab.gaps.forms import FORMS, Form
from conformance.lab.gaps.instances import Counts, Gap, Instance
from conformance.lab.gaps.mappings import EVERY, MAPPINGS, right
from conformance.lab.gaps.playing import Mapped, Outcome

Document = dict[str, Any]

VARIES = "varies"
"""The word of a cell whose runs differ."""


def document(versions: Mapping[str, str]) -> Document:
    """Return the document of an experiment that begins now."""
    environment = {"cpus": os.cpu_count(), "machine": platform.machine(), "versions": dict(versions)}
    return {
        "apiVersion": "conformance.grove.io/v1alpha1",
        "kind": "LabResult",
        "experiment": "gaps",
        "startedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment,
        "outcomes": [],
        "mappings": [],
    }


def add(found: Document, outcome: Outcome | Mapped) -> None:
    """Add what became of an instance or of a mapping."""
    if isinstance(outcome, Mapped):
        entry = {"form": outcome.form.name, "row": outcome.mapping.row, "nodes": outcome.nodes, "run": outcome.run}
        found["mappings"].append({**entry, "seen": outcome.seen})
        return
    found["outcomes"].append(
        {
            "form": outcome.form.name,
            "instance": outcome.instance.name,
            "run": outcome.run,
            "bound": {name: list(counts) for name, counts in outcome.counts.items()},
            "wrong": outcome.wrong,
        }
    )


def cell(found: Document, gap: Gap, form: Form) -> str:
    """Return `closed`, `partly`, `not`, or `varies` if the runs differ."""
    runs = sorted({each["run"] for each in found["outcomes"] if each["form"] == form.name})
    words = {gap.closed(form.name, [not each["wrong"] for each in of_run(found, gap, form, run)]) for run in runs}
    if not gap.instances:
        return "closed" if form.name in gap.said_by else "not"
    return words.pop() if len(words) == 1 else VARIES


def of_run(found: Document, gap: Gap, form: Form, run: int) -> list[Mapping[str, Any]]:
    """Return the outcomes of a gap in one run of a form, in the order of its instances."""
    names = {instance.name: number for number, instance in enumerate(gap.instances)}
    own = [
        each
        for each in found["outcomes"]
        if (each["form"], each["run"]) == (form.name, run) and each["instance"] in names
    ]
    return sorted(own, key=lambda each: names[each["instance"]])


def outcomes(found: Document, form: Form, instance: Instance) -> list[Mapping[str, Any]]:
    """Return the outcomes of an instance in a form, by run."""
    return [each for each in found["outcomes"] if (each["form"], each["instance"]) == (form.name, instance.name)]


def counted(counts: Counts) -> str:
    """Return bound pods for people: `{4, 2}`, or `{4+0, 2}` of replicas of several pods."""
    return "{" + ", ".join("+".join(map(str, each)) for each in counts.values()) + "}"


def told(seen: Sequence[Mapping[str, Any]]) -> str:
    """Return what was seen of an instance: each outcome once, with a mark if it is wrong."""
    words = [f"{counted(each['bound'])}{' ✗' if each['wrong'] else ''}" for each in seen]
    return " or ".join(dict.fromkeys(words)) or "–"


def forms_of(found: Document) -> list[Form]:
    """Return the forms that were played."""
    played = {each["form"] for each in found["outcomes"]}
    return [form for form in FORMS if form.name in played]


def show(found: Document, gaps: Sequence[Gap], console: Console) -> None:
    """Print the table of gaps."""
    forms = forms_of(found)
    table = Table("gap", *(form.title for form in forms), title="What inference needs, and who has it")
    for gap in gaps:
        table.add_row(gap.title, *(cell(found, gap, form) for form in forms))
    console.print(table)


def markdown(found: Document, gaps: Sequence[Gap], command: str, picture: str) -> str:
    """Return a page with the table of gaps, what was seen of each instance, and the picture."""
    forms = forms_of(found)
    runs = max((each["run"] for each in found["outcomes"]), default=0)
    lines = [
        "# What inference needs of gang scheduling, and who has it",
        "",
        f"    {command}",
        "",
        f"{found['startedAt']}, {found['environment']['cpus']} CPUs, {_versions(found)}. Each instance was played "
        f"{runs} times in each column. A cell is *closed* if every instance ended as it must in every run, *not* if "
        "none did or the API cannot say it, *partly* otherwise. Beside this page are the objects, the steps and the "
        "recorded history of each instance.",
        "",
        _line(["gap", *(form.title for form in forms)]),
        _line(["---"] * (len(forms) + 1)),
        *(_line([gap.title, *(f"**{cell(found, gap, form)}**" for form in forms)]) for gap in gaps),
    ]
    for gap in gaps:
        lines += ["", f"## {gap.title[0].upper()}{gap.title[1:]}", "", gap.needs, ""]
        if gap.instances:
            lines += list(_instances(found, gap, forms))
        else:
            lines.append("No instance: an API can say it or cannot.")
    if found["mappings"]:
        lines += ["", *_mappings(found, forms)]
    return "\n".join([*lines, "", f"![bound pods of each instance]({picture})", ""])


def _instances(found: Document, gap: Gap, forms: Sequence[Form]) -> Iterator[str]:
    """Yield the table of what was seen: bound pods of each component, and ✗ where that is wrong."""
    yield _line(["instance", "row", "must end with", *(form.title for form in forms)])
    yield _line(["---"] * (len(forms) + 3))
    for instance in gap.instances:
        seen = [told(outcomes(found, form, instance)) for form in forms]
        yield _line([instance.name, instance.row, instance.expect, *seen])


def _mappings(found: Document, forms: Sequence[Form]) -> Iterator[str]:
    """Yield the table of mappings: what was bound on each number of nodes."""
    yield "## Mappings of one service"
    yield ""
    yield "A router (2 pods, 1 required), prefill (2 replicas of 3 pods) and decode (2 replicas of 2 pods), of which"
    yield "one each is required: a floor of 6 pods. docs/spec/workload-api-1.37.md explains the words in its section 7."
    yield ""
    yield _line(["row", "groups", "the router's second pod", "on", *map(str, EVERY)])
    yield _line(["---"] * (len(EVERY) + 4))
    for mapping in MAPPINGS:
        for form in (form for form in forms if form.name in mapping.forms):
            cells = [_mapped(found, mapping.row, form, nodes) for nodes in EVERY]
            if any(cells):
                yield _line([mapping.row, mapping.shape, mapping.extra, form.title, *cells])


def _mapped(found: Document, row: str, form: Form, nodes: int) -> str:
    wanted = (row, form.name, nodes)
    seen = [each["seen"] for each in found["mappings"] if (each["row"], each["form"], each["nodes"]) == wanted]
    return " or ".join(f"{each}{'' if right(nodes, each) else ' ✗'}" for each in dict.fromkeys(seen))


def _versions(found: Document) -> str:
    return ", ".join(f"{name} {version}" for name, version in found["environment"]["versions"].items())


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
