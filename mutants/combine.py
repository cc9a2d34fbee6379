"""`python -m mutants.combine`: combine the result files of shards into one result.

The result is positive if every mutant was killed, every requirement that catches a mutant has passed without a mutant,
and nothing else went wrong, all with the code of this checkout. A mutant that is in no file counts like a survivor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mutants import results
from mutants.registry import MUTANTS, Mutant
from mutants.results import Outcome, Results
from mutants.trials import INVARIANT


def main(
    files: Annotated[list[Path], typer.Argument(help="Result files of shards, or folders with them.")],
    to: Annotated[Path | None, typer.Option(help="Also write all outcomes to this file.")] = None,
) -> None:
    """Combine the results of shards; exit with 1 if a mutant is missing, has survived, or has no verdict."""
    try:
        result_files = {path: results.read(path) for path in _files(files)}
    except results.UnreadableError as error:
        raise typer.BadParameter(str(error), param_hint="FILES") from None
    outcomes = without_repeats(outcome for content in result_files.values() for outcome in content.outcomes)
    wrong = [*foreign(result_files, results.code()), *problems(outcomes, MUTANTS.all())]
    for line in wrong:
        typer.echo(line)
    if to is not None:
        Results(results.code(), outcomes).write(to)
    typer.echo(f"{results.summary(outcomes)}; {len(MUTANTS.all())} mutants in all, {len(result_files)} files")
    sys.exit(1 if wrong else 0)


def _files(paths: Iterable[Path]) -> list[Path]:
    files = [file for path in paths for file in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    if not files:
        raise results.UnreadableError("the folder has no result files")
    return files


def without_repeats(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes without duplicates from several files. An outcome without a verdict is dropped if the same
    trial also has an outcome with a verdict."""
    unique: dict[tuple[str, str, tuple[str, ...], str], Outcome] = {}
    for outcome in outcomes:
        unique.setdefault((outcome.kind, outcome.name, outcome.ids, outcome.outcome), outcome)
    judged = {key[:3] for key in unique if key[3] != results.NO_VERDICT}
    return [
        outcome for key, outcome in unique.items() if outcome.outcome != results.NO_VERDICT or key[:3] not in judged
    ]


def foreign(files: Mapping[Path, Results], code: str) -> Iterator[str]:
    """Yield a message for each file that was made with other code."""
    for path, content in files.items():
        if content.code != code:
            yield f"{path}: was made with other code than this checkout's: prove that shard again"


def problems(outcomes: Sequence[Outcome], mutants: Mapping[str, Mutant]) -> Iterator[str]:
    """Yield a message for each wrong outcome, for each mutant without an outcome, and for the claimed requirements that
    have not passed without a mutant."""
    for outcome in outcomes:
        if not outcome.right:
            yield f"{outcome.outcome} {outcome.name}: {outcome.reason}"
    judged = {outcome.name for outcome in outcomes if outcome.kind == "mutant"}
    yield from (f"missing: {name}" for name in mutants if name not in judged)
    claimed = {id for name in judged & mutants.keys() for id in (*mutants[name].caught_by, *mutants[name].blocks)}
    passed_ids = {id for outcome in outcomes if outcome.kind == "reference" and outcome.right for id in outcome.ids}
    if unproved_ids := sorted(id for id in claimed - passed_ids if not id.startswith(INVARIANT)):
        yield f"not judged without a mutant: {', '.join(unproved_ids)}"


if __name__ == "__main__":
    typer.run(main)
