"""A history as a picture (SVG): the states of each gang and each of its pods on one time axis.

The file has no external references and no scripts, and is readable on light and dark backgrounds. Up to `MAX_PODS`
pods have a row each. With more pods, each clique has one row in which its pods are stacked by state; with too many
cliques, each gang has one row. States differ not only in color but also in pattern or text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from xml.sax.saxutils import escape

from conformance.evidence.axis import Axis
from conformance.evidence.bars import (
    POD_STATES,
    Bar,
    CliqueLanes,
    GangLanes,
    Lane,
    TimelineContent,
    TimelineMark,
    counted,
    excuse,
    scene,
)
from conformance.history.query import History

MAX_PODS, MAX_CLIQUES, MAX_GANGS = 48, 36, 48
"""Maximum number of pods, of cliques and of gangs that have rows."""
MAX_MARKS = 14
WIDTH, CHART_X, RIGHT, MARGIN = 1240.0, 250.0, 250.0, 16.0
CHART = WIDTH - CHART_X - RIGHT
POD_ROW, STACK_ROW, GANG_ROW, LINE_HEIGHT = 13.0, 34.0, 22.0, 17.0
CHARACTER = 6.7
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
LIGHT = {
    "ground": "#ffffff", "text": "#1d2329", "faint": "#5d6873", "line": "#d5dbe1", "failure": "#b3140f",
    "change": "#4a5a86", "gated": "#c4cad1", "waiting": "#f2b41b", "bound": "#5b9ee6", "ready": "#1f8f4e",
    "ended": "#7a3b2e", "terminating": "#8d63b3", "forming": "#dfe4e9", "waits": "#f7dc97", "partial": "#b9d4f2",
    "torn": "#e5342c",
    "whole": "#a9dcbf", "hatch": "#ffffff",
}  # fmt: skip
DARK = {
    "ground": "#14181d", "text": "#e8ecf0", "faint": "#98a4b0", "line": "#333c46", "failure": "#ff7b72",
    "change": "#9db1e8", "gated": "#59636e", "waiting": "#d39a0c", "bound": "#3f83cd", "ready": "#35a866",
    "ended": "#a05a4a", "terminating": "#a27cc9", "forming": "#333c46", "waits": "#7a6220", "partial": "#2d4a6b",
    "torn": "#e5342c",
    "whole": "#22583a", "hatch": "#14181d",
}  # fmt: skip
HATCHED = {"gated": "rise", "terminating": "fall", "torn": "rise", "partial": "fall", "ended": "fall"}


def draw(
    history: History,
    failures: Sequence[tuple[float | None, str]] = (),
    title: str = "",
    pool: str = "",
    steps: Sequence[tuple[float, str]] = (),
) -> str:
    """Return the picture. `failures` are failed checks and `steps` are the steps of a scene, each with its time in
    seconds since the recorder started."""
    times = [at for at, _ in failures if at is not None]
    chart = scene(history, max(times, default=0.0), pool)
    chart.changes += [TimelineMark(at, name, "change") for at, name in steps]
    marks = [TimelineMark(at, words, "failure") for at, words in failures]
    excuse(chart, marks)
    return Picture(chart, marks, title or history.namespace).text()


class Picture:
    """One picture, drawn from top to bottom."""

    def __init__(self, chart: TimelineContent, failures: Sequence[TimelineMark], title: str) -> None:
        self._scene, self._failures, self._title = chart, failures, title
        lanes = [gang.lane for gang in chart.gangs] + [p for g in chart.gangs for c in g.cliques for p in c.pods]
        times = [moment for lane in lanes for bar in lane.bars for moment in (bar.begin, bar.end)]
        marks = [mark.at for mark in (*chart.changes, *failures) if mark.at is not None]
        end = chart.end + 0.02 * (chart.end - chart.begin)
        self._axis = Axis([*times, *marks], end, CHART, chart.begin)
        self._parts: list[str] = []
        self._y = 0.0

    def text(self) -> str:
        """Return the SVG document."""
        self._y = MARGIN + 14
        self._write(MARGIN, self._y, self._title, "title")
        self._y += 8
        self._legend()
        marks = self._write_labels()
        top = self._y + 18
        self._y = top + 8
        self._rows()
        self._ruler(top, self._y)
        self._draw_marks(marks, top, self._y)
        height = self._y + MARGIN + 4
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
            f'viewBox="0 0 {WIDTH:g} {height:g}" role="img">\n<title>{_safe(self._title)}</title>\n'
        )
        return head + _style() + f'<rect class="ground" width="100%" height="100%"/>\n{"".join(self._parts)}</svg>\n'

    # -- above the rows ------------------------------------------------------------------------------------------

    def _legend(self) -> None:
        """Draw a legend of the states that occur."""
        gangs = self._scene.gangs
        lanes = [*(g.lane for g in gangs), *(p for g in gangs for c in g.cliques for p in c.pods)]
        present = {bar.state for lane in lanes for bar in lane.bars}
        x, self._y = MARGIN, self._y + LINE_HEIGHT
        for state in (state for state in STATES if state in present):
            width = 22 + CHARACTER * len(STATES[state]) + 14
            if x + width > WIDTH - MARGIN:
                x, self._y = MARGIN, self._y + LINE_HEIGHT
            self._box(x, self._y - 10, 16, 11, state)
            self._write(x + 21, self._y, STATES[state], "small")
            x += width
        self._y += 6

    def _write_labels(self) -> list[tuple[TimelineMark, str]]:
        """Write the labels of the vertical lines, and return each line with the sign that identifies it."""
        changes = self._scene.changes[:MAX_MARKS]
        signs = [*((mark, f"✗{n}") for n, mark in enumerate(self._failures, 1))]
        signs += [(mark, chr(ord("a") + n)) for n, mark in enumerate(changes)]
        for mark, sign in signs:
            self._y += LINE_HEIGHT
            moment = f"{mark.at:8.2f} s" if mark.at is not None else "at the end"
            limit = int((WIDTH - 2 * MARGIN - 110) / CHARACTER)
            self._write(MARGIN, self._y, sign, f"mark {mark.kind}")
            self._write(MARGIN + 30, self._y, moment.strip(), "small")
            self._write(MARGIN + 100, self._y, _shortened(" ".join(mark.words.split()), limit), f"words {mark.kind}")
        if hidden := len(self._scene.changes) - len(changes):
            self._y += LINE_HEIGHT
            self._write(MARGIN + 100, self._y, f"… and {hidden} more changes", "small")
        return signs

    # -- rows ----------------------------------------------------------------------------------------------------

    def _rows(self) -> None:
        gangs = self._scene.gangs
        if not gangs:
            self._write(CHART_X, self._y + 12, "there was never any pod or gang", "small")
            self._y += GANG_ROW
        by_pod = self._scene.pods <= MAX_PODS
        by_clique = sum(len(gang.cliques) for gang in gangs) <= MAX_CLIQUES
        if not by_pod and not by_clique and len(gangs) > MAX_GANGS:
            self._draw_totals(gangs)
            gangs = [gang for gang in gangs if gang.torn][:MAX_GANGS]
        for gang in gangs:
            if not by_pod and not by_clique:
                self._gang_row(gang)
                continue
            self._gang(gang)
            for clique in gang.cliques:
                self._clique(clique, gang, by_pod)
            self._y += 4

    def _draw_totals(self, gangs: Sequence[GangLanes]) -> None:
        """Draw one stack for all gangs and one for all pods, because there are too many for individual rows. A heading
        for the rows of the torn gangs follows."""
        self._stack(f"{len(gangs)} gangs", [gang.lane for gang in gangs if gang.lane.bars])
        self._stack(f"{self._scene.pods} pods", [p for gang in gangs for c in gang.cliques for p in c.pods])
        torn = sum(gang.torn for gang in gangs)
        if torn:
            self._y += LINE_HEIGHT
            self._write(MARGIN, self._y, f"{torn} gangs are torn in the end:", "words failure")
            self._y += 6

    def _gang(self, gang: GangLanes) -> None:
        lane = gang.lane
        self._write(MARGIN, self._y + 14, _shortened(lane.name or "no gang", 34), "name strong")
        self._bars(lane, self._y + 3, GANG_ROW - 6)
        for bar in lane.bars:
            words, x = "TORN: bound in part, its minimums are not", self._axis.x(bar.begin)
            if bar.state == "torn" and self._axis.x(bar.end) - x > CHARACTER * len(words) + 12:
                self._write(CHART_X + x + 6, self._y + 14, words, "on")
        self._note(_final_note(gang), self._y + 14, "failure" if gang.torn else "small")
        self._y += GANG_ROW

    def _gang_row(self, gang: GangLanes) -> None:
        """Draw a gang and all its pods in one row."""
        top, pods = self._y, [pod for clique in gang.cliques for pod in clique.pods]
        note = _final_note(gang) if gang.torn else ", ".join(_tally(pods))
        self._stack(gang.lane.name or "no gang", pods, note, "failure" if gang.torn else "small", above=7)
        self._bars(gang.lane, top + 2, 6)

    def _clique(self, clique: CliqueLanes, gang: GangLanes, by_pod: bool) -> None:
        bound, existing = clique.at_the_end("bound", "ready"), sum(lane.note != "gone" for lane in clique.pods)
        minimum = "" if clique.minimum is None else f", minimum {clique.minimum}"
        is_short = gang.torn and bound < (clique.minimum or 0)
        note, kind = f"{bound} of {existing} bound{minimum}", "failure" if is_short else "small"
        if not by_pod:
            self._stack(clique.name, clique.pods, note, kind)
            return
        self._write(MARGIN + 10, self._y + 12, _shortened(clique.name, 34), "name")
        self._note(note, self._y + 12, kind)
        self._y += LINE_HEIGHT
        for lane in clique.pods:
            self._write(MARGIN + 20, self._y + 10, _shortened(lane.name, 34), "name faint")
            self._bars(lane, self._y + 1, POD_ROW - 3)
            self._note(lane.note, self._y + 10, "faint")
            self._y += POD_ROW

    def _bars(self, lane: Lane, y: float, height: float) -> None:
        for bar in lane.bars:
            x, width = CHART_X + self._axis.x(bar.begin), self._axis.x(bar.end) - self._axis.x(bar.begin)
            self._box(x, y, max(width, 1.2), height, bar.state, _tooltip(lane.name, bar))

    def _stack(self, name: str, lanes: Sequence[Lane], note: str = "", kind: str = "small", above: float = 0.0) -> None:
        """Draw the number of lanes in each state over time, as heights. `above` is the number of pixels left free at
        the top."""
        maximum = max((sum(states.values()) for _, states in counted(lanes)), default=0)
        self._write(MARGIN + 10, self._y + 14, _shortened(name, 34), "name")
        self._write(MARGIN + 10, self._y + 27, f"up to {maximum} at a time", "faint")
        self._note(note or ", ".join(_tally(lanes)), self._y + 14, kind)
        height, bottom = STACK_ROW - 4 - above, self._y + STACK_ROW - 2
        self._rect(CHART_X, self._y + 2 + above, CHART, height, "frame")
        for start, end, states in self._steps(lanes):
            y = bottom
            for state in reversed([*POD_STATES, "whole", "torn", "partial", "waits", "forming"]):
                if number := states.get(state, 0):
                    share = height * number / max(maximum, 1)
                    y -= share
                    self._box(
                        CHART_X + start, y, end - start, share, state, f"{number} of {name or 'the gang'}: {state}"
                    )
        self._y += STACK_ROW

    def _steps(self, lanes: Sequence[Lane]) -> Iterator[tuple[float, float, dict[str, int]]]:
        """Yield spans that are at least one pixel wide, each with the numbers that hold at its end."""
        steps = counted(lanes)
        points: list[tuple[float, dict[str, int]]] = []
        for moment, states in steps:
            x = self._axis.x(moment)
            if points and x - points[-1][0] < 1.0:
                points[-1] = (points[-1][0], states)
            else:
                points.append((x, states))
        ends = [*(x for x, _ in points[1:]), *(self._axis.x(moment) for moment, _ in steps[-1:])]
        for (x, states), end in zip(points, ends, strict=True):
            if end > x:
                yield x, end, states

    # -- time ----------------------------------------------------------------------------------------------------

    def _ruler(self, top: float, bottom: float) -> None:
        for tick in self._axis.ticks():
            x = CHART_X + self._axis.x(tick)
            self._line(x, top, bottom, "tick")
            self._write(x, top - 4, f"{tick:g} s", "faint middle")
        for start, end, seconds in self._axis.breaks:
            self._rect(CHART_X + start, top, end - start, bottom - top, "break")
            self._write(CHART_X + (start + end) / 2, top - 4, f"⋯ {seconds:.0f} s ⋯", "faint middle")

    def _draw_marks(self, marks: Iterable[tuple[TimelineMark, str]], top: float, bottom: float) -> None:
        occupied: list[tuple[float, float]] = []
        for mark, sign in marks:
            if mark.at is None:
                continue
            x, y = CHART_X + self._axis.x(mark.at), bottom + 10
            self._line(x, top, bottom, mark.kind)
            while any(abs(x - other) < 14 and y == level for other, level in occupied):
                y += 12
            occupied.append((x, y))
            self._write(x, y, sign, f"mark {mark.kind} middle")
        self._y = max([bottom, *(level for _, level in occupied)])

    # -- elements ------------------------------------------------------------------------------------------------

    def _note(self, words: str, y: float, kind: str) -> None:
        limit = int((RIGHT - 2 * MARGIN) / (CHARACTER * 0.93))
        self._write(
            CHART_X + CHART + 10, y, _shortened(words, limit), f"note {kind}", words if len(words) > limit else ""
        )

    def _write(self, x: float, y: float, words: str, kind: str, whole: str = "") -> None:
        title = f"<title>{_safe(whole)}</title>" if whole else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{_safe(words)}{title}</text>\n')

    def _box(self, x: float, y: float, width: float, height: float, state: str, title: str = "") -> None:
        title = f"<title>{_safe(title)}</title>" if title else ""
        self._rect(x, y, width, height, state, title)
        if state in HATCHED:
            self._rect(x, y, width, height, HATCHED[state], title)

    def _rect(self, x: float, y: float, width: float, height: float, kind: str, within: str = "") -> None:
        size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect {size} class="{kind}">{within}</rect>\n')

    def _line(self, x: float, top: float, bottom: float, kind: str) -> None:
        self._parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" class="{kind}"/>\n')


def _style() -> str:
    def colours(of: dict[str, str]) -> str:
        fills = [f".{state}{{fill:{of[state]}}}" for state in ("ground", *STATES)]
        rules = [f"line.{kind}{{stroke:{of[kind]}}}text.{kind}{{fill:{of[kind]}}}" for kind in ("failure", "change")]
        rules += [f"line.tick,.frame,.break{{stroke:{of['line']}}}.break{{fill:{of['ground']}}}"]
        words = f"text{{fill:{of['text']}}}.faint{{fill:{of['faint']}}}pattern path{{stroke:{of['hatch']}}}"
        return words + "".join(fills + rules)

    shapes = (
        "text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
        "rect{shape-rendering:crispEdges}.title{font-size:15px;font-weight:bold}.strong,.mark,.failure{font-weight:bold}"
        ".on{font-weight:bold;fill:#fff;paint-order:stroke;stroke:#8d1712;stroke-width:3px}"
        ".middle{text-anchor:middle}.rise{fill:url(#rise)}.fall{fill:url(#fall)}"
        "line.failure{stroke-width:2;stroke-dasharray:6 3}line.change{stroke-dasharray:2 3}"
        ".frame{fill:none}.break{opacity:.75;stroke-dasharray:1 2}"
    )
    dark = f"@media (prefers-color-scheme:dark){{{colours(DARK)}}}"
    pattern = '<pattern id="{0}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="{1}"/></pattern>'
    rise = pattern.format("rise", "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2")
    fall = pattern.format("fall", "M-1,5 l2,2 M0,0 l6,6 M5,-1 l2,2")
    return f"<style>{shapes}{colours(LIGHT)}{dark}</style>\n<defs>{rise}{fall}</defs>\n"


def _final_note(gang: GangLanes) -> str:
    """Return the gang's last state as text, in which its own name is left out."""
    note = gang.lane.note.replace(f"{gang.lane.name}-", "")
    return f"TORN: {note}" if gang.torn else note


def _tooltip(name: str, bar: Bar) -> str:
    return f"{name}: {STATES[bar.state]} from {bar.begin:.3f} to {bar.end:.3f} s"


def _tally(lanes: Iterable[Lane]) -> list[str]:
    """Return the number of lanes that ended in each state, as words."""
    last_states = [lane.bars[-1].state for lane in lanes if lane.bars and lane.note != "gone"]
    return [f"{last_states.count(state)} {state}" for state in STATES if state in last_states]


def _shortened(words: str, limit: int) -> str:
    return words if len(words) <= limit else words[: limit - 1] + "…"


def _safe(words: str) -> str:
    """Escape text for an XML document and drop control characters."""
    return escape("".join(c if c.isprintable() or c == " " else "�" for c in words), {'"': "&quot;"})
