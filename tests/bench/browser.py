"""A report in the distribution's Chromium: how soon it is there, how soon it follows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from .machine import command

__all__ = ["opened", "painted", "seconds_to_change", "seconds_to_paint"]

#: Notes when the page is complete, and has been painted so.
_WATCH = """
new MutationObserver(() => {
  const { dataset } = document.documentElement ?? { dataset: {} };
  const note = () => (dataset.painted ??= performance.now());
  if (dataset.ready && !dataset.painted) requestAnimationFrame(() => setTimeout(note));
}).observe(document, { attributes: true, childList: true, subtree: true });
"""
_CHANGE = """async (fragment) => {
  const began = performance.now();
  location.hash = fragment;
  await new Promise((done) => addEventListener("hashchange", done, { once: true }));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
}"""


@contextlib.contextmanager
def opened(path: Path, fragment: str = "") -> Iterator[Page]:
    """Open a report as its reader does, 1280 pixels wide, and wait until it is painted."""
    chromium = command("chromium", "chromium fonts-dejavu-core", "to open reports")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(_WATCH)
        page.goto(f"{path.absolute().as_uri()}{fragment}")
        page.wait_for_selector("html[data-painted]", state="attached", timeout=60_000)
        yield page
        browser.close()


def seconds_to_paint(path: Path) -> float:
    """Return how long after the file is opened the whole page is painted."""
    with opened(path) as page:
        return painted(page)


def painted(page: Page) -> float:
    """Return after how many seconds an open report was painted."""
    return float(page.evaluate("document.documentElement.dataset.painted")) / 1e3


def seconds_to_change(page: Page, fragments: Sequence[str]) -> list[float]:
    """Return of each view how long after it was asked for it is painted."""
    return [float(page.evaluate(_CHANGE, fragment)) / 1e3 for fragment in fragments]
