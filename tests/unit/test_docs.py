"""Generated pages are fresh, links lead somewhere, and the README's exit codes are the program's."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def generate(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", checkout / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_fresh(generate):
    assert generate.stale() == [], "run 'make docs'"


def test_readme_lists_every_exit_code(generate, checkout):
    listed = re.findall(r"^\| (\d+) \| (.*) \|$", (checkout / "README.md").read_text(), re.M)
    assert listed == generate.exit_codes()


def test_relative_links_lead_to_files(checkout):
    pages = [checkout / "README.md", *checkout.glob("docs/*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    assert links
    assert [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()] == []
