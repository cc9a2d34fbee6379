"""A history as a picture (SVG): the states of each gang and each of its pods on one time axis.

The file has no external references and no scripts, and is readable on light and dark backgrounds. Up to `MAX_PODS`
pods have a row each. With more pods, each clique has one row in which its pods are stacked by state; with too many
cliques, each gang has one row. States differ not only in color but also in pattern or text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from conformance import drawing
from conformance.drawing import escape
from conformance.evidence.axis import Axis
from conformance.evidence.bars import (
    POD_STATES,
    Bar,
    CliqueLanes,
    GangLanes,
    Lane,
    TimelineContent,
    TimelineMark,
    count_states,
    mark_partial_spans,
    read_timeline,
)
from conformance.history.query import History

MAX_PODS, MAX_CLIQUES, MAX_GANGS = 48, 36, 48
"""Maximum number of pods, of cliques and of gangs that have rows."""
MAX_MARKS = 14
WIDTH, CHART_X, NOTES_WIDTH, MARGIN = 1240.0, 250.0, 250.0, 16.0
CHART_WIDTH = WIDTH - CHART_X - NOTES_WIDTH
POD_ROW, STACK_ROW, GANG_ROW, LINE_HEIGHT = 13.0, 34.0, 22.0, 17.0
CHARACTER_WIDTH = 6.7
"""Width of a character in the small font, in pixels, slightly overestimated."""

STATES = {
    "gated": "gated",
    "waiting": "waits for a node",
    "bound": "bound, not ready",
    "ready": "ready",
    "ended": "failed or ended",
    "terminating": "terminating",
    "forming": "gang not initialized",
    "waits": "gang waits, nothing bound",
    "partial": "gang bound in part for a moment",
    "torn": "gang TORN: bound in part",
    "whole": "gang whole: minimums bound",
}
COLORS = {
    "soft": ("#57606a", "#9aa4af"), "line": ("#d0d7de", "#30363d"), "change": ("#4a5a86", "#9db1e8"),
    "gated": ("#c4cad1", "#59636e"), "waiting": ("#f2b41b", "#d39a0c"), "bound": ("#5b9ee6", "#3f83cd"),
    "ready": ("#1f8f4e", "#35a866"), "ended": ("#7a3b2e", "#a05a4a"), "terminating": ("#8d63b3", "#a27cc9"),
    "forming": ("#dfe4e9", "#333c46"), "waits": ("#f7dc97", "#7a6220"), "partial": ("#b9d4f2", "#2d4a6b"),
    "torn": ("#e5342c", "#e5342c"), "whole": ("#a9dcbf", "#22583a"),
}  # fmt: skip
"""Colors that only this picture has, in the light and in the dark scheme."""
HATCHINGS = {"gated": "rise", "terminating": "fall", "torn": "rise", "partial": "fall", "ended": "fall"}


def draw(
    history: History,
    failures: Sequence[tuple[float | None, str]] = (),
    title: str = "",
    pool: str = "",
    steps: Sequence[tuple[float, str]] = (),
) -> str:
    """Return the picture. `failures` are failed checks and `steps` are the steps of a scene, each with its time in
    seconds since the recorder started."""
    times = [time for time, _ in failures if time is not None]
    chart = read_timeline(history, max(times, default=0.0), pool)
    chart.changes += [TimelineMark(time, name, "change") for time, name in steps]
    marks = [TimelineMark(time, words, "failure") for time, words in failures]
    mark_partial_spans(chart, marks)
    return Picture(chart, marks, title or history.namespace).text()


class Picture:
    """One picture, drawn from top to bottom."""

    def __init__(self, chart: TimelineContent, failures: Sequence[TimelineMark], title: str) -> None:
        self._timeline, self._failures, self._title = chart, failures, title
        lanes = [gang.lane for gang in chart.gangs] + [p for g in chart.gangs for c in g.cliques for p in c.pods]
        times = [time for lane in lanes for bar in lane.bars for time in (bar.start, bar.end)]
        marks = [mark.at for mark in (*chart.changes, *failures) if mark.at is not None]
        end = chart.end + 0.02 * (chart.end - chart.start)
        self._axis = Axis([*times, *marks], end, CHART_WIDTH, chart.start)
        self._parts: list[str] = []
        self._top = 0.0

    def text(self) -> str:
        """Return the SVG document."""
        self._top = MARGIN + 14
        self._write(MARGIN, self._top, self._title, "title")
        self._top += 8
        self._draw_legend()
        marks = self._write_labels()
        top = self._top + 18
        self._top = top + 8
        self._draw_rows()
        self._draw_ruler(top, self._top)
        self._draw_marks(marks, top, self._top)
        height = self._top + MARGIN + 4
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
            f'viewBox="0 0 {WIDTH:g} {height:g}" role="img">\n<title>{escape(self._title)}</title>\n'
        )
        return head + _style() + f'<rect class="ground" width="100%" height="100%"/>\n{"".join(self._parts)}</svg>\n'

    # -- above the rows ------------------------------------------------------------------------------------------

    def _draw_legend(self) -> None:
        """Draw a legend of the states that occur."""
        gangs = self._timeline.gangs
        lanes = [*(g.lane for g in gangs), *(p for g in gangs for c in g.cliques for p in c.pods)]
        shown_states = {bar.state for lane in lanes for bar in lane.bars}
        x, self._top = MARGIN, self._top + LINE_HEIGHT
        for state in (state for state in STATES if state in shown_states):
            width = 22 + CHARACTER_WIDTH * len(STATES[state]) + 14
            if x + width > WIDTH - MARGIN:
                x, self._top = MARGIN, self._top + LINE_HEIGHT
            self._draw_box(x, self._top - 10, 16, 11, state)
            self._write(x + 21, self._top, STATES[state], "small")
            x += width
        self._top += 6

    def _write_labels(self) -> list[tuple[TimelineMark, str]]:
        """Write the labels of the vertical lines, and return each line with the sign that identifies it."""
        changes = self._timeline.changes[:MAX_MARKS]
        signs = [*((mark, f"✗{n}") for n, mark in enumerate(self._failures, 1))]
        signs += [(mark, chr(ord("a") + n)) for n, mark in enumerate(changes)]
        for mark, sign in signs:
            self._top += LINE_HEIGHT
            moment = f"{mark.at:8.2f} s" if mark.at is not None else "at the end"
            limit = int((WIDTH - 2 * MARGIN - 110) / CHARACTER_WIDTH)
            self._write(MARGIN, self._top, sign, f"mark {mark.kind}")
            self._write(MARGIN + 30, self._top, moment.strip(), "small")
            self._write(MARGIN + 100, self._top, _shorten(" ".join(mark.words.split()), limit), f"words {mark.kind}")
        if hidden := len(self._timeline.changes) - len(changes):
            self._top += LINE_HEIGHT
            self._write(MARGIN + 100, self._top, f"… and {hidden} more changes", "small")
        return signs

    # -- rows ----------------------------------------------------------------------------------------------------

    def _draw_rows(self) -> None:
        gangs = self._timeline.gangs
        if not gangs:
            self._write(CHART_X, self._top + 12, "there was never any pod or gang", "small")
            self._top += GANG_ROW
        by_pod = self._timeline.pods <= MAX_PODS
        by_clique = sum(len(gang.cliques) for gang in gangs) <= MAX_CLIQUES
        if not by_pod and not by_clique and len(gangs) > MAX_GANGS:
            self._draw_totals(gangs)
            gangs = [gang for gang in gangs if gang.is_torn][:MAX_GANGS]
        for gang in gangs:
            if not by_pod and not by_clique:
                self._draw_gang_row(gang)
                continue
            self._draw_gang(gang)
            for clique in gang.cliques:
                self._draw_clique(clique, gang, by_pod)
            self._top += 4

    def _draw_totals(self, gangs: Sequence[GangLanes]) -> None:
        """Draw one stack for all gangs and one for all pods, because there are too many for individual rows. A heading
        for the rows of the torn gangs follows."""
        self._draw_stack(f"{len(gangs)} gangs", [gang.lane for gang in gangs if gang.lane.bars])
        self._draw_stack(f"{self._timeline.pods} pods", [p for gang in gangs for c in gang.cliques for p in c.pods])
        torn = sum(gang.is_torn for gang in gangs)
        if torn:
            self._top += LINE_HEIGHT
            self._write(MARGIN, self._top, f"{torn} gangs are torn in the end:", "words failure")
            self._top += 6

    def _draw_gang(self, gang: GangLanes) -> None:
        lane = gang.lane
        self._write(MARGIN, self._top + 14, _shorten(lane.name or "no gang", 34), "name strong")
        self._draw_bars(lane, self._top + 3, GANG_ROW - 6)
        for bar in lane.bars:
            words, x = "TORN: bound in part, its minimums are not", self._axis.x(bar.start)
            if bar.state == "torn" and self._axis.x(bar.end) - x > CHARACTER_WIDTH * len(words) + 12:
                self._write(CHART_X + x + 6, self._top + 14, words, "on")
        self._write_note(_final_note(gang), self._top + 14, "failure" if gang.is_torn else "small")
        self._top += GANG_ROW

    def _draw_gang_row(self, gang: GangLanes) -> None:
        """Draw a gang and all its pods in one row."""
        top, pods = self._top, [pod for clique in gang.cliques for pod in clique.pods]
        note = _final_note(gang) if gang.is_torn else ", ".join(_tally(pods))
        self._draw_stack(gang.lane.name or "no gang", pods, note, "failure" if gang.is_torn else "small", free_top=7)
        self._draw_bars(gang.lane, top + 2, 6)

    def _draw_clique(self, clique: CliqueLanes, gang: GangLanes, by_pod: bool) -> None:
        bound, existing = clique.count_final("bound", "ready"), sum(lane.note != "gone" for lane in clique.pods)
        minimum = "" if clique.minimum is None else f", minimum {clique.minimum}"
        is_short = gang.is_torn and bound < (clique.minimum or 0)
        note, kind = f"{bound} of {existing} bound{minimum}", "failure" if is_short else "small"
        if not by_pod:
            self._draw_stack(clique.name, clique.pods, note, kind)
            return
        self._write(MARGIN + 10, self._top + 12, _shorten(clique.name, 34), "name")
        self._write_note(note, self._top + 12, kind)
        self._top += LINE_HEIGHT
        for lane in clique.pods:
            self._write(MARGIN + 20, self._top + 10, _shorten(lane.name, 34), "name faint")
            self._draw_bars(lane, self._top + 1, POD_ROW - 3)
            self._write_note(lane.note, self._top + 10, "faint")
            self._top += POD_ROW

    def _draw_bars(self, lane: Lane, y: float, height: float) -> None:
        for bar in lane.bars:
            x, width = CHART_X + self._axis.x(bar.start), self._axis.x(bar.end) - self._axis.x(bar.start)
            self._draw_box(x, y, max(width, 1.2), height, bar.state, _tooltip(lane.name, bar))

    def _draw_stack(
        self, name: str, lanes: Sequence[Lane], note: str = "", kind: str = "small", free_top: float = 0.0
    ) -> None:
        """Draw the number of lanes in each state over time, as heights. `free_top` is the number of pixels left free at
        the top."""
        maximum = max((sum(states.values()) for _, states in count_states(lanes)), default=0)
        self._write(MARGIN + 10, self._top + 14, _shorten(name, 34), "name")
        self._write(MARGIN + 10, self._top + 27, f"up to {maximum} at a time", "faint")
        self._write_note(note or ", ".join(_tally(lanes)), self._top + 14, kind)
        height, bottom = STACK_ROW - 4 - free_top, self._top + STACK_ROW - 2
        self._draw_rect(CHART_X, self._top + 2 + free_top, CHART_WIDTH, height, "frame")
        for start, end, states in self._steps(lanes):
            y = bottom
            for state in reversed([*POD_STATES, "whole", "torn", "partial", "waits", "forming"]):
                if number := states.get(state, 0):
                    share = height * number / max(maximum, 1)
                    y -= share
                    self._draw_box(
                        CHART_X + start, y, end - start, share, state, f"{number} of {name or 'the gang'}: {state}"
                    )
        self._top += STACK_ROW

    def _steps(self, lanes: Sequence[Lane]) -> Iterator[tuple[float, float, dict[str, int]]]:
        """Yield spans that are at least one pixel wide, each with the numbers that hold at its end."""
        steps = count_states(lanes)
        points: list[tuple[float, dict[str, int]]] = []
        for time, states in steps:
            x = self._axis.x(time)
            if points and x - points[-1][0] < 1.0:
                points[-1] = (points[-1][0], states)
            else:
                points.append((x, states))
        ends = [*(x for x, _ in points[1:]), *(self._axis.x(time) for time, _ in steps[-1:])]
        for (x, states), end in zip(points, ends, strict=True):
            if end > x:
                yield x, end, states

    # -- time ----------------------------------------------------------------------------------------------------

    def _draw_ruler(self, top: float, bottom: float) -> None:
        for tick in self._axis.ticks():
            x = CHART_X + self._axis.x(tick)
            self._draw_line(x, top, bottom, "tick")
            self._write(x, top - 4, f"{tick:g} s", "faint middle")
        for start, end, seconds in self._axis.breaks:
            self._draw_rect(CHART_X + start, top, end - start, bottom - top, "break")
            self._write(CHART_X + (start + end) / 2, top - 4, f"⋯ {seconds:.0f} s ⋯", "faint middle")

    def _draw_marks(self, marks: Iterable[tuple[TimelineMark, str]], top: float, bottom: float) -> None:
        occupied: list[tuple[float, float]] = []
        for mark, sign in marks:
            if mark.at is None:
                continue
            x, y = CHART_X + self._axis.x(mark.at), bottom + 10
            self._draw_line(x, top, bottom, mark.kind)
            while any(abs(x - other_x) < 14 and y == level for other_x, level in occupied):
                y += 12
            occupied.append((x, y))
            self._write(x, y, sign, f"mark {mark.kind} middle")
        self._top = max([bottom, *(level for _, level in occupied)])

    # -- elements ------------------------------------------------------------------------------------------------

    def _write_note(self, words: str, y: float, kind: str) -> None:
        limit = int((NOTES_WIDTH - 2 * MARGIN) / (CHARACTER_WIDTH * 0.93))
        self._write(
            CHART_X + CHART_WIDTH + 10, y, _shorten(words, limit), f"note {kind}", words if len(words) > limit else ""
        )

    def _write(self, x: float, y: float, words: str, kind: str, full_text: str = "") -> None:
        title = f"<title>{escape(full_text)}</title>" if full_text else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}{title}</text>\n')

    def _draw_box(self, x: float, y: float, width: float, height: float, state: str, title: str = "") -> None:
        title = f"<title>{escape(title)}</title>" if title else ""
        self._draw_rect(x, y, width, height, state, title)
        if state in HATCHINGS:
            self._draw_rect(x, y, width, height, HATCHINGS[state], title)

    def _draw_rect(self, x: float, y: float, width: float, height: float, kind: str, content: str = "") -> None:
        size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect {size} class="{kind}">{content}</rect>\n')

    def _draw_line(self, x: float, top: float, bottom: float, kind: str) -> None:
        self._parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" class="{kind}"/>\n')


def _style() -> str:
    colors = [drawing.COLORS[color] for color in (drawing.INK, drawing.RED, drawing.PAPER)]
    colors += [(f"--{name}", *pair) for name, pair in COLORS.items()]
    shapes = (
        "text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:var(--ink)}"
        "rect{shape-rendering:crispEdges}.title{font-size:15px;font-weight:bold}.strong,.mark,.failure{font-weight:bold}"
        ".faint{fill:var(--soft)}.ground{fill:var(--paper)}pattern path{stroke:var(--paper)}"
        ".on{font-weight:bold;fill:#fff;paint-order:stroke;stroke:#8d1712;stroke-width:3px}"
        ".middle{text-anchor:middle}.rise{fill:url(#rise)}.fall{fill:url(#fall)}"
        "text.failure{fill:var(--red)}line.failure{stroke:var(--red);stroke-width:2;stroke-dasharray:6 3}"
        "text.change{fill:var(--change)}line.change{stroke:var(--change);stroke-dasharray:2 3}"
        "line.tick,.frame,.break{stroke:var(--line)}.frame{fill:none}"
        ".break{fill:var(--paper);opacity:.75;stroke-dasharray:1 2}"
    )
    states = "".join(f".{state}{{fill:var(--{state})}}" for state in STATES)
    pattern = '<pattern id="{0}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="{1}"/></pattern>'
    rise = pattern.format("rise", "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2")
    fall = pattern.format("fall", "M-1,5 l2,2 M0,0 l6,6 M5,-1 l2,2")
    return f"<style>{drawing.schemes(colors)}{shapes}{states}</style>\n<defs>{rise}{fall}</defs>\n"


def _final_note(gang: GangLanes) -> str:
    """Return the gang's last state as text, in which its own name is left out."""
    note = gang.lane.note.replace(f"{gang.lane.name}-", "")
    return f"TORN: {note}" if gang.is_torn else note


def _tooltip(name: str, bar: Bar) -> str:
    return f"{name}: {STATES[bar.state]} from {bar.start:.3f} to {bar.end:.3f} s"


def _tally(lanes: Iterable[Lane]) -> list[str]:
    """Return the number of lanes that ended in each state, as words."""
    last_states = [lane.bars[-1].state for lane in lanes if lane.bars and lane.note != "gone"]
    return [f"{last_states.count(state)} {state}" for state in STATES if state in last_states]


def _shorten(words: str, limit: int) -> str:
    return words if len(words) <= limit else words[: limit - 1] + "…"
