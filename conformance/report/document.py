"""`report.yaml`: the report as a document, checked against `report.schema.json` before it is written.

The `verdict` part is byte-for-byte identical for runs with the same outcomes; everything that differs from run to run
(times, workers, namespaces) is in the `run` part. Each part has a digest; `digest` is the digest of the verdict.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from conformance import disk
from conformance.errors import HarnessError
from conformance.report import causes, defects, repetitions
from conformance.report.model import Failure, Outcome, Profile, Report, Result, RunVerdict

SCHEMA = Path(__file__).parent / "report.schema.json"
API_VERSION = "conformance.grove.io/v1alpha1"

OPTIONAL_OUTCOMES = frozenset({Outcome.KNOWN_LIMIT})
"""Outcomes that are listed in counts only if their number is not zero."""

Document = dict[str, Any]


def document(report: Report, evidence: str = "") -> Document:
    """Return the whole document, with keys in the order in which they are written. `evidence`: digest of the list of
    evidence, if there is one."""
    verdict, run = _verdict(report), _run(report)
    if evidence:
        run["evidence"] = evidence
    return {
        "apiVersion": API_VERSION,
        "kind": "ConformanceReport",
        "digest": digest(verdict),
        "runDigest": digest(run),
        "verdict": verdict,
        "run": run,
    }


def digest(part: Document) -> str:
    """Return the digest of a part of the document: SHA-256 of its JSON with sorted keys and without spaces."""
    canonical = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def validate(content: Document) -> None:
    """Check a report against its schema. Raises HarnessError if the report violates the schema."""
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
    error = next(iter(sorted(validator.iter_errors(content), key=lambda e: list(map(str, e.absolute_path)))), None)
    if error is not None:
        field = ".".join(str(p) for p in error.absolute_path)
        raise HarnessError(f"the report breaks its own schema: {field}: {error.message[:300]}", hint="report this bug")


def render(content: Document) -> str:
    """Return the document as YAML."""
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=110)


def as_json(content: Document) -> str:
    """Return the document as JSON, with keys in the same order."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def write(path: Path, report: Report, evidence: str = "") -> Document:
    """Check the report, then write it atomically, so that it is either absent or complete. Raises HarnessError if the
    report violates its schema or cannot be written."""
    content = document(report, evidence)
    validate(content)
    save(path, render(content))
    return content


def save(path: Path, text: str) -> None:
    """Write a file to a run's folder, which is recreated if it has been removed. Raises HarnessError if the file cannot
    be written."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk.write(path, text)
    except OSError as error:
        hint = "make room or make it writable, and remove what is in its place"
        raise HarnessError(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error


def _verdict(report: Report) -> Document:
    implementation = report.started.implementation
    return {
        "result": str(report.verdict),
        "exitCode": int(report.exit),
        "complete": report.complete,
        "implementation": {
            "name": implementation.name,
            "version": implementation.version,
            "roles": sorted(implementation.roles),
            "features": sorted(implementation.features),
            **({"line": implementation.line, "release": implementation.release} if implementation.line else {}),
            **({"discovered": dict(sorted(implementation.discovered.items()))} if implementation.discovered else {}),
            "digest": implementation.digest,
            "suppliedRoles": dict(sorted(implementation.supplied.items())),
        },
        "suite": {"version": report.started.suite_version, "digest": report.started.suite_digest},
        "selection": _selection(report),
        "counts": _counts(report.counts),
        "compatibility": dict(zip(("passed", "judged"), report.compatibility, strict=True)),
        "seeds": dict(zip(("passed", "judged"), report.seeds, strict=True)),
        "profiles": [
            {"name": p.name, "verdict": _profile_word(p), "counts": _counts(p.counts)} for p in report.profiles
        ],
        "requirements": [_requirement(result, report.started.elsewhere) for result in report.results],
        "harnessErrors": list(report.faults),
    }


def _selection(report: Report) -> Document:
    started = report.started
    selection: Document = {"profiles": list(started.profiles), "ids": list(started.ids)}
    if started.only:
        selection["tests"] = list(started.only)
    if started.skip:
        selection["skipped"] = list(started.skip)
    if started.shard:
        selection["shard"] = started.shard
    return selection


def _profile_word(profile: Profile) -> str:
    has_claimed = any(n for outcome, n in profile.counts.items() if outcome is not Outcome.NOT_CLAIMED)
    return str(profile.verdict) if has_claimed else str(RunVerdict.UNKNOWN)


def _counts(counts: Any) -> dict[str, int]:
    return {str(outcome): counts[outcome] for outcome in Outcome if counts[outcome] or outcome not in OPTIONAL_OUTCOMES}


def _requirement(result: Result, elsewhere: Mapping[str, int]) -> Document:
    entry = result.requirement
    fields: Document = {
        "id": entry.id,
        "profile": entry.profile,
        "level": str(entry.level),
        "text": entry.text,
        "basis": str(entry.basis),
        **({"seed": entry.seed} if entry.seed else {}),
        "outcome": str(result.outcome),
        "checks": result.checks,
        "tests": list(result.tests),
    }
    if entry.id in elsewhere:
        fields["elsewhere"] = elsewhere[entry.id]
    if result.reason:
        fields["reason"] = result.reason
    if result.bundle:
        fields["bundle"] = result.bundle
    if result.failures:
        fields["failures"] = [_failure(f) for f in result.failures]
    return fields


def _failure(failure: Failure) -> Document:
    fields: Document = {
        "test": failure.test,
        "what": failure.what,
        "expected": failure.expected,
        "seen": failure.observed,
    }
    if failure.bundle:
        fields["bundle"] = failure.bundle
    return fields


def _repetitions(report: Report) -> Document:
    """Return how often tests ran and passed; empty if no test was repeated."""
    rates = [
        {"test": rate.test, "runs": rate.runs, "passed": rate.passed, "atLeast": round(rate.interval[0], 4)}
        for rate in repetitions.rates(report)
    ]
    return {"repetitions": rates} if rates else {}


def _markers(report: Report) -> Document:
    """Return the timing markers of scenes; empty if there are none."""
    timed = [
        {"scene": event.scene, "phases": [{"name": name, "markers": times} for name, times in event.markers.items()]}
        for event in report.timed
    ]
    return {"markers": timed} if timed else {}


def _causes(report: Report) -> Document:
    """Return the causes of failures; empty if there are none."""
    entries = [
        {
            "title": cause.title,
            "failed": [result.requirement.id for result in cause.failed],
            "heldUp": [result.requirement.id for result in cause.held_up],
            "tests": cause.tests,
            "looksLike": list(cause.defects),
        }
        for cause in causes.find_causes(report, defects.rows())
    ]
    return {"causes": entries} if entries else {}


def _failed_at(id: str, failure: Failure) -> Document:
    fields: Document = {"id": id, "test": failure.test, "what": failure.what, "at": failure.at}
    if failure.deviation is not None:
        fields |= {"object": failure.deviation.object, "revision": failure.deviation.revision}
    return fields


def _run(report: Report) -> Document:
    started = report.started
    return {
        "id": started.run,
        "started": instant(started.wall),
        "seconds": report.seconds,
        "workers": started.workers,
        "timeScale": started.time_scale,
        "seed": started.seed,
        **_repetitions(report),
        "environment": dict(sorted(started.environment.items())),
        "tests": [
            {
                "test": t.test,
                "outcome": t.outcome,
                "worker": t.worker,
                "namespace": t.namespace,
                "seconds": dict(sorted(t.seconds.items())),
            }
            for t in report.tests
        ],
        **_markers(report),
        **_causes(report),
        "failedAt": [_failed_at(r.requirement.id, f) for r in report.results for f in r.failures if f.at is not None],
    }


def instant(wall: float) -> str:
    """Return a time in seconds since the epoch as an RFC 3339 timestamp in UTC."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
