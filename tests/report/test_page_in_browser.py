"""Tests of `report.html` in headless Chromium: search, filters, keys, window widths, and light and dark color
schemes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from conformance.report import page
from conformance.suite.registry.requirement import Level
from tests.pages.browser import LOW_CONTRAST_TEXTS, PROGRAM, Page, browser
from tests.report.test_cases import OUTCOME_KINDS, judged, real
from tests.report.test_page import attacked

pytestmark = [pytest.mark.skipif(PROGRAM is None, reason="needs Chromium"), pytest.mark.asyncio(loop_scope="module")]

VISIBLE_ROWS = "[...document.querySelectorAll('details.row')].filter(row => row.offsetParent).map(row => row.id)"
FOCUSED_ELEMENT = "document.activeElement.closest('details')?.id ?? document.activeElement.name"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened() -> AsyncIterator[Page]:
    async with browser() as tab:
        yield tab


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """The page of a run with each outcome: AA-001 passed, AA-002 failed, and so on."""
    path = tmp_path / "report.html"
    path.write_text(page.render(judged(*((outcome, Level.MUST) for outcome in OUTCOME_KINDS)), tmp_path))
    return path


async def test_a_reader_searches_filters_and_passes_the_view_on(opened: Page, report: Path) -> None:
    await opened.open(report)
    assert len(await opened.value(VISIBLE_ROWS)) == len(OUTCOME_KINDS)
    await opened.press("/", *"aa-002")
    assert await opened.value(VISIBLE_ROWS) == ["AA-002"]
    assert (
        await opened.value("document.getElementById('found').textContent") == f"1 of {len(OUTCOME_KINDS)} requirements"
    )
    assert await opened.value("location.hash") == "#text=aa-002"
    await opened.press("Escape")
    assert len(await opened.value(VISIBLE_ROWS)) == len(OUTCOME_KINDS) and await opened.value("location.hash") == ""
    followed = "addEventListener('hashchange', done, {once: true}); document.querySelector('.chip.blocked').click()"
    await opened.value(f"new Promise(done => {{ {followed} }})")
    blocked = await opened.value(VISIBLE_ROWS)
    assert blocked == ["AA-007", "AA-008"]
    fragment = await opened.value("location.hash")
    await opened.open(report, fragment)
    assert await opened.value(VISIBLE_ROWS) == blocked, "the address has the view"
    for fragment, ids in (("#cause=1", ["AA-002"]), ("#profile=core&outcome=passed", ["AA-001"])):
        await opened.open(report, fragment)
        assert await opened.value(VISIBLE_ROWS) == ids
    assert opened.errors == []


async def test_the_keyboard_is_enough(opened: Page, report: Path) -> None:
    await opened.open(report)
    await opened.press("j", "j", "j", "k")
    order = await opened.value(VISIBLE_ROWS)
    assert await opened.value(FOCUSED_ELEMENT) == order[1]
    closed = f"document.getElementById('{order[1]}').open"
    assert await opened.value(closed) is False
    await opened.press("Enter")
    assert await opened.value(closed) is True
    await opened.press("/", "j")
    assert await opened.value(FOCUSED_ELEMENT) == "text", "keys are letters in the search"


async def test_a_link_to_a_requirement_opens_it(opened: Page, report: Path) -> None:
    await opened.open(report, "#AA-009")
    assert await opened.value("document.getElementById('AA-009').open") is True
    await opened.value(
        f"new Promise(done => {FOCUSED_ELEMENT} === 'AA-009' ? done() : addEventListener('focusin', done))"
    )
    assert await opened.value(FOCUSED_ELEMENT) == "AA-009"


@pytest.mark.parametrize("width", [360, 768, 1440])
async def test_no_element_is_wider_than_the_window(opened: Page, tmp_path: Path, width: int) -> None:
    path = tmp_path / "report.html"
    for report in (attacked(), real()):
        path.write_text(page.render(report, tmp_path))
        await opened.open(path, width=width)
        await opened.value("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        assert await opened.value("document.documentElement.scrollWidth") <= width


async def test_text_can_be_read_in_light_and_dark(opened: Page, report: Path) -> None:
    await opened.open(report)
    grounds = []
    for scheme in ("light", "dark"):
        await opened.scheme(scheme)
        await opened.value("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        low_contrast_texts = await opened.value(LOW_CONTRAST_TEXTS)
        assert low_contrast_texts == [], scheme
        grounds.append(await opened.value("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


async def test_a_command_is_copied(opened: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page.render(real(), tmp_path))
    await opened.open(path)
    await opened.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    await opened.value("document.querySelector('button[data-copy]').focus()")
    await opened.press("Enter")
    label = "document.querySelector('button[data-copy]').textContent"
    changed = "new MutationObserver(done).observe(document.querySelector('button[data-copy]'), {childList: true})"
    await opened.value(f"new Promise(done => {label} === 'Copy' ? {changed} : done())")
    assert await opened.value(label) == "Copied"
    assert await opened.value("navigator.clipboard.readText()") == "grove-conformance run --seed 1 --test t"


async def test_hostile_texts_run_nothing(opened: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page.render(attacked(), tmp_path))
    await opened.open(path)
    assert await opened.value("document.querySelectorAll('img, script').length") == 2, "the page's own scripts"
    assert opened.errors == []


async def test_unescaped_scripts_would_not_run(opened: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    injected_html = '<script>document.title = "owned"</script><img src=x onerror="document.title = \'owned\'">'
    path.write_text(page.render(real(), tmp_path).replace("<main", injected_html + "<main", 1))
    await opened.open(path)
    assert await opened.value("document.title") == "mine 1 is NOT conformant"
    assert any("Content Security Policy" in error for error in opened.errors)


async def test_pictures_next_to_the_page_are_shown(opened: Page, tmp_path: Path) -> None:
    (tmp_path / "bundles" / "t").mkdir(parents=True)
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1240" height="9"><rect width="9" height="9"/></svg>'
    (tmp_path / "bundles" / "t" / "timeline.svg").write_text(svg)
    path = tmp_path / "report.html"
    path.write_text(page.render(real(), tmp_path))
    await opened.open(path)
    await opened.value("document.querySelector('img').scrollIntoView()")
    assert await opened.value("document.querySelector('img').decode()") is None
    assert await opened.value("document.querySelector('img').naturalWidth") == 1240
