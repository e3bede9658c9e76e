"""What watches the server: promtool on the metrics page, rules and dashboard on the names that there are, spans at a collector."""
import http.server
import json
import pathlib
import re
import subprocess
import threading
import time

import pytest

import models
from server import ROOT, Server

PROMTOOL = ROOT / ".cache" / "tools" / "promtool"
DEPLOY = ROOT / "deploy"
BODY = {"prompt": "The river keeps its own time", "max_tokens": 6, "ignore_eos": True}

needs_promtool = pytest.mark.skipif(not PROMTOOL.exists(), reason="promtool is fetched by tools/setup test")


@pytest.fixture(scope="module")
def page():
    with Server(models.tiny("llama", "f32")) as server:
        server.ok("/v1/completions", BODY)
        list(server.frames("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "stream": True}))
        yield server.request("GET", "/metrics")[2].decode()


@needs_promtool
def test_promtool_finds_no_fault_in_the_page(page):
    said = subprocess.run([PROMTOOL, "check", "metrics", "--extended"], input=page, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert not re.findall(r"^cadans_\S+ .+", said.stderr, re.M), said.stderr


@needs_promtool
@pytest.mark.parametrize("command", [["check", "rules", "prometheus-alerts.yml"], ["test", "rules", "prometheus-alerts-test.yml"]])
def test_promtool_accepts_the_alert_rules(command):
    said = subprocess.run([PROMTOOL, *command], cwd=DEPLOY, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def families(page):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M))


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "prometheus-alerts.yml"])
def test_every_name_that_is_watched_is_on_the_page(page, file):
    there = families(page)
    known = set(there) | {name + end for name, kind in there.items() if kind == "histogram" for end in ("_bucket", "_sum", "_count")}
    used = set(re.findall(r"\bcadans_[a-z_]+\b", (DEPLOY / file).read_text()))
    assert used and not used - known, used - known


def test_every_label_that_is_chosen_by_is_on_the_page(page):
    for file in ("grafana-dashboard.json", "prometheus-alerts.yml"):
        text = (DEPLOY / file).read_text().replace('\\"', '"')
        for label, value in re.findall(r'\b(start|outcome|source|direction|result)="(\w+)"', text):
            assert f'{label}="{value}"' in page, (file, label, value)


def test_the_dashboard_is_whole():
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"]) and all(p["targets"] for p in board["panels"])


def test_scraping_twice_changes_nothing():
    with Server(models.tiny("llama", "f32")) as server:
        server.ok("/v1/completions", BODY)
        pages = [server.request("GET", "/metrics")[2] for _ in range(3)]
        assert pages[0] == pages[1] == pages[2]


class Collector(http.server.ThreadingHTTPServer):
    """Takes OTLP as JSON; may be slow or refuse."""
    def __init__(self):
        self.spans, self.calls, self.pause, self.status = [], 0, 0.0, 200
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                time.sleep(collector.pause)
                collector.calls += 1
                for resource in body["resourceSpans"]:
                    assert {"key": "service.name", "value": {"stringValue": "cadans"}} in resource["resource"]["attributes"]
                    for scope in resource["scopeSpans"]:
                        collector.spans += scope["spans"]
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


def until(true_within, seconds=10):
    deadline = time.monotonic() + seconds
    while not true_within():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def test_a_request_is_a_trace_with_a_span_for_each_phase():
    collector = Collector()
    with Server(models.tiny("llama", "f32"), "--otlp-endpoint", collector.url) as server:
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        secret = "An orchard of quinces"
        status, headers, body = server.request("POST", "/v1/completions", json.dumps({**BODY, "prompt": secret}).encode(),
                                               {"Content-Type": "application/json", "traceparent": f"00-{trace}-{parent}-01", "tracestate": "a=b"})
        record = json.loads(body)["cadans"]
        assert record["trace_id"] == trace
        until(lambda: any("parentSpanId" in s and s["parentSpanId"] == parent for s in collector.spans))
        root, = [s for s in collector.spans if s.get("parentSpanId") == parent]
        phases = [s for s in collector.spans if s.get("parentSpanId") == root["spanId"]]
        assert root["name"].startswith("text_completion ") and root["kind"] == 2 and root["traceState"] == "a=b"
        told = attributes(root)
        assert told["gen_ai.usage.input_tokens"] == str(record["prompt_tokens"]) and told["gen_ai.usage.output_tokens"] == "6"
        assert {k[len("cadans.receipt_ns."):]: int(v) for k, v in told.items() if k.startswith("cadans.receipt_ns.")} == \
            {cause: ns for cause, ns in record["receipt_ns"].items() if ns}
        assert int(root["endTimeUnixNano"]) - int(root["startTimeUnixNano"]) == record["total_ns"]
        assert abs(int(root["endTimeUnixNano"]) / 1e9 - time.time()) < 60
        assert {"parse", "queue", "prefill", "decode"} <= {s["name"] for s in phases}
        for span in phases:
            assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
        prefill, = [s for s in phases if s["name"] == "prefill"]
        assert int(prefill["endTimeUnixNano"]) - int(prefill["startTimeUnixNano"]) == record["prompt_ns"]
        assert {s["traceId"] for s in collector.spans} == {trace} and len({s["spanId"] for s in collector.spans}) == len(collector.spans)
        assert "quince" not in json.dumps(collector.spans)

        count = len(collector.spans)
        server.request("POST", "/v1/completions", json.dumps(BODY).encode(),
                       {"Content-Type": "application/json", "traceparent": f"00-{trace}-{parent}-00"})
        own = server.ok("/v1/completions", BODY)["cadans"]["trace_id"]
        until(lambda: any(s["traceId"] == own for s in collector.spans))
        assert own != trace and {s["traceId"] for s in collector.spans[count:]} == {own}     # the one not sampled is not sent
        until(lambda: server.metrics()['cadans_spans_total{result="sent"}'] == len(collector.spans))
    collector.shutdown()


def test_a_slow_or_refusing_collector_delays_no_answer():
    collector = Collector()
    collector.pause = 1.0
    with Server(models.tiny("llama", "f32"), "--otlp-endpoint", collector.url) as server:
        began = time.monotonic()
        for _ in range(20):
            server.ok("/v1/completions", BODY)
        assert time.monotonic() - began < 10     # 20 calls to the collector one after another would take 20 s
        until(lambda: len({s["traceId"] for s in collector.spans}) == 20)
        assert collector.calls < 20
        collector.pause, collector.status = 0, 503
        server.ok("/v1/completions", BODY)
        until(lambda: server.metrics()['cadans_spans_total{result="lost"}'] > 0)
        assert "spans are lost" in server.said()
    collector.shutdown()


def test_a_collector_that_cannot_be_reached_is_said_at_the_start():
    from server import run
    said = run("serve", "--model", models.tiny("llama", "f32"), "--otlp-endpoint", "https://collector.test", "--port", 0)
    assert said.returncode == 1 and "only http" in said.stderr


def test_counters_reconcile_with_the_clients_own(tmp_path):
    """At idle, under cache hits, cancellations and preemption: what clients counted is what the page says."""
    with Server(models.tiny("llama", "f32"), "--context", "1024", "--kv-memory", "1M", "--max-running", "4", env={"XDG_STATE_HOME": str(tmp_path)}) as server:
        before = server.metrics()
        records, lock = [], threading.Lock()

        def ask(number):
            body = {"prompt": [7] * 300 + [number % 5 + 3] * 40, "max_tokens": 60, "ignore_eos": True, "temperature": 0, "stream": True}
            if number % 4 == 3:   # hang up in the middle
                frames = server.frames("/v1/completions", {**body, "max_tokens": 400})
                for _ in range(3):
                    frame = next(frames)
                frames.close()
                record = gone(frame["id"])
            else:
                record = [f for f in server.frames("/v1/completions", body) if f != "[DONE]"][-1]["cadans"]
            with lock:
                records.append(record)

        def gone(name):
            for _ in range(500):
                status, record = server.get(f"/cadans/v1/requests/{name}")
                if status == 200:
                    return record
                time.sleep(0.02)
            raise AssertionError(f"{name} was never recorded")

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: server.metrics()["cadans_sequences_running"] == 0)
        after = server.metrics()
        grown = {name: after[name] - before[name] for name in after}
        assert len(records) == 24
        for name, field in (('cadans_prompt_tokens_total{source="computed"}', "computed_tokens"), ('cadans_prompt_tokens_total{source="cached"}', "cached_tokens"),
                            ("cadans_output_tokens_total", "output_tokens"), ("cadans_preemptions_total", "preemptions"),
                            ("cadans_recomputed_tokens_total", "recomputed_tokens"), ("cadans_stalls_total", "stalls")):
            assert grown[name] == sum(r[field] for r in records), name
        for outcome in ("length", "cancelled"):
            assert grown[f'cadans_requests_total{{outcome="{outcome}"}}'] == sum(r["outcome"] == outcome for r in records)
        assert sum(r["outcome"] == "cancelled" for r in records) == 6 and grown['cadans_prompt_tokens_total{source="cached"}'] > 0
        for record in records:
            assert sum(record["receipt_ns"].values()) == record["total_ns"]
        causes = {name: value for name, value in grown.items() if name.startswith("cadans_request_cause_seconds_total")}
        assert sum(causes.values()) == pytest.approx(sum(r["total_ns"] for r in records) / 1e9, abs=1e-6)
        history = server.get("/cadans/v1/history?buckets=1&limit=0")[1]["buckets"][0]
        assert history["count"] == 24 and history["output_tokens"] == sum(r["output_tokens"] for r in records)


def test_a_collector_that_hangs_does_not_hold_up_the_end():
    collector = Collector()
    collector.pause = 60
    with Server(models.tiny("llama", "f32"), "--otlp-endpoint", collector.url) as server:
        for _ in range(20):
            server.ok("/v1/completions", BODY)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 6     # one call alone is waited for 10 s
