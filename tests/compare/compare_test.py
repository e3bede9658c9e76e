"""The comparison with peers: turns, what is left out, how a bench is asked, and that every run is kept."""
import json
import sys

import pytest

from compare import benches, pairs
from compare.__main__ import Comparison, arguments, peers_of
from compare.report import Report
from compare.rows import ROWS, small

# A program with llama-bench's options: 40 tokens/s, and it prints a line before its JSON, as real ones do.
BENCH = """#!{python}
import json, sys
words = sys.argv[1:]
if "--help" in words:
    sys.exit(print({help!r}) or 1)
value = lambda name: words[words.index(name) + 1] if name in words else "0"
behind = value("-gp").split(",")[1] if "-gp" in words else value("-n")
print("loading")
print(json.dumps([{{"n_prompt": int(value("-p")), "n_gen": int(behind), "avg_ts": 40.0, "build_number": 7, "build_commit": "abc", "words": words}}]))
"""


def fake_bench(folder, help_text):
    path = folder / "bench"
    path.write_text(BENCH.format(python=sys.executable, help=help_text))
    path.chmod(0o755)
    return path


class Ours:
    """50 tokens/s, on a machine whose limits are as told."""

    def __init__(self, limits):
        self.limits, self.asked = iter(limits), []

    def version(self):
        return "ours"

    def offers(self, row):
        return True

    def measure(self, row, model, threads):
        self.asked.append(row.name)
        return benches.Run(50.0, "ours bench", {})

    def probe(self, model, threads):
        limit = next(self.limits)
        return {"dot": limit, "read": limit}


def compared(folder, row, limits, count):
    model = folder / "model.gguf"
    model.write_bytes(b"")
    given = arguments(["--model", str(model), "--bench", f"fake: {fake_bench(folder, '-d, --n-depth <n>')} -fa 1", "--pairs", str(count),
                       "--threads", "2", "--out", str(folder / "peers")])
    comparison = Comparison(given, Report(given.out, given.threads, "command"))
    comparison.bench = Ours(limits)
    for label, sides in peers_of(given).items():
        comparison.row(model, row, label, sides)
    return given.out


def test_the_median_and_the_quartiles_are_of_ratios_above_one_where_ours_is_better():
    rates = [pairs.Pair(ours, 10, 1, 1) for ours in (10, 20, 30, 40, 50)]
    verdict = pairs.judge(rates, more_is_better=True)
    assert (verdict.ratio, verdict.low, verdict.high, verdict.counted) == (3, 2, 4, 5)
    times = [pairs.Pair(ours, 10, 1, 1) for ours in (5, 5, 20)]
    assert pairs.judge(times, more_is_better=False).ratio == 2


def test_pairs_between_two_states_of_the_machine_are_left_out_and_counted():
    verdict = pairs.judge([pairs.Pair(10, 10, 33, 34), pairs.Pair(90, 10, 33, 60), pairs.Pair(10, 10, 60, 58)], more_is_better=True)
    assert (verdict.ratio, verdict.counted, verdict.left_out) == (1, 2, 1)
    assert pairs.judge([pairs.Pair(90, 10, 33, 60)], more_is_better=True) is None


def test_each_row_asks_for_the_limit_that_it_depends_on():
    assert [ROWS[name].probe for name in ("prefill-8k", "decode", "streams", "start", "memory")] == ["dot", "read", "read", "read", None]


def test_both_sides_begin_equally_often():
    assert [pairs.first_is_ours(n) for n in range(4)] == [True, False, True, False]


@pytest.mark.parametrize("help_text, row, words", [
    ("-d, --n-depth <n>", "prefill-8k", ["-p", "512", "-n", "0", "-d", "8192"]),
    ("-d, --n-depth <n>", "decode", ["-p", "0", "-n", "64"]),
    ("-gp <pp,tg>", "decode-4k", ["-p", "0", "-n", "0", "-gp", "4096,64"])])
def test_a_bench_is_asked_in_its_own_words(tmp_path, help_text, row, words):
    bench = benches.LlamaBench(f"{fake_bench(tmp_path, help_text)} -fa 1")
    assert bench.offers(ROWS[row])
    run = bench.measure(ROWS[row], "model.gguf", 2)
    asked = run.raw["words"]
    assert run.value == 40 and asked[4:4 + len(words)] == words and asked[-2:] == ["-fa", "1"] and bench.version() == "build 7 (abc)"


def test_a_bench_without_depth_offers_no_prompt_behind_another(tmp_path):
    bench = benches.LlamaBench(str(fake_bench(tmp_path, "-gp <pp,tg>")))
    assert not bench.offers(ROWS["prefill-8k"]) and not bench.offers(ROWS["streams"]) and not bench.offers(ROWS["start"])


def test_a_table_shows_ratio_spread_and_commands_and_every_run_is_kept(tmp_path):
    out = compared(tmp_path, ROWS["decode"], [30e9, 30e9, 60e9, 60e9], 3)
    text = out.with_suffix(".md").read_text()
    assert "| decode, one stream | fake | 1.25 | 1.25 to 1.25 | 50.0 tokens/s | 40.0 tokens/s | 2 (1) |" in text
    assert "bench -m" in text and "-fa 1`" in text and "30 to 60" in text
    kept = json.loads(out.with_suffix(".json").read_text())
    assert [(r["pair"], r["side"]) for r in kept["runs"]] == [(0, "ours"), (0, "fake"), (1, "fake"), (1, "ours"), (2, "ours"), (2, "fake")]
    assert kept["machine"] and kept["versions"]["fake"] == "build 7 (abc)"


def test_what_was_measured_is_kept_on_the_same_kind_of_machine(tmp_path):
    out = compared(tmp_path, ROWS["decode"], [30e9, 30e9, 30e9], 2)
    again = Report(out, 2, "another command", resume=True)
    assert again.has("model", "decode", "fake", 2) and not again.has("model", "decode", "fake", 3) and not again.has("model", "prefill", "fake", 2)
    assert "| decode, one stream | fake | 1.25 |" in again.text() and "`another command`" in again.text() and "`command`" in again.text()
    again.line("model", ROWS["decode"], "fake", None, "why", [], 2)
    assert [line["why"] for line in again.lines] == ["why"] and len(again.runs) == 4, "a line measured again takes the place of the old one"
    assert not again.has("model", "decode", "fake", 2), "what came to nothing is tried again"
    with pytest.raises(ValueError, match="threads 2, this is 3"):
        Report(out, 3, "command", resume=True)
    assert Report(out, 3, "command").lines == []


def test_a_row_that_nobody_offers_says_so(tmp_path):
    text = compared(tmp_path, ROWS["streams"], [1], 1).with_suffix(".md").read_text()
    assert "| decode, 8 streams together | fake | its programs do not offer it |" in text


def test_a_reduced_row_is_less_of_the_same():
    row = small(ROWS["prefill-8k"])
    assert row.kind == "prefill" and 0 < row.tokens < 512 and 0 < row.depth < 8192


def test_what_cannot_be_compared_is_refused(tmp_path, capsys):
    model = tmp_path / "model.gguf"
    model.write_bytes(b"")
    with pytest.raises(benches.Failed, match="no peer is named"):
        peers_of(arguments(["--model", str(model)]))
    with pytest.raises(benches.Failed, match="LABEL: COMMAND"):
        peers_of(arguments(["--model", str(model), "--bench", "/usr/bin/true"]))
    for words, said in ((["--rows", "prefil"], "no such rows: prefil"), (["--model", str(tmp_path / "none")], "no such file")):
        with pytest.raises(SystemExit):
            arguments(["--model", str(model), *words])
        assert said in capsys.readouterr().err
