"""One round of the scheduler, purely: from free room and gangs to the pods that are bound where, the pods that have to
go, and why others wait.

The rules (spec GS-20 to GS-45): the floors of all groups of a gang are placed together or not at all; higher
priorities first; no extra pod is placed before every gang has had its chance for its floors; a gang that waits holds
no room and holds nobody up, except that the room which is being cleared for it is kept for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from reference_impl.scheduler import preemption
from reference_impl.scheduler.capacity import Room
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import Placement, place
from reference_impl.scheduler.preemption import Eviction
from reference_impl.scheduler.search import Budget
from reference_impl.scheduler.shortfall import Shortfall, explained, renamed

Bound = tuple[Pod, str]
"""A pod and the name of its node."""


@dataclass
class Plan:
    """What a round decides."""

    bindings: list[Bound] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    waiting: dict[str, Shortfall] = field(default_factory=dict)
    """Gang whose floors cannot be placed → why."""
    nominated: dict[str, list[Bound]] = field(default_factory=dict)
    """Gang that waits for pods to go → where its pods will be."""


@dataclass
class Surroundings:
    """What else there is on the nodes."""

    others: Sequence[Bound] = ()
    """Pods of no gang that could be evicted."""
    leaving: Sequence[Bound] = ()
    """Pods that are being deleted: they still hold their room."""
    claims: Collection[str] = ()
    """Gangs that pods have been evicted for."""


def plan(gangs: Iterable[Gang], room: Room, around: Surroundings | None = None) -> Plan:
    """Decides one round. `gangs` are all that there are, in the order in which they came."""
    order = sorted(gangs, key=lambda gang: (-gang.priority, not gang.members))
    this = Round(order, room, around or Surroundings())
    for gang in order:
        this.consider(gang)
    for gang in this.standing:
        place_extras(gang, room, this.result, this.budget)
    while yield_extras(this):
        for gang in this.standing:
            place_extras(gang, room, this.result, this.budget)
    return this.result


class Round:
    """The state of a round while floors are placed."""

    def __init__(self, gangs: Sequence[Gang], room: Room, around: Surroundings) -> None:
        self.gangs, self.room, self.around = gangs, room, around
        self._others = list(around.others)
        self.result = Plan()
        self.budget = Budget()
        self.standing: list[Gang] = []
        """Gangs whose floors are placed, in the order in which they get their extras."""
        self._stands: dict[str, bool] = {}
        self._names = {gang.name for gang in gangs}
        self._behind: dict[str, list[Gang]] = {}
        self._failed: dict[object, tuple[Gang, Shortfall]] = {}
        self._lowest = min(
            [gang.priority for gang in gangs if gang.members] + [pod.spec.priority for pod, _ in self._others],
            default=0,
        )

    def consider(self, gang: Gang) -> None:
        """Places the floors of a gang, if it is its turn; scaled gangs come after their base."""
        if gang.base in self._names and gang.base not in self._stands and gang.base != gang.name:
            self._behind.setdefault(gang.base, []).append(gang)
            return
        stands = self._decide(gang)
        self._stands[gang.name] = stands or bool(gang.members)
        if stands:
            self.standing.append(gang)
        for scaled in self._behind.pop(gang.name, ()):
            self.consider(scaled)

    def _decide(self, gang: Gang) -> bool:
        if gang.incomplete:
            return False
        if not base_stands(gang, self._stands):
            if not gang.floor_reached:
                self.result.waiting[gang.name] = Shortfall("base", domain=gang.base)
            return False
        if gang.floor_reached:
            return True
        form = _form(gang, self.room)
        if form in self._failed and gang.name not in self.around.claims:  # room has only become less since
            example, shortfall = self._failed[form]
            self.result.waiting[gang.name] = renamed(shortfall, example, gang)
            return False
        self.budget.begin()
        if place_floor(gang, self.room, self.result, self.budget):
            return True
        if not self._make_room(gang):
            self._failed[form] = (gang, self.result.waiting[gang.name])
        return False

    def may_stand(self, gang: Gang) -> bool:
        """Whether nothing but room keeps the gang from being placed."""
        return not gang.incomplete and base_stands(gang, self._stands)

    def place_late(self, gang: Gang) -> bool:
        """Places the floors of a scaled gang whose base has been placed after its own turn. Nothing else does it: the
        binding of its base begins no other round."""
        self.budget.begin()
        if not place_floor(gang, self.room, self.result, self.budget):
            return False
        self.stand(gang)
        return True

    def stand(self, gang: Gang) -> None:
        """Notes that a gang that waited has been placed after all."""
        del self.result.waiting[gang.name]
        self._stands[gang.name] = True
        self.standing.append(gang)

    def _make_room(self, gang: Gang) -> bool:
        """Tells pods to go in favour of the gang, if that helps; says whether room is kept for it."""
        room, mark = self.room, self.room.mark()
        if not gang.preempts:
            return False
        for pod, node in self.around.leaving:
            room.release(pod, node)
        placement = place(gang, gang.lacking, room, self.budget) if self.around.leaving else None
        evictions: list[Eviction] = []
        if placement is None:
            # Pods that somebody else has deleted may take as long as they like: nobody is evicted on top of them.
            room.undo(mark)
            if self._lowest < gang.priority:
                chosen = preemption.choose(gang, self.gangs, self._others, room, self.budget)
                evictions, placement = chosen or ([], None)
        taken = preemption.net(room, mark)
        room.undo(mark)
        if placement is None:
            return False
        there = {room.name(index) for _, index in placement}
        going = len(evictions) or sum(node in there for _, node in self.around.leaving)
        self.result.waiting[gang.name] = Shortfall("leaving", needed=going)
        if not evictions and gang.name not in self.around.claims:
            return False
        gone = {eviction.pod.metadata.uid for eviction in evictions}
        placed_now = {pod.metadata.uid for pod, _ in self.result.bindings}
        self.result.bindings = [bound for bound in self.result.bindings if bound[0].metadata.uid not in gone]
        self.result.evictions += [e for e in evictions if e.pod.metadata.uid not in placed_now]
        self.result.nominated[gang.name] = [(pod, room.name(node)) for pod, node in placement]
        for index, requests in taken:
            room.take(index, requests, 1)
        for other in self.gangs:
            if any(pod.metadata.uid in gone for pod, _ in other.members):
                preemption.drop(other, gone)
                self._stands[other.name] = bool(other.members)
                if other in self.standing and not other.floor_reached:
                    self.standing.remove(other)
        self._others = [(pod, node) for pod, node in self._others if pod.metadata.uid not in gone]
        return True


def base_stands(gang: Gang, standing: dict[str, bool]) -> bool:
    """Whether a scaled gang may be placed (GS-03); true of any other. A base that runs and has lost pods stands."""
    return not gang.base or standing.get(gang.base, False)


def place_floor(gang: Gang, room: Room, result: Plan, budget: Budget) -> bool:
    """Places what all groups lack to their floors, whole or not at all; says whether the floors are now reached."""
    placement = place(gang, gang.lacking, room, budget)
    if placement is None:
        result.waiting[gang.name] = explained(gang, room, exhausted=budget.exhausted)
        return False
    bind(gang, placement, room, result)
    return True


def place_extras(gang: Gang, room: Room, result: Plan, budget: Budget) -> None:
    """Places pods beyond the floors, each by itself, in the domains that the gang is in (GS-35)."""
    for index, group in enumerate(gang.groups):
        hopeless: set[int] = set()
        for pod in list(group.waiting):
            shape = room.shape(pod)
            if id(shape) in hopeless or not shape.total:
                continue
            budget.begin()
            placement = place(gang, [(index, [pod])], room, budget)
            if placement is None:
                hopeless.add(id(shape))
            else:
                bind(gang, placement, room, result)


def yield_extras(this: Round) -> bool:
    """Places waiting gangs in the room of pods that this round has placed above the minimum of others; says whether it
    placed any. Extra pods come last, but a pod placed for the minimum may hold the only room that a waiting gang can
    use while an extra pod of its group has found room elsewhere: either may count as the extra one (OR-6)."""
    waits = [g for g in this.gangs if g.name in this.result.waiting and g.name not in this.result.nominated]
    forms = {_form(gang, this.room): gang for gang in waits}
    hopeful = preemption.hopeful(forms.values(), this.gangs, _fresh(this.result), this.room, this.budget)
    worth, placed = {_form(gang, this.room) for gang in hopeful}, False
    for gang in waits:
        if not this.may_stand(gang):
            continue
        if this.result.waiting[gang.name].kind == "base" and this.place_late(gang):
            placed = True
            continue
        if (form := _form(gang, this.room)) not in worth:
            continue
        chosen = preemption.yielding(gang, this.gangs, _fresh(this.result), this.room, this.budget)
        if chosen is None:
            worth.discard(form)  # who is placed now may give room to it, then it has another turn
            continue
        given_up, placement = chosen
        this.result.bindings = [bound for bound in this.result.bindings if bound[0].metadata.uid not in given_up]
        for other in this.gangs:
            for group in other.groups:
                group.waiting += [pod for pod, _ in group.members if pod.metadata.uid in given_up]
            preemption.drop(other, given_up)
        bind(gang, placement, this.room, this.result)
        this.stand(gang)
        placed = True
    return placed


def _fresh(result: Plan) -> set[str]:
    """Pods (by uid) that this round has placed."""
    return {pod.metadata.uid for pod, _ in result.bindings}


def bind(gang: Gang, placement: Placement, room: Room, result: Plan) -> None:
    """Makes a placement part of the result and of the gang."""
    nodes = {pod.metadata.uid: room.name(node) for pod, node in placement}
    for group in gang.groups:
        fresh = [(pod, nodes[pod.metadata.uid]) for pod in group.waiting if pod.metadata.uid in nodes]
        if fresh:
            group.members = group.members + fresh
            group.waiting = [pod for pod in group.waiting if pod.metadata.uid not in nodes]
            result.bindings += fresh


def _form(gang: Gang, room: Room) -> object:
    """Equal for gangs that fit or don't fit alike."""
    pods = tuple((i, tuple(id(room.shape(pod)) for pod in pods)) for i, pods in gang.lacking)
    members = tuple(tuple(node for _, node in group.members) for group in gang.groups) if gang.scopes else ()
    return pods, gang.scopes, members, gang.levels, gang.priority
