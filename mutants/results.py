"""The result file of a `make mutants` shard, with the outcome of each trial. It is written while the shard runs.

Proofs take hours, whether started by hand or in a matrix of jobs. A shard that was killed continues where it stopped,
as long as the code is the same. `mutants.combine` combines all shards into one result.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta, structs

from mutants.runs import OutcomeWord, Proof
from mutants.trials import Trial

PROJECT = Path(__file__).parent.parent
FOLDER = PROJECT / "reports" / "mutants"
API_VERSION, KIND = "conformance.grove.io/v1alpha1", "MutantResults"
CODE_FOLDERS = ("conformance", "reference_impl", "kube", "mutants", "fixtures", "kwok-profiles")
"""The folders whose contents affect proofs."""
NO_VERDICT: OutcomeWord = "NO VERDICT"
RIGHT_OUTCOMES = frozenset({"killed", "passed"})


class UnreadableError(Exception):
    """A file is not a result file. The message is one line that says what is wrong and where."""


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a trial. `kind` is what was armed (`reference`: nothing); `ids` are the requirements that were
    judged; `reason` explains a wrong outcome."""

    kind: Literal["mutant", "variant", "reference"]
    name: Annotated[str, Meta(min_length=1)]
    ids: tuple[str, ...]
    outcome: OutcomeWord
    seconds: Annotated[float, Meta(ge=0)]
    reason: str = ""

    @property
    def right(self) -> bool:
        """Return whether the outcome is as expected."""
        return self.outcome in RIGHT_OUTCOMES

    @classmethod
    def of(cls, proof: Proof) -> Outcome:
        """Return the outcome of a proof."""
        wrong = [f"{identity}: {outcome}" for identity, outcome in proof.wrong.items()]
        reason = "; ".join([*wrong, *(f"not called: {name}" for name in proof.uncalled)])
        trial = proof.trial
        return cls(trial.kind, trial.name, trial.ids, proof.word, round(proof.seconds, 1), reason)


class ResultFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The format of a result file. `code` is the digest of all sources and data that affect a proof."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["MutantResults"]
    code: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
    outcomes: list[Outcome]


@dataclass
class Results:
    """The outcomes of one file, and the digest of the code with which they were obtained."""

    code: str
    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, trial: Trial) -> Outcome | None:
        """Return the earlier outcome of a trial, if its run had a verdict."""
        outcomes = (outcome for outcome in self.outcomes if (outcome.kind, outcome.name, outcome.ids) == _key(trial))
        return next((outcome for outcome in outcomes if outcome.outcome != NO_VERDICT), None)

    def add(self, outcome: Outcome) -> None:
        """Add an outcome. It replaces an earlier outcome of the same trial without a verdict."""
        same = (outcome.kind, outcome.name, outcome.ids)
        self.outcomes = [
            earlier
            for earlier in self.outcomes
            if earlier.outcome != NO_VERDICT or (earlier.kind, earlier.name, earlier.ids) != same
        ]
        self.outcomes.append(outcome)

    def write(self, path: Path) -> None:
        """Write the file atomically, so that the previous file remains if the process is killed meanwhile."""
        lines = [f"apiVersion: {API_VERSION}", f"kind: {KIND}", f"code: {self.code}", "outcomes:"]
        lines += [
            f"- {json.dumps(structs.asdict(outcome), ensure_ascii=False)}" for outcome in self.outcomes
        ]  # JSON is YAML
        if not self.outcomes:
            lines[-1] += " []"
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        Path(temporary).rename(path)


def _key(trial: Trial) -> tuple[str, str, tuple[str, ...]]:
    return trial.kind, trial.name, trial.ids


def file_of(shard: str) -> Path:
    """Return the result file of a shard i/n."""
    part, _, parts = shard.partition("/")
    return FOLDER / f"shard-{part}-of-{parts}.yaml"


def read(path: Path) -> Results:
    """Read a result file. Raises UnreadableError if the file cannot be read or is not a result file."""
    try:
        document = msgspec.convert(yaml.load(path.read_text("utf-8"), yaml.CSafeLoader), ResultFile)
    except OSError as error:
        raise UnreadableError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UnreadableError(f"{path}: is not YAML: {str(error).splitlines()[0]}") from error
    except msgspec.ValidationError as error:
        raise UnreadableError(f"{path}: is no result of mutants: {error}") from error
    return Results(document.code, document.outcomes)


@cache
def code(project: Path = PROJECT) -> str:
    """Return one digest of all sources and data of a checkout that affect proofs."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in CODE_FOLDERS for path in (project / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(project)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return f"sha256:{digest.hexdigest()}"


def summary(outcomes: Iterable[Outcome]) -> str:
    """Return the number of outcomes of each kind in one line."""
    all_outcomes: Sequence[Outcome] = list(outcomes)
    words = Counter((outcome.kind, outcome.outcome) for outcome in all_outcomes)
    variants = sum(outcome.kind == "variant" for outcome in all_outcomes)
    killed, survived, rejected = words["mutant", "killed"], words["mutant", "SURVIVED"], words["variant", "REJECTED"]
    text = f"{killed} killed, {survived} survived; {rejected} of {variants} variants rejected"
    for word in ("NOT CALLED", NO_VERDICT):
        count = sum(outcome.outcome == word for outcome in all_outcomes)
        text += f"; {count} {word.lower()}" if count else ""
    return text
