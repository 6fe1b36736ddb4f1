"""Generated pages are fresh, links lead somewhere, and what README and docs/safety.md list is complete."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tracer.commands import GROUPS, main, verbs
from tracer.probe import Clock, Hook, Vectors
from tracer.probes import all_probes


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


def test_help_names_the_exit_codes_that_are_no_signals(generate):
    named = re.findall(r"(\d+) [a-z]", main.epilog)
    assert named == [code for code, _ in generate.exit_codes() if int(code) < 128]


def test_relative_links_lead_to_files(checkout):
    pages = [checkout / "README.md", *checkout.glob("docs/*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    assert links
    assert [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_links_to_a_section_find_it(checkout):
    pages = [checkout / "README.md", *checkout.glob("docs/*.md")]
    links = [(page, *link) for page in pages for link in re.findall(r"\]\(([\w./-]+)#([\w-]+)\)", page.read_text())]
    assert links
    lost = [f"{page.name}: {file}#{to}" for page, file, to in links if to not in sections_of(page.parent / file)]
    assert lost == []


def sections_of(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_readme_leads_to_every_page(checkout):
    linked = re.findall(r"\]\(docs/([\w-]+\.md)\)", (checkout / "README.md").read_text())
    assert {page.name for page in checkout.glob("docs/*.md")} - set(linked) == set()


def test_readme_lists_every_verb_in_its_group(checkout):
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.*) \|$", (checkout / "README.md").read_text(), re.M)
    listed = {(group, verb) for group, told in rows for verb in re.findall(r"`([\w-]+)`", told)}
    assert listed == {(verb.group, verb.name) for verb in verbs().values()}
    assert [group for group, _ in rows] == list(GROUPS)


def test_architecture_lists_every_table(checkout):
    text = (checkout / "docs" / "architecture.md").read_text()
    tables = [f"`{probe.name}.{table.name}`" for probe in all_probes().values() for table in probe.tables]
    assert [table for table in tables if table not in text] == []


def test_architecture_says_what_each_folder_imports(checkout):
    table = (checkout / "docs" / "architecture.md").read_text().partition("| folder |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `tracer/(\w+)/` \| ([^|]+) \|", table, re.M))
    folders = {path.parent.name for path in checkout.glob("tracer/*/__init__.py")}
    assert set(rows) == folders
    for folder, said in rows.items():
        files = [path.read_text() for path in (checkout / "tracer" / folder).rglob("*.py")]
        found = {name for text in files for name in re.findall(r"^\s*(?:from|import) tracer\.(\w+)", text, re.M)}
        assert said == "everything" or found & folders - {folder} <= set(said.split(", ")), folder


def test_safety_lists_every_attach_point_with_its_probes(checkout):
    table = (checkout / "docs" / "safety.md").read_text().partition("| attach point |")[2].partition("\n\n")[0]
    listed = {
        (hook, *probe)
        for hooks, probes in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", table, re.M)
        for hook in re.findall(r"(?<=`)[\w:*]+(?=`)|software clock, \d+ Hz", hooks)
        for probe in named_probes(probes)
    }
    hooks = [(probe, hook) for probe in all_probes().values() for hook in probe.hooks]
    assert listed == {(attach_point(hook), probe.name, probe.tier) for probe, hook in hooks}


def named_probes(cell: str) -> list[tuple[str, str]]:
    """Return name and tier of ``light, light, (deep, deep)`` or ``deep (deep)``."""
    light, _, deep = cell.partition("(")
    tiers = {"deep": light} if deep == "deep)" else {"light": light, "deep": deep}
    return [(name, tier) for tier, names in tiers.items() for name in re.findall(r"\w+", names)]


def attach_point(hook: Hook) -> str:
    match hook:
        case Clock():
            return f"software clock, {hook.hz} Hz"
        case Vectors():
            return "irq_vectors:*"
    return hook.name.partition(":")[2]
