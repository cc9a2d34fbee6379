"""Tests of the log of changed nodes."""

from __future__ import annotations

from reference_impl.scheduler.change_log import ChangeLog


def test_each_node_is_reported_once_in_the_order_of_its_last_change():
    log = ChangeLog()
    for node in (1, 2, 3, 1, 2, 2):
        log.add(node)
    assert [log.changed_after(count) for count in range(log.count + 1)] == [
        [3, 1, 2],
        [3, 1, 2],
        [3, 1, 2],
        [1, 2],
        [2],
        [2],
        [],
    ]
