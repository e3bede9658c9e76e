"""Now: what a reader sees of others' requests while they run, on the real model."""
import contextlib
import re
import threading
import time

import pytest

import models
from browser import STORY, document, open_page, say
from server import Server
from shown import colours_in, is_number, is_span, numbers

pytestmark = [pytest.mark.slow, pytest.mark.real_model]

# Notes of each lane [phase, words, who else] at each change of the page.
WATCH_LANES = """() => {
    window.seen = {};
    new MutationObserver(() => {
        for (const lane of document.querySelectorAll("li[data-lane]"))
            (seen[lane.dataset.lane] ??= []).push([lane.classList.contains("ended") ? "ended" : lane.dataset.phase, lane.querySelector(".doing").textContent]);
    }).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
}"""


class Client:
    """Another person's program that streams an answer; what it was told is in `frames` once it is done."""

    def __init__(self, server, prompt, max_tokens, user):
        body = {"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0, "stream": True, "user": user}
        self.frames = []
        self.thread = threading.Thread(target=lambda: self.frames.extend(server.frames("/v1/completions", body, timeout=300)))
        self.thread.start()

    def done(self):
        """The record of its request."""
        self.thread.join(300)
        return self.frames[-2]["cadans"]


@contextlib.contextmanager
def watching(browser, server, **more):
    tab = open_page(browser, server.url, "now", **more)
    tab.locator("#lanes").wait_for()
    yield tab
    assert tab.faults == []
    tab.context.close()


def eventually(holds, within=20):
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def lane_of(tab, name):
    return tab.locator("li[data-lane]", has=tab.get_by_role("heading", name=name, exact=True))


def test_a_request_appears_with_its_phase_while_another_client_streams_and_goes_when_it_has_ended(browser, house):
    with watching(browser, house) as tab:
        tab.get_by_text("All is quiet").wait_for(timeout=20_000)
        tab.evaluate(WATCH_LANES)
        client = Client(house, document(1200, "appears"), 300, "anna")
        lane = lane_of(tab, "anna")
        lane.wait_for(timeout=20_000)
        request = lane.get_attribute("data-lane")
        tab.locator(f'li[data-lane="{request}"][data-phase="decode"]').wait_for(timeout=60_000)
        tab.get_by_text("1 running, 0 waiting").wait_for()
        assert colours_in(lane.locator("canvas"), "--read")[0] > 50
        record = client.done()
        tab.locator(f'li.ended[data-lane="{request}"]').wait_for()
        assert lane.locator(".doing").inner_text() == "cut off at the limit"
        assert request == record["id"]
        assert is_span(lane.locator("p span", has_text="first word after").inner_text(), record["ttft_ns"])
        read, written = colours_in(lane.locator("canvas"), "--read", "--write")
        assert read > 50 and written > 50
        tab.get_by_text("Nobody is being served").wait_for()
        tab.get_by_text("All is quiet").wait_for(timeout=20_000)
        assert lane.count() == 0

        seen = tab.evaluate("seen")[request]
        phases = list(dict.fromkeys(phase for phase, _ in seen))
        assert phases[-1] == "ended" and phases.index("prefill") < phases.index("decode"), phases
        reads = [numbers(words)[:2] for phase, words in seen if phase == "prefill"]
        assert {total for _, total in reads} == {record["prompt_tokens"]}
        assert reads == sorted(reads) and len({computed for computed, _ in reads}) >= 3, reads
        writes = [numbers(words)[0] for phase, words in seen if phase == "decode" and "so far" in words]
        assert writes == sorted(writes) and len(set(writes)) >= 3 and writes[-1] <= 300, writes


def test_the_machines_figures_are_those_of_its_last_minute(browser, house):
    with watching(browser, house) as tab:
        Client(house, document(600, "minute"), 60, "minute").done()
        minute = tab.get_by_role("region", name="The last minute, everybody together")
        shown = lambda name, part: minute.locator(f".{name} .{part}").inner_text()

        def agree():
            seconds = house.get("/cadans/v1/now")[1]["seconds"]
            read, wrote = (sum(second[name] for second in seconds) for name in ("prefill_tokens", "output_tokens"))
            writing, longest = sum(second["output_tokens"] > 0 for second in seconds), max((second["gaps"]["max"] for second in seconds if second["gaps"]), default=0)
            reading_ns = sum(second["prefill"]["ns"] for second in seconds)
            return (wrote >= 60 and numbers(shown("reading", "note"))[0] == read and is_number(shown("reading", "value"), read * 1e9 / reading_ns)
                    and numbers(shown("writing", "note"))[0] == wrote and is_number(shown("writing", "value"), wrote / writing)
                    and is_span(shown("between", "note"), longest))
        eventually(agree)


def test_the_roofline_and_the_utilisation_show_reading_and_writing(browser, house):
    with watching(browser, house) as tab:
        Client(house, document(900, "roof"), 80, "roof").done()
        roof = tab.locator("section", has=tab.get_by_role("heading", name="What limits the work"))
        for kind in ("prefill", "decode"):
            roof.locator(f"circle.{kind}:not(.trail)").wait_for(state="attached", timeout=10_000)
        sentence = roof.locator("p").last.inner_text()
        shares = numbers(sentence)
        assert re.match(r"Reading uses \d+\s?% .* Writing uses \d+\s?% ", sentence) and all(0 < share <= 130 for share in shares), sentence
        # Reading does more with each byte than writing does: it is further to the right.
        across = [float(roof.locator(f"circle.{kind}:not(.trail)").get_attribute("cx")) for kind in ("prefill", "decode")]
        assert across[0] > across[1]
        work, felt = (tab.locator(".card", has=tab.get_by_role("heading", name=name)) for name in ("How hard the machine works", "What people feel"))
        assert colours_in(work.locator("canvas"), "--read", "--write")[1] > 20
        assert colours_in(felt.locator("canvas"), "--accent", "--held")[0] > 5
        assert re.fullmatch(r"Busy \d+%, arithmetic \d+%, memory bandwidth \d+%", work.get_by_role("img").get_attribute("aria-label"))


def test_a_chart_is_drawn_on_and_not_made_anew_every_second(browser, house):
    with watching(browser, house) as tab:
        chart = tab.locator(".uplot canvas").first
        chart.wait_for()
        chart.evaluate("canvas => { canvas.dataset.mark = 'kept'; }")
        tab.wait_for_timeout(3200)
        assert tab.locator(".uplot canvas[data-mark=kept]").count() == 1


def test_a_stream_beside_a_long_document_is_shown_with_who_reads_and_whether_its_words_keep_coming(browser, house):
    """A chat in one browser, a watcher in a second, and a program that sends a document."""
    chat = open_page(browser, house.url)
    with watching(browser, house) as tab:
        say(chat, STORY, max_tokens=400)
        chat.wait_for_function("() => document.querySelector('.answer .prose')?.innerText.length > 40", timeout=60_000)
        client = Client(house, document(2400, "beside"), 4, "anna")
        sheltered = tab.locator("li[data-protected]")
        sheltered.wait_for(timeout=60_000)
        kept, words = sheltered.evaluate("lane => [lane.dataset.protected, lane.querySelector('.shelter').textContent]")
        assert re.match(r"Protected: longest pause .*, the aim is " if kept == "true" else r"Held up: longest pause .*, the aim is ", words), words
        tab.wait_for_function("""() => [...document.querySelectorAll("li[data-phase=decode] .held")].some(held => held.textContent.startsWith("Shares the machine with anna (reading, "))""", timeout=60_000)
        eventually(lambda: colours_in(sheltered.locator("canvas"), "--held")[0] > 20)
        client.done()
        chat.keyboard.press("Escape")
        chat.locator(".answer .time").wait_for(timeout=20_000)
    assert chat.faults == []
    chat.context.close()


def test_who_waits_sees_for_whom_and_how_many_are_before_it(browser):
    with Server(models.real("smollm2"), "--context", "2048", "--max-running", "1") as server, watching(browser, server) as tab:
        tab.evaluate(WATCH_LANES)
        clients = [Client(server, document(300, "anna"), 150, "anna")]
        lane_of(tab, "anna").wait_for(timeout=20_000)
        clients += [Client(server, document(40, "bert"), 20, "bert")]
        lane_of(tab, "bert").wait_for(timeout=20_000)
        clients += [Client(server, document(40, "clara"), 20, "clara")]
        clara = lane_of(tab, "clara")
        clara.wait_for(timeout=20_000)
        assert clara.get_attribute("data-phase") == "queue"
        tab.get_by_text("1 running, 2 waiting").wait_for()
        held = clara.locator(".held")
        held.wait_for()
        assert re.match(r"Waits for .*anna \((reading|writing), ", held.inner_text())
        assert colours_in(clara.locator("canvas"), "--queue")[0] > 20
        ids = [lane_of(tab, name).get_attribute("data-lane") for name in ("bert", "clara")]
        records = [client.done() for client in clients]
        assert [record["id"] for record in records[1:]] == ids
        seen = tab.evaluate("seen")
        assert "next in the queue" in {words.split(" · ")[0].strip("\u00a0 ") for _, words in seen[ids[0]]}
        assert any(words.startswith("1 before it in the queue") for _, words in seen[ids[1]]), seen[ids[1]][:5]


def test_says_so_when_the_server_is_gone(browser):
    with Server(models.tiny("llama", "f32")) as server, watching(browser, server) as tab:
        server.stop()
        tab.get_by_role("alert").wait_for(timeout=10_000)
        assert "The live view was interrupted" in tab.get_by_role("alert").inner_text()
