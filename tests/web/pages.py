"""What readers of a report's page do."""

from __future__ import annotations

from playwright.sync_api import Page

__all__ = ["drag", "rows", "text"]


def text(page: Page, name: str) -> str:
    return page.locator(f"#{name}").inner_text()


def rows(page: Page, name: str) -> list[list[str]]:
    """Return the cells of a table's body."""
    return [row.split("\t") for row in page.locator(f"#{name} tbody tr").all_inner_texts()]


def drag(page: Page, chart: str, first: float, last: float, *, shift: bool = False) -> None:
    """Drag over a chart, from and to shares of its width."""
    over = page.locator(f"#{chart} .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
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
