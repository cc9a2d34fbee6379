"""Every scenario of the specification that is about domains, of a gang scheduler alone."""

from __future__ import annotations

from conformance.grove.scheduling import scenarios
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import judging
from conformance.testing.playing import Play


@requirements(*judging.OF_DOMAINS)
def test_every_scenario_with_domains_comes_to_rest_where_it_may(case: Case) -> None:
    asked = [id for id in judging.OF_DOMAINS if id in case.checks.asked]
    play = Play(case, judging.cast(scenarios.load(), asked))
    judging.judge(case, play, play.run(asked), asked)
