"""Tests of the settings for gangs on kube-scheduler, and of the admission of sets that kube-scheduler cannot place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from reference_impl.admission.rules import schedulers
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan.workload_api.mode import Extras, Replacements
from reference_impl.runtime import configuration
from reference_impl.runtime.configuration import Profile, ProfileConfig, Scheduler

ON = Scheduler(profiles=(Profile("default-scheduler", ProfileConfig(gang_scheduling=True)),))
NO_WORKLOAD_API = Scheduler(profiles=(Profile("default-scheduler"),))


def load(folder: Path, config: str, name: str = "default-scheduler") -> Scheduler:
    path = folder / "c.yaml"
    path.write_text(f"scheduler: {{profiles: [{{name: {name}, config: {{{config}}}}}]}}")
    return configuration.load(path, own_scheduler="own").scheduler


def test_the_back_end_is_disabled_by_default(tmp_path: Path):
    assert load(tmp_path, "").gangs_of_kubernetes is None
    assert load(tmp_path, "gangScheduling: false").gangs_of_kubernetes is None
    settings = load(tmp_path, "gangScheduling: true").gangs_of_kubernetes
    assert settings is not None and (settings.extras, settings.replacements) == (Extras.AFTER_FLOOR, Replacements.ALONE)
    settings = load(tmp_path, "gangScheduling: true, extras: inside, replacements: together").gangs_of_kubernetes
    assert settings is not None and (settings.extras, settings.replacements) == (Extras.INSIDE, Replacements.TOGETHER)


@pytest.mark.parametrize(
    ("config", "name", "complaint"),
    [
        ("gangScheduling: true", "volcano", r"profiles\[0\]\.config\.gangScheduling: volcano has none"),
        ("extras: inside", "default-scheduler", r"profiles\[0\]\.config\.extras: has no effect without gangScheduling"),
        ("replacements: together", "volcano", r"config\.replacements: has no effect"),
        ("gangScheduling: true, extras: sometimes", "default-scheduler", "sometimes"),
        ("gangScheduling: 1", "default-scheduler", "bool"),
    ],
)
def test_a_setting_without_effect_is_rejected(tmp_path: Path, config: str, name: str, complaint: str):
    with pytest.raises(configuration.InvalidConfigurationError, match=complaint):
        load(tmp_path, config, name)


def pcs(*classes: str, of_set: str = "", scheduler: str = "default-scheduler") -> PodCliqueSet:
    cliques: list[dict[str, Any]] = [
        {
            "name": f"c{i}",
            "spec": {"podSpec": {"schedulerName": scheduler, **({"priorityClassName": name} if name else {})}},
        }
        for i, name in enumerate(classes)
    ]
    template = {"cliques": cliques, "priorityClassName": of_set or None}
    return msgspec.convert({"spec": {"replicas": 1, "template": template}}, PodCliqueSet)


@pytest.mark.parametrize(
    ("pod_clique_set", "settings", "refused"),
    [
        (pcs("a", "b"), ON, True),
        (pcs("a", ""), ON, True),
        (pcs("a", "a"), ON, False),
        (pcs("", ""), ON, False),
        (pcs("a", "b", of_set="c"), ON, False),  # the set's class applies to all its pods (OBJ-256)
        (pcs("a", "b"), NO_WORKLOAD_API, False),
        (pcs("a", "b", scheduler="own"), ON, False),
    ],
)
def test_pods_of_several_priorities_are_rejected(pod_clique_set: PodCliqueSet, settings: Scheduler, refused: bool):
    enabled = msgspec.structs.replace(settings, profiles=(*settings.profiles, Profile("own")))
    errors = [str(error) for error in schedulers.backend_violations(pod_clique_set, enabled)]
    assert bool(errors) == refused
    if refused:
        assert "priorityClassName" in errors[0] and "one priority class" in errors[0] and "c0: a" in errors[0]


@pytest.mark.parametrize(
    ("new", "old", "settings", "path"),
    [
        (pcs("a"), pcs(""), ON, "spec.template.cliques[0].spec.podSpec.priorityClassName"),
        (pcs("a", of_set="b"), pcs("a"), ON, "spec.template.priorityClassName"),
        (pcs(""), pcs("", of_set="a"), ON, "spec.template.priorityClassName"),
        (pcs("a"), pcs("a"), ON, ""),
        (pcs("a", of_set="a"), pcs("a"), ON, ""),
        (pcs("a"), pcs(""), NO_WORKLOAD_API, ""),
        (pcs("a", scheduler="own"), pcs("", scheduler="own"), ON, ""),
    ],
)
def test_the_priority_of_a_gang_cannot_be_changed(new: PodCliqueSet, old: PodCliqueSet, settings: Scheduler, path: str):
    errors = list(schedulers.change_violations(new, old, settings))
    assert [error.path for error in errors] == ([path] if path else [])
