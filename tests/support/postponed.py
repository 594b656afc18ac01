"""The vendors' SDKs, loaded when a test first uses one.

A run collects all tests, and often runs a part of them. The SDKs are six thousand modules full of
pydantic's classes: loading them was a fifth of what collecting took.

After `postpone`, `import openai` gives a stand-in that loads the package at its first attribute.
So a test module says `import openai` and `openai.NotFoundError`, and names no member of it while it
is collected: where it parametrises, the member's name will do.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

_loading = threading.RLock()
# The one member with such a name that a user may ask for. The others are asked of everything in a
# test module: by pytest (`__test__`, and `__bases__` where it looks for classes of tests) and of
# every loaded module by hypothesis (`__file__`). Neither uses the package.
_WANTED_SPECIAL = "__version__"


class _Postponed(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__path__":
            raise ImportError(f"write `import {self.__name__}`, and no `from` or submodule of it")
        if name.startswith("__") and name != _WANTED_SPECIAL:
            raise AttributeError(name)
        return getattr(_load(self.__name__), name)


def postpone(*names: str) -> None:
    """Let the next `import NAME` load nothing yet; a package that is there already stays."""
    for name in names:
        sys.modules.setdefault(name, _Postponed(name))


def load(*packages: ModuleType) -> None:
    """Load them now: for a program of somebody's that imports as it likes."""
    for package in packages:
        _load(package.__name__)


def _load(name: str) -> ModuleType:
    with _loading:
        if isinstance(sys.modules.get(name), _Postponed):
            del sys.modules[name]
        return import_module(name)
