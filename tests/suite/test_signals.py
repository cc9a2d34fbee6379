"""Tests that a signal stops a run once, and never stops its report."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console

from conformance.run import launch, watch

STOP_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def not_ignored() -> Iterator[None]:
    """Reset SIGHUP, which runs ignore if the parent of the tests ignores it, as `nohup` does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_run_is_stopped_once(number: signal.Signals) -> None:
    err = StringIO()
    with launch._handle_stop_signals(Console(file=err)):
        with pytest.raises(KeyboardInterrupt):
            send(number)
        send(number)
    assert err.getvalue() == "stopping: clusters are being taken down\n"


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_after_the_last_test_stops_neither_the_cleanup_nor_the_report(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with launch._handle_stop_signals(Console(file=StringIO())) as only_answer:
        only_answer()
        send(number)
    with launch._ignore_stop_signals():
        send(number)
    assert signal.getsignal(number) is before


def test_a_signal_between_lines_is_shown_like_another() -> None:
    def between_lines() -> None:
        raise KeyboardInterrupt

    between_lines.__code__ = between_lines.__code__.replace(co_linetable=b"")  # as at the start of a `with`
    with pytest.raises(KeyboardInterrupt) as caught:
        between_lines()
    with pytest.raises(TypeError):
        pytest.ExceptionInfo.from_exception(caught.value).getrepr()
    watch.cut_frames_without_line(caught.tb)
    assert "KeyboardInterrupt" in str(caught.getrepr())
