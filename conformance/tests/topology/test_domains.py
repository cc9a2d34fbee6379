"""Every scenario of the specification that is about domains, of a gang scheduler alone."""

from __future__ import annotations

from conformance.grove.scheduling import scenarios
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.tests.scheduler import judging
from conformance.tests.scheduler.playing import Play


@requirements(*judging.OF_DOMAINS)
def test_every_scenario_with_domains_comes_to_rest_where_it_may(case: Case) -> None:
    play = Play(case, [one for one in scenarios.load() if any(id.startswith("TOPO-") for id in one.checks)])
    judging.judge(case, play, play.run(judging.OF_DOMAINS), judging.OF_DOMAINS)
