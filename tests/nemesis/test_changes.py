"""Tests of sequences of changes to a set: the desired end state, the equivalent commands, and the search for a sequence
that ends in a different state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given

from conformance.errors import UsageError
from conformance.nemesis.changes import desired, results
from conformance.nemesis.changes.desired import DesiredState, SetChange, apply_changes
from conformance.nemesis.changes.generated import MAX_CHANGES, fixed_sequences, random_changes
from conformance.nemesis.changes.observed import difference
from conformance.nemesis.changes.search import Divergence, Search, contains
from conformance.nemesis.results import RunInfo


class FakePlayer:
    """A player whose set ends in a different state if a restart is followed by a change to an image; if it is not
    `is_stable`, only in every other run."""

    def __init__(self, is_stable: bool = True) -> None:
        self.is_stable, self.played, self._differences = is_stable, 0, dict[tuple[SetChange, ...], list[str]]()

    def known_differences(self, changes: Sequence[SetChange]) -> list[str] | None:
        return self._differences.get(tuple(changes))

    def find_differences(self, changes: Sequence[SetChange]) -> list[str]:
        return self._differences.setdefault(tuple(changes), self.run_again(changes))

    def run_again(self, changes: Sequence[SetChange]) -> list[str]:
        self.played += 1
        actions = [change.what for change in changes]
        is_different = "restart" in actions and "image" in actions[actions.index("restart") :]
        return ["-a", "+b"] if is_different and (self.is_stable or self.played % 2) else []


def find_deviations(player: FakePlayer, plays: int, *, stop_at_first: bool = False) -> list[Divergence]:
    """Run a search and return its deviations. Its clock advances only with each run of the player, so the speed of the
    machine has no effect."""
    search = Search(player, plays, lambda changes: None, stop_at_first=stop_at_first, clock=lambda: player.played)  # type: ignore[arg-type]
    search.run(1)
    return search.deviations


def test_the_last_desired_value_counts() -> None:
    changes = [SetChange("scale-clique", value=3), SetChange("image", "c", 2), SetChange("scale-group", value=1)]
    assert apply_changes(changes) == DesiredState(pods=3, groups=1, images=(1, 1, 2))
    assert apply_changes([*changes, SetChange("recreate")]) == DesiredState(images=(1, 1, 2))
    assert apply_changes([*changes, SetChange("restart"), SetChange("lose-pod", "a")]) == apply_changes(changes)


def test_the_direct_way_scales_objects_that_the_template_does_not_set() -> None:
    assert desired.direct_changes(DesiredState()) == []
    assert desired.direct_changes(DesiredState(pods=3, images=(2, 1, 1))) == [SetChange("scale-clique", value=3)]
    images = [c["spec"]["podSpec"]["containers"][0]["image"] for c in _cliques(DesiredState(images=(2, 1, 3)))]
    assert images == ["registry.example/a:2", "registry.example/b:1", "registry.example/c:3"]


def _cliques(desired_set: DesiredState) -> list[dict[str, dict[str, dict[str, list[dict[str, str]]]]]]:
    cliques: list[dict[str, dict[str, dict[str, list[dict[str, str]]]]]]
    cliques = desired.manifest(desired_set)["spec"]["template"]["cliques"]
    return cliques


@given(random_changes())
def test_each_generated_change_has_an_effect_or_disturbs(changes: list[SetChange]) -> None:
    assert 2 <= len(changes) <= MAX_CHANGES
    for index, change in enumerate(changes):
        desired_before = apply_changes(changes[:index])
        is_disruption = change.what in ("recreate", "restart", "lose-pod")
        assert is_disruption or desired.apply_change(desired_before, change) != desired_before


def test_the_usual_sequences_start_with_one_that_restores_the_set() -> None:
    sequences = list(fixed_sequences())
    assert apply_changes(sequences[0]) == DesiredState() and len(sequences) == len(
        {tuple(changes) for changes in sequences}
    )


def test_a_different_end_is_detected_and_reduced() -> None:
    [deviation] = find_deviations(FakePlayer(), 1000, stop_at_first=True)
    assert [change.what for change in deviation.changes] == ["restart", "image"]
    assert deviation.is_finding and (deviation.bad, deviation.played) == (3, 3)


def test_an_occasional_different_end_is_not_a_finding() -> None:
    deviations = find_deviations(FakePlayer(is_stable=False), 500)
    assert deviations and not any(deviation.is_finding for deviation in deviations)


def test_time_ends_a_search() -> None:
    player = FakePlayer()
    assert find_deviations(player, 0) == [] and player.played == 1


def test_a_sequence_that_contains_a_finding_is_not_another_finding() -> None:
    finding = [SetChange("restart"), SetChange("image", "a", 2)]
    assert contains([SetChange("restart"), SetChange("recreate"), SetChange("image", "a", 1)], finding)
    assert not contains([SetChange("image", "a", 1), SetChange("restart")], finding)
    assert not contains([SetChange("restart"), SetChange("image", "b", 1)], finding)


def test_a_difference_shows_both_ends() -> None:
    lines = difference({"pods/a": [{"ready": True}], "s": {"n": 1}}, {"pods/a": [{"ready": False}], "s": {"n": 2}})
    assert lines == ['-pods/a: {"ready": true}', "-s n: 1", '+pods/a: {"ready": false}', "+s n: 2"]
    assert difference({"podgangs": []}, {"podgangs": []}) == []


def test_the_file_of_a_finding_can_be_replayed_and_typed(tmp_path: Path) -> None:
    changes = (SetChange("image", "a", 2, rests=False), SetChange("lose-pod", "c"), SetChange("scale-group", value=1))
    description = RunInfo(
        "ours", "1", "operator", {"mutant": "x"}, "1.36", "2026-01-01T00:00:00+00:00", "grove-conformance …"
    )
    deviations = [Divergence(changes, ("-a", "+b"), 3, 3), Divergence(changes[:1], ("-a",), 1, 2)]
    document = results.report(description, deviations, 9, 7, True)
    results.write(tmp_path, document, deviations)
    path = tmp_path / document["findings"][0]["file"]
    assert results.is_changes_file(path) and results.changes_of(results.read(path)) == list(changes)
    assert not results.is_changes_file(tmp_path / "changes" / "set.yaml")
    lines = path.read_text().splitlines()
    assert lines[0] == "# kubectl create -f set.yaml"
    assert lines[1].startswith('# kubectl patch podcliqueset kept --type json -p \'[{"op": "replace"')
    assert "# kubectl scale podcliquescalinggroup kept-0-g --replicas 1" in lines
    assert len(document["unstable"]) == 1
    page = (tmp_path / "report.html").read_text()
    assert "1 sequence(s) of changes end elsewhere" in page and "kubectl scale podcliquescalinggroup" in page


def test_an_invalid_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "changes.yaml"
    value = {"apiVersion": "conformance.grove.io/v1alpha1", "kind": "NemesisChanges", "implementation": "ours"}
    path.write_text(yaml.safe_dump({**value, "changes": [{"what": "image", "value": 2}]}))
    with pytest.raises(UsageError, match="part"):
        results.read(path)
