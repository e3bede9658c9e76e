"""A tenth of prove/damaged_files.py, against the release build."""
from prove import damaged_files as proof
from server import ROOT


def test_a_thousand_damaged_model_files_are_refused_in_words_or_read():
    status, said, trouble = proof.run(ROOT / "build/release/tests/fuzz/gguf_mutations", 1000, 50_000)
    assert status == 0, trouble
    assert said.startswith("1000 damaged GGUF files")
