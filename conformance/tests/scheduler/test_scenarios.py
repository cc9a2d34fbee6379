"""Every scenario of the specification that is about a gang scheduler alone, and some that are drawn by chance."""

from __future__ import annotations

from conformance.grove.scheduling import sampling, scenarios
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import judging
from conformance.testing.playing import Play

DRAWN = 10


@requirements(*judging.OF_SCHEDULERS)
def test_every_scenario_comes_to_rest_where_it_may(case: Case) -> None:
    asked = [id for id in judging.OF_SCHEDULERS if id in case.checks.asked]
    drawn = (
        sampling.scenarios(case.random.getrandbits(32), DRAWN, checks=("SCHED-060",)) if "SCHED-060" in asked else []
    )
    cast = judging.cast(scenarios.load(), asked)
    ungated = [one for one in cast if judging.UNGATED in one.checks and judging.UNGATED in asked]
    play = Play(case, [*cast, *drawn], ungated)
    judging.judge(case, play, play.run(asked), asked)
