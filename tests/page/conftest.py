"""One browser and one server for all tests of the page."""
import pytest

import models
from browser import chromium
from server import Server


@pytest.fixture(scope="session")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def house():
    """The default model with room for a long document beside a running answer."""
    with Server(models.real("smollm2"), "--context", "4096") as server:
        yield server
