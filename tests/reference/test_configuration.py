"""Tests of the operator's configuration file."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from reference_impl import cli
from reference_impl.runtime import configuration, leadership
from reference_impl.runtime.configuration import InvalidConfigurationError


def load(tmp_path, text):
    path = tmp_path / "operator.yaml"
    path.write_text(text)
    return configuration.load(path, own_scheduler="own")


def test_an_empty_file_yields_the_defaults(tmp_path):
    assert load(tmp_path, "") == load(tmp_path, "# nothing\n") == configuration.default_configuration("own")


def test_the_own_scheduler_is_a_profile_and_the_default(tmp_path):
    scheduler = load(tmp_path, "scheduler: {profiles: [{name: kai-scheduler}]}").scheduler
    assert set(scheduler.names) == {"kai-scheduler", "own", "default-scheduler"} and scheduler.resolve("") == "own"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("topologyAwareScheduling: {enabeld: true}", "unknown field `enabeld`"),
        ("nonsense: 1", "unknown field `nonsense`"),
        ("logLevel: loud", "Invalid enum value 'loud'"),
        ("authorizer: {enabled: perhaps}", "Expected `bool`"),
        ("scheduler: {profiles: [{name: mine}]}", r"scheduler.profiles\[0\].name: invalid profile 'mine'"),
        ("scheduler: {profiles: [{name: volcano}, {name: volcano}]}", "duplicate profile"),
        ("scheduler: {defaultProfileName: volcano}", "not among the profiles"),
        ("leaderElection: {enabled: true, leaseDuration: 5s}", "longer than renewDeadline"),
        ("leaderElection: {enabled: true, leaseDuration: 10s, renewDeadline: 10s}", "longer than renewDeadline"),
        ("leaderElection: {enabled: true, retryPeriod: soon}", "leaderElection.retryPeriod: invalid duration"),
        ("leaderElection: {enabled: true, leaseDuration: 0s}", "leaderElection.leaseDuration: must be greater than 0"),
        ("leaderElection: {enabled: true, renewDeadline: -1s}", "leaderElection.renewDeadline: must be greater than 0"),
        ("leaderElection: {enabled: true, retryPeriod: 0s}", "leaderElection.retryPeriod: must be greater than 0"),
        (
            "leaderElection: {enabled: true, retryPeriod: 10s}",
            "leaderElection.renewDeadline: must be longer than retry",
        ),
        ("leaderElection: {enabled: true, resourceName: ''}", "leaderElection.resourceName: must not be empty"),
        ("leaderElection: {resourceLock: endpoints}", "Invalid enum value 'endpoints'"),
        ("a: [", "operator.yaml"),
    ],
)
def test_a_mistake_is_reported_in_one_line(tmp_path, text, complaint):
    with pytest.raises(InvalidConfigurationError, match=complaint) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_durations_of_a_disabled_election_are_not_checked(tmp_path):
    assert load(tmp_path, "leaderElection: {leaseDuration: 1s, retryPeriod: soon}").leader_election.enabled is False


def test_the_lease_namespace_is_required_outside_a_cluster(tmp_path):
    settings = configuration.LeaderElection(enabled=True)
    namespace_file = tmp_path / "namespace"
    assert leadership.lease_namespace(settings, namespace_file) == ""
    namespace_file.write_text("mine\n")
    assert leadership.lease_namespace(settings, namespace_file) == "mine"
    given = configuration.LeaderElection(enabled=True, resource_namespace="given")
    assert leadership.lease_namespace(given, namespace_file) == "given"


def test_a_missing_file_ends_the_command(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    arguments = ["operator", f"--kubeconfig={kubeconfig}", "--health-port=1", f"--config={tmp_path}/none.yaml"]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 2 and "cannot be read" in result.output
