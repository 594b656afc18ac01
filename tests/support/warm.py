"""HelmDash itself, loaded before it is known with which settings it will run.

None of its modules reads an environment or a setting while it is loaded, but for the settings
themselves. So a process may load all of it with any settings and forget these: a fork then reads
its own, as a fresh process does, and has saved two thirds of what its start takes.
"""

from __future__ import annotations

import os
import pkgutil
import random
import sys
import threading
from importlib import import_module
from typing import Any

_SETTINGS = "helmdash.settings"
# Made of settings when they are loaded, or programs.
_NOT_BEFORE = ("helmdash.asgi", "helmdash.settings", "helmdash.settings_test")


def load_helmdash() -> None:
    """Load every module that a server or a command may ask for; as yet without settings.

    Raises AssertionError where a module has begun to work as it was loaded.
    """
    given = dict(os.environ)
    # Anybody's: nothing is made with them.
    os.environ.update(DJANGO_SETTINGS_MODULE=_SETTINGS, HELMDASH_SECRET_KEY="of no server")
    import django

    django.setup()
    package = import_module("helmdash")
    for module in pkgutil.walk_packages(package.__path__, "helmdash."):
        if module.name not in _NOT_BEFORE and not module.name.endswith("__main__"):
            import_module(module.name)
    assert threading.active_count() == 1, "a thread does not live on in a fork"
    forget_settings()
    os.environ.clear()
    os.environ.update(given)


def forget_settings() -> None:
    """Be as before the settings were read, and anything was made of them."""
    from django.conf import settings
    from django.contrib.staticfiles.storage import staticfiles_storage
    from django.core.cache import caches
    from django.core.files.storage import default_storage, storages
    from django.db import connections, router
    from django.utils.functional import empty

    from helmdash import conf

    for connection in connections.all(initialized_only=True):
        assert connection.connection is None, "a connection is one process's"
        del connections[connection.alias]
    sys.modules.pop(_SETTINGS, None)
    vars(sys.modules["helmdash"]).pop("settings", None)
    conf.env.cache_clear()
    lazy_ones: tuple[Any, ...] = (settings, staticfiles_storage, default_storage)
    for lazy in lazy_ones:
        lazy._wrapped = empty
    # What each has worked out, and what it worked that out of: None is Django's settings.
    for handler, found, given in (
        (connections, "settings", "_settings"),
        (caches, "settings", "_settings"),
        (storages, "backends", "_backends"),
        (router, "routers", "_routers"),
    ):
        vars(handler).pop(found, None)
        vars(handler)[given] = None


def be_another_process() -> None:
    """In a fork: chance takes another course in each."""
    for name, module in list(sys.modules.items()):
        if name.startswith("helmdash."):
            for value in vars(module).values():
                # Not isinstance, which would ask the lazy ones what they are.
                if type(value) is random.Random:
                    value.seed()
