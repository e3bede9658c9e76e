"""Prompt length: measured speed and time to the first word by length, against what the server says."""
import re

import pytest

import models
from browser import open_page
from server import Server
from shown import colours_in, is_number, is_span, numbers

pytestmark = pytest.mark.slow

KINDS = {"warm": "warm", "mostly remembered": "cached", "cold": "cold"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Prompts of three lengths, one of them asked again."""
    with Server(models.tiny("llama", "f32"), "--context", "1024", env={"XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}) as own:
        for first, length in ((5, 20), (6, 20), (7, 150), (8, 700), (8, 700)):
            own.stream("/v1/completions", {"prompt": [first] * length, "max_tokens": 4, "ignore_eos": True, "stream": True})
        yield own


def test_the_table_says_what_the_server_measured(browser, server):
    tab = open_page(browser, server.url, "lengths")
    table = tab.get_by_role("region", name="In numbers").get_by_role("table")
    table.wait_for()
    classes = {(each["from_tokens"], each["to_tokens"]): each for each in server.get("/cadans/v1/history?limit=0&buckets=1")[1]["lengths"]}
    shown = []
    for row in table.locator("tbody tr").all():
        length, start, asked, speed, half, most = row.locator("th, td").all_inner_texts()
        place, kind = tuple(map(int, numbers(length))), KINDS[start.strip()]
        figures = classes[place][kind]
        shown.append((place, kind, int(asked)))
        assert int(asked) == figures["count"]
        assert is_span(half, figures["ttft_ns"]["p50"]) and is_span(most, figures["ttft_ns"]["p90"])
        assert is_number(speed, figures["prompt_tokens_per_second"]["p50"])
    assert shown == [((16, 31), "warm", 2), ((128, 255), "warm", 1), ((512, 1023), "warm", 1), ((512, 1023), "cached", 1)]
    assert tab.faults == []
    tab.context.close()


def test_the_charts_draw_warm_and_remembered_prompts(browser, server):
    tab = open_page(browser, server.url, "lengths")
    speed, first = (tab.locator(".card", has=tab.get_by_role("heading", name=name)) for name in ("Reading speed", "Time to the first word"))
    for card in (speed, first):
        card.locator(".uplot canvas").wait_for()
    assert colours_in(speed.locator("canvas"), "--read")[0] > 50 and colours_in(speed.locator("canvas"), "--write")[0] == 0
    assert min(colours_in(first.locator("canvas"), "--read", "--write")) > 10
    assert first.locator("figcaption span").all_inner_texts() == ["warm", "mostly remembered"]
    tab.context.close()


def test_nobody_has_asked_yet(browser):
    with Server(models.tiny("llama", "f32"), "--history", "off") as own:
        tab = open_page(browser, own.url, "lengths")
        tab.get_by_text("No prompts have been read yet.").wait_for()
        assert tab.locator("table").count() == 0
        tab.context.close()


def test_a_refusal_is_shown_in_the_servers_words(browser, server):
    tab = open_page(browser, server.url, "settings")
    tab.route("**/cadans/v1/history*", lambda route: route.fulfill(status=503, content_type="application/json", body='{"error": {"message": "the history is being set aside"}}'))
    tab.get_by_role("link", name=re.compile("Prompt length")).click()
    assert tab.get_by_role("alert").inner_text() == "the history is being set aside"
    tab.context.close()
