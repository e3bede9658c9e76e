"""Settings: what a reader may choose holds at once and stays, and how the server was started is told truly."""
import pytest

import models
from browser import open_page
from server import Server
from shown import is_number, numbers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with Server(models.tiny("llama", "f32"), "--context", "1024", "--queue", "7", "--gap-ms", "90", "--history-days", "12", "--history-size", "64M") as own:
        yield own


def told(tab):
    """{name: (value with the flag beside it, why)} of every setting of the server."""
    tab.locator("dl dt").first.wait_for()
    return {each.locator("dt").inner_text(): each.locator("dd").all_inner_texts() for each in tab.locator("dl > div").all()}


def test_a_language_holds_at_once_in_every_view_and_stays(browser, server):
    tab = open_page(browser, server.url, "settings")
    assert tab.evaluate("document.documentElement.lang") == "en"
    tab.get_by_label("Language").select_option("nl")
    tab.get_by_role("heading", name="Instellingen").wait_for()
    assert tab.evaluate("document.documentElement.lang") == "nl" and tab.title() == "Instellingen · Cadans"
    tab.get_by_role("link", name="Verloop").click()
    tab.get_by_role("heading", name="Verloop").wait_for()
    tab.reload()
    tab.get_by_role("heading", name="Verloop").wait_for()
    tab.get_by_role("link", name="Instellingen").click()
    tab.get_by_label("Taal").select_option("de")
    tab.get_by_role("heading", name="Einstellungen").wait_for()
    assert tab.faults == []
    tab.context.close()


@pytest.mark.parametrize("system, choice, dark", [("light", "dark", True), ("dark", "light", False), ("light", "system", False), ("dark", "system", True)])
def test_an_appearance_holds_at_once_and_stays(browser, server, system, choice, dark):
    tab = open_page(browser, server.url, "settings", scheme=system)
    is_dark = lambda: tab.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(part => part < 64)")
    assert is_dark() == (system == "dark")
    tab.get_by_label("Appearance").select_option(choice)
    assert is_dark() == dark
    tab.reload()
    tab.locator("#theme").wait_for()
    assert is_dark() == dark and tab.locator("#theme").input_value() == choice
    tab.context.close()


def test_the_servers_settings_are_those_that_it_was_started_with(browser, server):
    tab = open_page(browser, server.url, "settings")
    shown = told(tab)
    assert shown["Longest pause between words"][0] == "90 ms--gap-ms"
    assert shown["Policy"][0] == "cadence--policy"
    assert shown["Places in the queue"][0] == "7--queue"
    assert shown["Key needed"][0] == "No--api-key"
    assert shown["Classes"][0] == "interactive, normal, background"
    assert numbers(shown["History"][0]) == [12, 64] and "MiB" in shown["History"][0]
    assert "not kept" in shown["History"][1]
    machine = server.get("/cadans/v1/machine")[1]
    assert shown["Processor"][0] == machine["cpu"] and shown["Processor"][1] == f"{machine['threads']} threads, {machine['isa']}"
    assert shown["Cadans"][0] == machine["version"]
    assert is_number(shown["Arithmetic"][0], machine["limits"]["operations_per_second"] / 1e9)
    model = machine["models"][0]
    cells = tab.locator("tbody tr").locator("th, td").all_inner_texts()
    assert cells[0].startswith(model["name"]) and cells[1] == "in memory" and numbers(cells[3]) == [1024]
    assert is_number(cells[4], model["best_prompt_tokens_per_second"]) and is_number(cells[5], model["best_output_tokens_per_second"])
    tab.context.close()


def test_what_is_not_promised_and_what_is_kept_is_said(browser):
    with Server(models.tiny("llama", "f32"), "--policy", "prefill-first", "--history-prompts", "on") as own:
        tab = open_page(browser, own.url, "settings")
        shown = told(tab)
        assert shown["Longest pause between words"][0] == "not promised--gap-ms" and shown["Policy"][0] == "prefill-first--policy"
        assert "Also keeps what was asked" in shown["History"][1]
        tab.get_by_role("link", name="Now").click()
        tab.get_by_text("Nothing is promised about pauses under this policy.").wait_for()
        tab.context.close()


def test_another_key_can_be_given(browser):
    with Server(models.tiny("llama", "f32"), "--api-key", "sesame", headers={"x-api-key": "sesame"}) as own:
        tab = open_page(browser, own.url, "settings")
        give = lambda key: (tab.get_by_label("Key", exact=True).fill(key), tab.get_by_role("button", name="Use this key").click())
        tab.get_by_role("heading", name="This server asks for a key").wait_for()
        give("sesame")
        assert told(tab)["Key needed"][0] == "Yes--api-key"
        for part in ("Now", "History", "Prompt length"):   # each view asks with the key
            tab.get_by_role("link", name=part).click()
            tab.get_by_role("heading", name=part, exact=True).wait_for()
            tab.wait_for_timeout(300)
            assert tab.get_by_role("alert").count() == 0 and tab.locator("input[type=password]").count() == 0
        tab.get_by_role("link", name="Settings").click()
        tab.get_by_role("button", name="Use another key").click()
        give("open")
        tab.get_by_role("heading", name="This server asks for a key").wait_for()
        tab.locator("input[type=password]").wait_for()
        tab.context.close()
