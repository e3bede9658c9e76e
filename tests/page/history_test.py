"""History: what a reader finds of requests that have ended, against what the server says of the same requests."""
import contextlib
import re

import pytest

import models
from browser import document, open_page, receipt_rows
from server import Server
from shown import are_figures_of, four_figures, is_number, is_span, numbers

pytestmark = pytest.mark.slow

SPANS = {"ttft_ns": "Time to the first word", "gap_ns": "Between words", "prompt_ns": "Reading the prompt", "queue_ns": "In the queue", "total_ns": "From asking to the end"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of its own whose whole history is known: twenty requests, some of them by name, one given up."""
    env = {"XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}
    with Server(models.tiny("llama", "f32"), "--context", "1024", env=env) as own:
        ask = lambda **more: own.ok("/v1/completions", {"ignore_eos": True, "temperature": 0, **more})
        for n in range(1, 18):
            ask(prompt=[3 + n] * 10 * n, max_tokens=n)
        own.records = {}
        for name, length in (("anna", 300), ("anna again", 300)):   # the second finds what the first has read
            frames = own.stream("/v1/completions", {"prompt": [4, 5] * (length // 2), "max_tokens": 400, "ignore_eos": True, "stream": True, "user": "anna"})
            own.records[name] = frames[-2]["cadans"]
        frames = own.frames("/v1/completions", {"prompt": [9] * 64, "max_tokens": 900, "ignore_eos": True, "stream": True, "user": "bert"})
        for _ in range(5):
            next(frames)
        frames.close()
        with contextlib.suppress(StopIteration):
            while own.metrics()['cadans_requests_total{outcome="cancelled"}'] != 1:
                pass
        own.newest_first = lambda order="newest": own.get(f"/cadans/v1/history?order={order}&limit=100")[1]
        yield own


@pytest.fixture
def tab(browser, server):
    tab = open_page(browser, server.url, "history")
    tab.get_by_text("20 requests in this time.").wait_for()
    yield tab
    assert tab.faults == []
    tab.context.close()


def rows(tab):
    return tab.locator("li > button.row")


def test_the_row_of_a_finished_request_opens_to_the_figures_the_receipt_and_the_sentences_of_its_record(tab, server):
    tab.get_by_role("button", name="Show the newest").click()
    tab.get_by_role("heading", name="The newest requests").wait_for()
    row = rows(tab).nth(1)
    row.get_by_text("anna", exact=True).wait_for()
    record = server.records["anna again"]
    assert server.newest_first()["records"][1]["id"] == record["id"]
    assert numbers(row.locator(".tokens").inner_text()) == [300, 400]
    assert is_span(row.locator(".time").inner_text(), record["ttft_ns"])
    assert row.get_attribute("aria-expanded") == "false"
    row.focus()
    tab.keyboard.press("Enter")
    account = tab.locator("li .account").first
    account.locator("table[data-receipt]").wait_for()
    assert row.get_attribute("aria-expanded") == "true"
    assert account.locator("table[data-receipt]").get_attribute("data-receipt") == record["id"]
    assert server.get(f"/cadans/v1/requests/{record['id']}")[1] == record
    shown = four_figures(account)
    assert are_figures_of(shown, record) == [], shown
    assert record["cached_tokens"] > 0 and numbers(shown["reading"][1])[-1] == record["cached_tokens"]
    assert receipt_rows(account) == {**{cause: ns for cause, ns in record["receipt_ns"].items() if ns}, "total": record["total_ns"]}
    told = server.get(f"/cadans/v1/requests/{record['id']}/explanation?language=en")[1]["sentences"]
    account.locator(".sentences p").first.wait_for()
    assert account.locator(".sentences p").all_inner_texts() == [each["text"] for each in told]
    strip = dict(re.findall(r"([A-Z][a-z ]+) (\d[^,]*s)", account.get_by_role("img").first.get_attribute("aria-label")))
    assert is_span(strip["Writing"], sum(record["receipt_ns"][cause] for cause in ("own_decode", "speculation_waste", "mask")))
    assert is_span(strip["In the queue"], record["receipt_ns"]["queue"])
    row.click()
    account.wait_for(state="detached")


def test_an_answer_that_comes_late_is_not_shown_under_another_row(tab, server):
    first, second = (record["id"] for record in server.newest_first("slowest")["records"][:2])
    held = []
    tab.route(f"**/cadans/v1/requests/{first}", lambda route: held.append(route))
    rows(tab).nth(0).click()
    rows(tab).nth(1).click()
    tab.locator(f'table[data-receipt="{second}"]').wait_for()
    with tab.expect_response(f"**/cadans/v1/requests/{first}"):
        held[0].continue_()
    tab.wait_for_timeout(300)
    assert tab.locator("table[data-receipt]").get_attribute("data-receipt") == second


def test_a_record_that_is_gone_says_so(tab, server):
    gone = server.newest_first("slowest")["records"][0]["id"]
    tab.route(f"**/cadans/v1/requests/{gone}", lambda route: route.continue_(url=f"{server.url}/cadans/v1/requests/nobody"))
    rows(tab).nth(0).click()
    tab.get_by_role("alert").wait_for()
    assert tab.get_by_role("alert").inner_text() == server.get("/cadans/v1/requests/nobody")[1]["error"]["message"]


def test_the_slowest_come_first_and_more_are_shown_when_asked_for(tab, server):
    tab.get_by_role("heading", name="The slowest requests").wait_for()
    slowest = server.newest_first("slowest")["records"]
    tab.wait_for_function("() => document.querySelectorAll('li > button.row').length === 15")
    for row, record in zip(rows(tab).all(), slowest):
        assert numbers(row.locator(".tokens").inner_text()) == [record["prompt_tokens"], record["output_tokens"]]
        assert is_span(row.locator(".time").inner_text(), record["total_ns"] if record["ttft_ns"] is None else record["ttft_ns"])
    tab.get_by_role("button", name="Show more").click()
    tab.wait_for_function("() => document.querySelectorAll('li > button.row').length === 20")
    assert tab.get_by_role("button", name="Show more").count() == 0


def test_percentiles_are_those_of_the_server_for_every_figure(tab, server):
    figures = server.newest_first()["figures"]["warm"]
    chosen = tab.get_by_label("Figure", exact=True)
    for name, title in {**SPANS, "output_tokens_per_second": "Writing speed"}.items():
        chosen.select_option(label=title)
        values = tab.locator("section dl dd").all_inner_texts()
        alike = is_number if name == "output_tokens_per_second" else is_span
        assert [alike(text, figures[name][each]) for text, each in zip(values, ("p50", "p90", "p99", "max"))] == [True] * 4, (name, values, figures[name])
        tab.locator(".uplot canvas").wait_for()
    tab.get_by_label("Start", exact=True).select_option("cold")
    tab.get_by_text("There were no such requests in this time.").wait_for()


def test_savings_and_ends_are_those_of_the_server(tab, server):
    history = server.newest_first()
    saved = history["savings"]
    card = tab.locator("section", has=tab.get_by_role("heading", name="Remembered text"))
    told = numbers(card.locator("p").first.inner_text())
    assert saved["cached_tokens"] > 0 and told[:2] == [saved["cached_tokens"], saved["cached_tokens"] + saved["computed_tokens"]]
    assert is_span(card.locator("strong").inner_text(), saved["saved_ns"])
    ends = dict(re.findall(r"([a-z ]+): (\d+)", card.locator(".ends").inner_text()))
    assert ends == {"cut off at the limit": "19", "stopped by the reader": "1"}


def test_each_span_of_time_is_asked_for_and_shown(tab, server):
    for name, buckets in (("Hour", 60), ("Week", 84), ("Month", 60), ("Day", 48)):
        with tab.expect_response(lambda reply: f"limit=0&buckets={buckets}&" in reply.url) as answer:
            tab.get_by_role("radio", name=name).check(force=True)
        assert answer.value.json()["count"] == 20
        tab.get_by_text("20 requests in this time.").wait_for()
    assert tab.get_by_text("They are kept in memory only").count() == 0


def test_a_server_that_keeps_nothing_on_disk_says_so_and_an_empty_history_too(browser):
    with Server(models.tiny("llama", "f32"), "--history", "off") as own:
        tab = open_page(browser, own.url, "history")
        tab.get_by_text("Nothing was asked in this time.").wait_for()
        record = own.ok("/v1/completions", {"prompt": [5] * 30, "max_tokens": 12, "ignore_eos": True})["cadans"]
        tab.reload()
        tab.get_by_text("They are kept in memory only").wait_for()
        rows(tab).click()
        tab.locator(f'table[data-receipt="{record["id"]}"]').wait_for()
        tab.context.close()


@pytest.mark.real_model
def test_the_answer_of_a_chat_is_found_in_the_history(browser, house):
    from browser import last_answer, say
    tab = open_page(browser, house.url)
    say(tab, document(60, "found") + " What rang?", max_tokens=30)
    last_answer(tab).locator(".time summary").click(timeout=60_000)
    last_answer(tab).locator("table[data-receipt]").wait_for()
    request, in_chat = last_answer(tab).locator("table[data-receipt]").get_attribute("data-receipt"), four_figures(last_answer(tab))
    assert are_figures_of(in_chat, house.get(f"/cadans/v1/requests/{request}")[1]) == [], in_chat
    tab.get_by_role("link", name="History").click()
    tab.get_by_role("button", name="Show the newest").click()
    tab.get_by_role("heading", name="The newest requests").wait_for()
    rows(tab).first.click()
    account = tab.locator("li .account")
    account.locator(f'table[data-receipt="{request}"]').wait_for()
    assert four_figures(account) == in_chat
    tab.context.close()
