"""The chat as people use it, in a real browser, on the real model."""
import re
import time

import pytest

from browser import STORY, document, last_answer, open_page, receipt_on_screen, say
from server import Server
import models

pytestmark = [pytest.mark.slow, pytest.mark.real_model]

# Notes [percent, sentence] of the progress bar at each change of the page.
WATCH_PROGRESS = """() => {
    window.seen = [];
    new MutationObserver(() => {
        const bar = document.querySelector("[role=progressbar]");
        if (bar) seen.push([Number(bar.getAttribute("aria-valuenow")), bar.getAttribute("aria-valuetext")]);
    }).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
}"""


def test_a_long_prompt_shows_progress_then_words_then_a_receipt_that_equals_the_servers(browser, house):
    tab = open_page(browser, house.url)
    tab.evaluate(WATCH_PROGRESS)
    say(tab, document(700, "progress") + "\n\nWhat rang?", max_tokens=24)
    answer = last_answer(tab)
    answer.locator(".prose").wait_for(timeout=120_000)
    seen = tab.evaluate("seen")
    shares = [share for share, _ in seen]
    assert shares == sorted(shares) and len({share for share in shares if 0 < share < 100}) >= 2, seen
    assert any(re.fullmatch(r"Reading: [\d,]+ of [\d,]+ tokens about \d+\ss to the first word", sentence) for _, sentence in seen), seen
    answer.locator(".time").wait_for(timeout=60_000)
    assert answer.locator(".prose").inner_text().strip()
    on_screen = receipt_on_screen(tab, answer)
    request = answer.locator("table[data-receipt]").get_attribute("data-receipt")
    status, told = house.get(f"/cadans/v1/requests/{request}")
    assert status == 200
    assert on_screen == {**{cause: ns for cause, ns in told["receipt_ns"].items() if ns}, "total": told["total_ns"]}
    assert sum(ns for cause, ns in on_screen.items() if cause != "total") == on_screen["total"]
    assert tab.faults == []


def test_a_model_that_is_not_there_yet_shows_how_far_its_load_is_and_the_next_question_has_none(browser, tmp_path):
    (tmp_path / "later.gguf").symlink_to(models.real("smollm2"))
    # What its steps cost is measured during the load where nobody has done so before: the load takes seconds.
    with Server([], "--models-dir", tmp_path, "--context", "512", env={"XDG_STATE_HOME": str(tmp_path / "state")}) as server:
        tab = open_page(browser, server.url)
        tab.evaluate(WATCH_PROGRESS)
        say(tab, "What is a cadence?", max_tokens=6)
        last_answer(tab).locator(".time").wait_for(timeout=120_000)
        shares = [share for share, sentence in tab.evaluate("seen") if sentence.startswith("The model is being loaded")]
        assert shares == sorted(shares) and len({share for share in shares if 0 < share <= 100}) >= 2, shares
        first = receipt_on_screen(tab, last_answer(tab))
        say(tab, "And what is a pause?", max_tokens=6)
        tab.locator("article.answer").nth(1).locator(".time").wait_for(timeout=60_000)
        assert first["load"] > 0 and "load" not in receipt_on_screen(tab, last_answer(tab))
        assert tab.faults == []


def test_stop_ends_the_request_on_the_server_and_shows_what_it_took(browser, house):
    tab = open_page(browser, house.url)
    before = house.metrics()['cadans_requests_total{outcome="cancelled"}']
    say(tab, STORY)
    tab.wait_for_function("() => document.querySelector('.answer .prose')?.innerText.length > 80", timeout=60_000)
    tab.keyboard.press("Escape")
    deadline = time.monotonic() + 10
    while house.metrics()['cadans_requests_total{outcome="cancelled"}'] != before + 1 or house.metrics()["cadans_sequences_running"] != 0:
        assert time.monotonic() < deadline, "the server did not cancel it"
        time.sleep(0.1)
    answer = last_answer(tab)
    answer.get_by_text("Stopped by you.").wait_for()
    answer.locator(".time").wait_for(timeout=10_000)
    length = len(answer.locator(".prose").inner_text())
    time.sleep(1)
    assert len(answer.locator(".prose").inner_text()) == length
    assert receipt_on_screen(tab, answer)["own_decode"] > 0
    say(tab, "Say hello.", max_tokens=4)
    last_answer(tab).locator(".time").wait_for(timeout=60_000)
    assert tab.locator("article.answer").count() == 2
    assert tab.faults == []


def test_what_a_model_writes_never_becomes_part_of_the_page(browser, house):
    """The same elements that would run or load something, in an answer."""
    tab = open_page(browser, house.url)
    bad = '<img src=x onerror=\\"window.ran=1\\"> <script>window.ran=1</script> [link](javascript:window.ran=1) **bold** <b>b</b>'
    frames = ('data: {"id":"chatcmpl-x","choices":[{"index":0,"delta":{"content":"' + bad + '"},"finish_reason":null}]}\n\n'
              'data: {"id":"chatcmpl-x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    tab.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=frames))
    say(tab, "hello")
    prose = last_answer(tab).locator(".prose")
    prose.wait_for()
    assert prose.locator("strong").inner_text() == "bold"
    assert [prose.locator(name).count() for name in ("img", "script", "a", "b")] == [0, 0, 0, 0]
    assert "<img" in prose.inner_text()
    assert tab.evaluate("window.ran") is None


def test_asks_for_the_key_where_one_is_needed(browser):
    with Server(models.real("smollm2"), "--context", "512", "--api-key", "sesame", headers={"x-api-key": "sesame"}) as server:
        tab = open_page(browser, server.url)
        for key in ("wrong", "sesame"):
            tab.get_by_label("Key", exact=True).fill(key)
            tab.get_by_role("button", name="Use this key").click()
            if key == "wrong":
                tab.get_by_text("not accepted").wait_for()
        tab.locator("#words").wait_for()
        say(tab, "Say hello.", max_tokens=4)
        last_answer(tab).locator(".time").wait_for(timeout=60_000)
        receipt_on_screen(tab, last_answer(tab))
