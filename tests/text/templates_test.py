"""Chat templates of real models and every habit of the language: our text is Jinja's, byte for byte."""
import subprocess
import sys

import pytest

import models
from server import ROOT

HERE = ROOT / "tests" / "text"


@pytest.mark.slow
def test_templates_render_as_jinja_renders_them():
    if models.npm_vocabulary("llama3_2") is None:
        pytest.skip("the templates are not installed (tools/setup test)")
    packages = ROOT / "tests/tokenizers/node_modules"
    node = ROOT / ".venv/bin/node"
    third = ["--node", str(node)] if node.exists() and (packages / "@huggingface/jinja").is_dir() else []
    result = subprocess.run([sys.executable, str(HERE / "template_differential.py"), "--tool",
                             str(ROOT / "build/release/tests/text/render_template"), "--packages", str(packages), *third],
                            capture_output=True, text=True, errors="replace", timeout=500)
    print(result.stdout)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
