"""Debian's Chromium, driven by Playwright, and what the page's tests ask of what it shows.

    with chromium() as browser:
        tab = open_page(browser, server.url)
"""
import contextlib
import json
import os
import pathlib
import shutil
import tempfile

HERE = pathlib.Path(__file__).parent
AXE = HERE / "page" / "node_modules" / "axe-core" / "axe.min.js"
PARTS = ["chat", "now", "lengths", "history", "settings"]
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 860}
STORY = "Tell me a very long story about a clockmaker and a river, with many chapters."


@contextlib.contextmanager
def chromium(polite=False):
    """polite: at the lowest priority, as if it were on a machine of its own."""
    from playwright.sync_api import sync_playwright
    program = shutil.which("chromium")
    assert program, "Debian's package chromium is not installed (tools/setup test)"
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        if polite:
            wrapper = pathlib.Path(folder) / "chromium"
            wrapper.write_text(f'#!/bin/sh\nexec nice -n 19 "{program}" "$@"\n')
            wrapper.chmod(0o755)
            program = wrapper
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


def open_page(browser, url, part="chat", locale="en-GB", scheme="light", size=DESK, scale=1):
    """A tab of its own, as another person's browser would be. Its faults and the addresses it asks are kept."""
    context = browser.new_context(locale=locale, color_scheme=scheme, viewport=size, device_scale_factor=scale)
    tab = context.new_page()
    tab.faults, tab.asked = [], []
    tab.on("pageerror", lambda error: tab.faults.append(str(error)))
    # What the server refuses is logged as an error too; that is no fault of the page.
    tab.on("console", lambda message: message.type == "error" and "Failed to load resource" not in message.text and tab.faults.append(message.text))
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.goto(f"{url}/#{part}")
    tab.wait_for_selector("h1", state="attached")
    return tab


def document(words, seed):
    """A text that nobody has asked about before, so that none of it is cached."""
    return " ".join(f"Entry {seed}-{i} says that the bell rang {i * 7 % 61} times." for i in range(words // 10))


def say(tab, text, max_tokens=None):
    """Sends a message as a reader does; max_tokens bounds the answer, which the page itself leaves open."""
    if max_tokens is not None:
        def bounded(route):
            route.continue_(post_data=json.dumps({**json.loads(route.request.post_data), "max_tokens": max_tokens}))
        tab.route("**/v1/chat/completions", bounded)
    tab.fill("#words", text)
    tab.click("form button.main")


def last_answer(tab):
    return tab.locator("article.answer").last


def receipt_on_screen(tab, answer):
    """{cause: nanoseconds} as they stand in the receipt of an answer, opened if need be."""
    summary = answer.locator(".time > details > summary")
    if not answer.locator("table[data-receipt]").count():
        summary.click()
    return receipt_rows(answer)


def receipt_rows(place):
    """{cause: nanoseconds} as they stand in the receipt within a locator."""
    rows = place.locator("table[data-receipt] tr[data-cause]")
    rows.first.wait_for()
    return {row.get_attribute("data-cause"): int("".join(c for c in row.locator("td.exact").inner_text() if c.isdigit())) for row in rows.all()}


def accessibility_faults(tab):
    """What axe calls serious or critical: "rule: element, element"."""
    tab.evaluate(AXE.read_text())
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {', '.join(' '.join(map(str, node['target'])) for node in each['nodes'])}"
            for each in found["violations"] if each["impact"] in ("serious", "critical")]
