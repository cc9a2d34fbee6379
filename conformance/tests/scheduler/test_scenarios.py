"""Every scenario of the specification that is about a gang scheduler alone, and some that are drawn by chance."""

from __future__ import annotations

from conformance.grove.scheduling import drawing, scenarios
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.tests.scheduler import judging
from conformance.tests.scheduler.playing import Play

DRAWN = 10


@requirements(*judging.OF_SCHEDULERS)
def test_every_scenario_comes_to_rest_where_it_may(case: Case) -> None:
    fixed = [one for one in scenarios.load() if any(id.startswith("SCHED-") for id in one.checks)]
    bases = [one for one in fixed if any(gang.base for gang in one.instance.gangs) and not one.instance.running]
    drawn = drawing.scenarios(case.random.getrandbits(32), DRAWN, checks=("SCHED-060",))
    play = Play(case, [*fixed, *drawn], ungated=bases)
    judging.judge(case, play, play.run(judging.OF_SCHEDULERS), judging.OF_SCHEDULERS)
