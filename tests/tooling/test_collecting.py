"""What a run does before its first test stays small."""

from __future__ import annotations

import ast

from tests.support import ROOT

# As test modules import them (tests/support/postponed.py).
_SDKS = {"import anthropic", "from google import genai", "import ollama", "import openai"}


def test_no_test_module_uses_an_sdk_while_it_is_collected() -> None:
    used = {
        f"{file.relative_to(ROOT)}:{line}"
        for file in (ROOT / "tests").rglob("test_*.py")
        if any(line in (text := file.read_text("utf-8")) for line in _SDKS)
        for line in _uses(ast.parse(text).body)
    }

    assert used == set(), "each loads a thousand modules, before the first test"


def _uses(body: list[ast.stmt]) -> list[int]:
    """The lines where a module itself, outside of its functions, asks for a member of an SDK."""
    imports = [ast.unparse(each) for each in body if isinstance(each, ast.Import | ast.ImportFrom)]
    sdks = {each.split()[-1] for each in imports if each in _SDKS}
    parts: list[ast.AST] = [*body] if sdks else []
    found: list[int] = []
    while parts:
        part = parts.pop()
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            # What its annotations name is not looked up.
            parts += part.decorator_list
            continue
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            found += [part.lineno] if part.value.id in sdks else []
        parts += ast.iter_child_nodes(part)
    return found
