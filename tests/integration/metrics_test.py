"""The metrics page as Prometheus reads it."""
import re

SAMPLE = re.compile(r'^([a-zA-Z_][a-zA-Z0-9_]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (-?[0-9.eE+-]+|[+-]Inf|NaN)$')


def page(server):
    status, headers, body = server.request("GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return body.decode()


def test_every_line_is_well_formed(steady):
    text = page(steady)
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE.match(line), line


def test_each_family_has_one_help_and_one_type(steady):
    text = page(steady)
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    helps = re.findall(r"^# HELP (\S+) ", text, re.M)
    assert len({name for name, _ in types}) == len(types) and sorted(helps) == sorted(name for name, _ in types)
    for name, kind in types:
        assert ":" not in name and (kind != "counter" or name.endswith("_total"))
    known = {name for name, _ in types}
    for line in text.splitlines():
        if line[0] != "#":
            name = SAMPLE.match(line).group(1)
            assert name in known or re.sub(r"_(bucket|sum|count)$", "", name) in known


def test_the_settled_names_are_there(steady):
    steady.ok("/v1/completions", {"prompt": "The river", "max_tokens": 2})
    metrics = steady.metrics()
    for name in ('cadans_prompt_tokens_total{source="computed"}', 'cadans_prompt_tokens_total{source="cached"}', "cadans_output_tokens_total",
                 "cadans_engine_restarts_total"):
        assert name in metrics, name
    assert any(k.startswith("cadans_requests_total{outcome=") for k in metrics)
    assert "cadans_prompt_tokens_total" not in metrics and "cadans_requests_total" not in metrics


def test_histograms_are_cumulative_and_agree_with_their_counts(steady):
    steady.ok("/v1/completions", {"prompt": "The river", "max_tokens": 4})
    series = {}
    for line in page(steady).splitlines():
        found = re.match(r'^(\S+)_bucket\{(.*?),?le="([^"]+)"\} (\S+)$', line)
        if found:
            series.setdefault((found[1], found[2].rstrip(",")), []).append((float(found[3]), float(found[4])))
    assert series
    metrics = steady.metrics()
    for (name, labels), buckets in series.items():
        bounds, counts = zip(*buckets)
        assert list(bounds) == sorted(bounds) and list(counts) == sorted(counts) and bounds[-1] == float("inf")
        assert metrics[f"{name}_count" + (f"{{{labels}}}" if labels else "")] == counts[-1]


def test_a_request_is_counted_before_its_last_frame(steady):
    for _ in range(20):
        before = steady.metrics()["cadans_output_tokens_total"]
        for frame in steady.frames("/v1/completions", {"prompt": "The river", "max_tokens": 3, "stream": True, "ignore_eos": True}):
            if frame == "[DONE]":
                assert steady.metrics()["cadans_output_tokens_total"] == before + 3


def test_a_model_name_with_quotes_is_escaped():
    import models
    from server import Server
    with Server('say "hi"\\now=' + str(models.tiny("llama", "f32"))) as server:
        server.ok("/v1/completions", {"prompt": "a", "max_tokens": 1})
        test_every_line_is_well_formed(server)
