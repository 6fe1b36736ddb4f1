"""The words that our own sentences are made of, for whoever has to tell them from names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

__all__ = ["own_words"]

#: With digits or signs in it, it is an example of a name.
_WORD = re.compile(r"\b[A-Za-z][A-Za-z-]*\b")


@cache
def own_words() -> frozenset[str]:
    """Return every word that stands in a text of this package: titles, advice, parts of sentences, patterns of lines.

    They are read from its source, where sentences are in pieces with the numbers and names between them.
    """
    trees = (ast.parse(path.read_bytes()) for path in Path(__file__).parent.rglob("*.py"))
    texts = (
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return frozenset(word for text in texts for word in _WORD.findall(text))
