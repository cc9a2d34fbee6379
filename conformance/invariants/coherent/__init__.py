"""Rules about coherent updates (coherent.md, section 3.6), for sets with the strategy Coherent in any history."""

from __future__ import annotations

from conformance.history.origins import Origins
from conformance.invariants.coherent.availability import Availability, ServingUnit
from conformance.invariants.coherent.batches import AnchorsFirst, OneBatchAtATime, OneReadyBatchAtATime
from conformance.invariants.coherent.first_text import FirstText
from conformance.invariants.coherent.gangs import ScheduledBeforeReady
from conformance.invariants.coherent.maps import OneGangForAReplica, Partition
from conformance.invariants.coherent.members import NoSurge, PodsFollowTheMap
from conformance.invariants.coherent.rest import SteadyState
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.scope import OneReplicaAtATime, OutOfScope
from conformance.invariants.coherent.state import CoherentState
from conformance.invariants.coherent.versions import OneVersionInAGang


def rules(origins: Origins) -> list[CoherentRule]:
    """Return a new instance of every rule; all instances share one state."""
    state = CoherentState(origins)
    return [
        Availability(state),
        ServingUnit(state),
        Partition(state),
        OneVersionInAGang(state),
        OutOfScope(state),
        OneReplicaAtATime(state),
        OneBatchAtATime(state),
        OneReadyBatchAtATime(state),
        AnchorsFirst(state),
        NoSurge(state),
        PodsFollowTheMap(state),
        OneGangForAReplica(state),
        SteadyState(state),
        FirstText(state),
        ScheduledBeforeReady(state),
    ]
