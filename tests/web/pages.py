"""What readers of a report's page do."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["address", "drag", "find_nothing_wrong", "in_view", "rows", "text"]


def address(page: Page) -> str:
    """Return the address as the page itself has it: the browser tells of a new one later."""
    return page.evaluate("location.href")


def text(page: Page, name: str) -> str:
    return page.locator(f"#{name}").inner_text()


def rows(page: Page, name: str) -> list[list[str]]:
    """Return the cells of a table's body."""
    return [row.split("\t") for row in page.locator(f"#{name} tbody tr").all_inner_texts()]


def find_nothing_wrong(page: Page, *, contrast: bool = True) -> None:
    """Have axe look at the page; contrasts, which take it most of its time, where they are no other page's."""
    rules = {"color-contrast": {"enabled": contrast}}
    found = Axe().run(page, options={"resultTypes": ["violations"], "rules": rules})
    assert found.violations_count == 0, found.generate_report()


def in_view(page: Page, chart: str) -> dict[str, float]:
    """Scroll to a chart and return where it is, once it knows of that: charts learn of it in the next frame."""
    over = page.locator(f"#{chart} .u-over")
    over.scroll_into_view_if_needed()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return over.bounding_box()


def drag(page: Page, chart: str, first: float, last: float, *, shift: bool = False) -> None:
    """Drag over a chart, from and to shares of its width."""
    box = in_view(page, chart)
    middle = box["y"] + box["height"] / 2
    if shift:
        page.keyboard.down("Shift")
    page.mouse.move(box["x"] + first * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + (first + last) / 2 * box["width"], middle)
    page.mouse.move(box["x"] + last * box["width"], middle)
    page.mouse.up()
    if shift:
        page.keyboard.up("Shift")
