"""The table of gaps as a document, as a table for the terminal, and as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from conformance.lab.gaps import mappings
from conformance.lab.gaps.forms import FORMS, KAI, Form
from conformance.lab.gaps.instances import Counts, Gap, GapInstance
from conformance.lab.gaps.mappings import GPU_COUNTS, MAPPINGS, depends_on_luck, is_right_outcome
from conformance.lab.gaps.playing import FormFailure, GapResult, MappingOutcome

Document = dict[str, Any]

VARIES, NOT_RUN = "varies", "not run"
"""The words of a cell whose runs differ, and of a cell without a complete run."""


def document(versions: Mapping[str, str], forms: Sequence[Form], runs: int) -> Document:
    """Return the document of an experiment that starts now and runs each form `runs` times."""
    environment = {"cpus": os.cpu_count(), "machine": platform.machine(), "versions": dict(versions)}
    return {
        "apiVersion": "conformance.grove.io/v1alpha1",
        "kind": "LabResult",
        "experiment": "gaps",
        "startedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment,
        "complete": False,
        "forms": [form.name for form in forms],
        "runs": runs,
        "failures": [],
        "outcomes": [],
        "mappings": [],
    }


def add(experiment: Document, outcome: GapResult) -> None:
    """Add the outcome of an instance or of a mapping, or the reason why a form was not run."""
    if isinstance(outcome, FormFailure):
        experiment["failures"].append(str(outcome))
        return
    if isinstance(outcome, MappingOutcome):
        entry = {"form": outcome.form.name, "mapping": outcome.mapping.key, "nodes": outcome.nodes, "run": outcome.run}
        experiment["mappings"].append({**entry, "seen": outcome.outcome})
        return
    experiment["outcomes"].append(
        {
            "form": outcome.form.name,
            "instance": outcome.instance.name,
            "run": outcome.run,
            "bound": {name: list(counts) for name, counts in outcome.counts.items()},
            "wrong": outcome.problem,
            **({} if outcome.devices is None else {"devices": outcome.devices}),
        }
    )


def cell(experiment: Document, gap: Gap, form: Form) -> str:
    """Return `closed`, `partly` or `not`, `varies` if the runs differ, or `not run`. If some runs are incomplete, the
    number of complete runs is added."""
    if not gap.instances:
        return "closed" if form.api in gap.expressed_by else "not"
    runs = [outcomes_of_run(experiment, gap, form, run) for run in range(1, experiment["runs"] + 1)]
    complete_runs = [run for run in runs if len(run) == len(gap.instances)]
    verdicts = {gap.closure(form.api, [not outcome["wrong"] for outcome in run]) for run in complete_runs}
    if len(verdicts) != 1:
        return VARIES if verdicts else NOT_RUN
    share = f" ({len(complete_runs)} of {len(runs)} runs)" if len(complete_runs) < len(runs) else ""
    return verdicts.pop() + share


def outcomes_of_run(experiment: Document, gap: Gap, form: Form, run: int) -> list[Mapping[str, Any]]:
    """Return the outcomes of a gap in one run of a form, in the order of its instances."""
    names = {instance.name: number for number, instance in enumerate(gap.instances)}
    entries = [
        outcome
        for outcome in experiment["outcomes"]
        if (outcome["form"], outcome["run"]) == (form.name, run) and outcome["instance"] in names
    ]
    return sorted(entries, key=lambda entry: names[entry["instance"]])


def outcomes(experiment: Document, form: Form, instance: GapInstance) -> list[Mapping[str, Any]]:
    """Return the outcomes of an instance in a form, one for each run."""
    return [
        outcome
        for outcome in experiment["outcomes"]
        if (outcome["form"], outcome["instance"]) == (form.name, instance.name)
    ]


def format_counts(counts: Counts) -> str:
    """Return the numbers of bound pods in readable form: `{4, 2}`, or `{4+0, 2}` if replicas have several pods."""
    return "{" + ", ".join("+".join(map(str, replicas)) for replicas in counts.values()) + "}"


def describe_outcomes(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the outcomes of an instance in readable form: each distinct outcome once, with a mark if it is wrong."""
    descriptions = map(_describe_outcome, entries)
    return " or ".join(dict.fromkeys(descriptions)) or NOT_RUN


def _describe_outcome(outcome: Mapping[str, Any]) -> str:
    devices = f" on {outcome['devices']} devices" if "devices" in outcome else ""
    return f"{format_counts(outcome['bound'])}{devices}{' ✗' if outcome['wrong'] else ''}"


def forms_of(experiment: Document) -> list[Form]:
    """Return the forms of an experiment, including the forms that were not run."""
    return [form for form in (*FORMS, KAI) if form.name in experiment["forms"]]


def show(experiment: Document, gaps: Sequence[Gap], console: Console) -> None:
    """Print the table of gaps."""
    forms = forms_of(experiment)
    table = Table("gap", *(form.title for form in forms), title="What inference needs, and who has it")
    for gap in gaps:
        table.add_row(gap.title, *(cell(experiment, gap, form) for form in forms))
    console.print(table)


def markdown(experiment: Document, gaps: Sequence[Gap], command: str, picture: str) -> str:
    """Return a page with the table of gaps, the outcomes of each instance, and the picture."""
    forms = forms_of(experiment)
    lines = [
        "# What inference needs of gang scheduling, and who has it",
        "",
        f"    {command}",
        "",
        f"{experiment['startedAt']}, {experiment['environment']['cpus']} CPUs, {_versions(experiment)}. Each instance "
        f"was played {experiment['runs']} times in each column. A cell is *closed* if every instance ended as it must "
        "in every run, *not* if none did or the API cannot say it, *partly* otherwise. Beside this page are the "
        "objects, the recorded history and a script of kubectl commands of each instance.",
        *([] if experiment["complete"] else ["", "**The run did not end**: cells that were not played say so."]),
        *(line for failure in experiment["failures"] for line in ("", f"Not played: {failure}")),
        "",
        _table_row(["gap", *(form.title for form in forms)]),
        _table_row(["---"] * (len(forms) + 1)),
        *(_table_row([gap.title, *(f"**{cell(experiment, gap, form)}**" for form in forms)]) for gap in gaps),
    ]
    for gap in gaps:
        lines += ["", f"## {gap.title[0].upper()}{gap.title[1:]}", "", gap.needs, ""]
        if gap.instances:
            lines += list(_instances(experiment, gap, forms))
        else:
            lines.append("No instance: an API can say it or cannot.")
    if experiment["mappings"]:
        lines += ["", *_mappings(experiment, forms)]
    return "\n".join([*lines, "", f"![bound pods of each instance]({picture})", ""])


def _instances(experiment: Document, gap: Gap, forms: Sequence[Form]) -> Iterator[str]:
    """Yield the table of the outcomes: the bound pods of each component, with ✗ if the outcome is wrong."""
    yield _table_row(["instance", "rows", "must end with", *(form.title for form in forms)])
    yield _table_row(["---"] * (len(forms) + 3))
    for instance in gap.instances:
        cells = [describe_outcomes(outcomes(experiment, form, instance)) for form in forms]
        yield _table_row([instance.name, ", ".join(instance.rows), instance.expect, *cells])


def _mappings(experiment: Document, forms: Sequence[Form]) -> Iterator[str]:
    """Yield the table of mappings: the pods that were bound on each number of nodes."""
    yield "## Mappings of one service"
    yield ""
    yield "A router (2 pods, 1 required), prefill (2 replicas of 3 pods) and decode (2 replicas of 2 pods), of which"
    yield "one each is required: a floor of 6 pods. docs/spec/workload-api-1.37.md explains the words in its section 7;"
    yield "*luck*: the order in which the pods of a group, or its children, are tried decides, and nobody promises one."
    yield ""
    yield _table_row(["row", "groups", "the router's second pod", "on", *map(str, GPU_COUNTS)])
    yield _table_row(["---"] * (len(GPU_COUNTS) + 4))
    for mapping in MAPPINGS:
        for form in (form for form in forms if form.name in mapping.forms):
            cells = [_mapping_cell(experiment, mapping, form, nodes) for nodes in GPU_COUNTS]
            yield _table_row([mapping.row, mapping.shape, mapping.extra, form.title, *cells])


def _mapping_cell(experiment: Document, mapping: mappings.Mapping, form: Form, nodes: int) -> str:
    key = (mapping.key, form.name, nodes)
    if nodes not in mapping.sizes:
        return ""
    if depends_on_luck(form, mapping, nodes):
        return "luck"
    observed = [
        entry["seen"] for entry in experiment["mappings"] if (entry["mapping"], entry["form"], entry["nodes"]) == key
    ]
    return (
        " or ".join(
            f"{outcome}{'' if is_right_outcome(nodes, outcome) else ' ✗'}" for outcome in dict.fromkeys(observed)
        )
        or NOT_RUN
    )


def _versions(experiment: Document) -> str:
    return ", ".join(f"{name} {version}" for name, version in experiment["environment"]["versions"].items())


def _table_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
