"""Servers that several test files share; each is started once, when first asked for."""
import pytest

import instruction_sets
import models
from server import Server


@pytest.fixture(scope="session")
def steady():
    """A model that repeats the prompt's last token, so that its text is known: for tests of text and streams."""
    with Server(models.tiny("llama", "f32", mix="0.1"), "--context", "1024") as server:
        yield server


@pytest.fixture(scope="session")
def smollm2():
    """The default model, which chats."""
    with Server(models.real("smollm2")) as server:
        yield server


def pytest_terminal_summary(terminalreporter):
    native = [name for name in instruction_sets.ALL if instruction_sets.native(name)]
    others = [name for name in instruction_sets.ALL if name not in native]
    terminalreporter.write_line("instruction sets that ran natively: " + ", ".join(native) +
                                (f"; only emulated, in the unit tests of kernels and engine: {', '.join(others)}" if others else ""))
