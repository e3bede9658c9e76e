"""The page as a whole: its bytes, its words, its manners, and whether everybody can use it."""
import gzip
import json
import re
import shutil
import subprocess
import urllib.parse

import pytest

from browser import PARTS, PHONE, accessibility_faults, last_answer, open_page, say
from server import ROOT

WEB = ROOT / "src" / "page" / "web"
WORDS = WEB / "src" / "words"
NODE = ROOT / ".venv" / "bin" / "node"

slow = pytest.mark.slow
real = pytest.mark.real_model


@slow
def test_the_committed_page_is_what_its_sources_build(tmp_path):
    """From a copy, elsewhere, so that no path of this machine can be in it."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(WEB, copy, symlinks=True)
    subprocess.run([str(NODE), "build.mjs", str(tmp_path / "built")], cwd=copy, check=True, capture_output=True, timeout=120)
    for name in ("index.html", "policy.txt"):
        assert (tmp_path / "built" / name).read_bytes() == (ROOT / "src" / "page" / "built" / name).read_bytes(), f"{name}: run tools/page and commit"


def test_the_page_is_small_as_it_is_sent():
    """A second on the slow line of a phone."""
    assert len(gzip.compress((ROOT / "src" / "page" / "built" / "index.html").read_bytes(), 9)) <= 160_000


@slow
def test_the_installed_packages_are_those_of_the_lock():
    locked = json.loads((WEB / "package-lock.json").read_text())["packages"]
    for path, package in locked.items():
        manifest = WEB / path / "package.json"
        if path and manifest.exists():
            assert json.loads(manifest.read_text())["version"] == package["version"], path
    for name in json.loads((WEB / "package.json").read_text())["devDependencies"]:
        assert (WEB / "node_modules" / name / "package.json").exists(), name


def table(language):
    return {m[1] or m[2]: m[3] for m in re.finditer(r'^    (?:"([^"]+)"|(\w+)): "(.*)",$', (WORDS / f"{language}.js").read_text(), re.M)}


@pytest.mark.parametrize("language", ["nl", "de"])
def test_every_sentence_exists_in_every_language_with_the_same_places_to_fill(language):
    english, other = table("en"), table(language)
    assert len(english) > 200 and list(english) == list(other)
    places = lambda sentence: sorted(re.findall(r"\{\w+\}", sentence))
    assert [name for name in english if places(english[name]) != places(other[name])] == []
    # Names and units may be alike; a sentence of four words or more that is the same was forgotten.
    assert [name for name in english if english[name] == other[name] and len(re.findall(r"[a-z]{2,}", re.sub(r"\{\w+\}", "", english[name]))) > 3] == []


def test_every_sentence_that_the_page_says_is_there():
    names = set(table("en"))
    said = {m for path in (WEB / "src").rglob("*.svelte") for m in re.findall(r'say\("([^"]+)"', path.read_text())}
    assert said and said - names == set()


@slow
@real
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser, house, scheme):
    tab = open_page(browser, house.url, scheme=scheme)
    say(tab, "Say hello.", max_tokens=6)
    last_answer(tab).locator(".time summary").click(timeout=60_000)
    last_answer(tab).locator("table[data-receipt]").wait_for()
    faults = {}
    for part in PARTS:
        tab.goto(f"{house.url}/#{part}")
        tab.wait_for_timeout(600)
        faults[part] = accessibility_faults(tab)
    assert faults == {part: [] for part in PARTS}
    tab.context.close()


@slow
@real
@pytest.mark.parametrize("locale, titles, stop", [
    ("nl-NL", ["Gesprek", "Nu", "Promptlengte", "Verloop", "Instellingen"], "Waar bleef de tijd?"),
    ("de-DE", ["Gespräch", "Jetzt", "Promptlänge", "Verlauf", "Einstellungen"], "Wo blieb die Zeit?"),
])
def test_speaks_the_readers_language(browser, house, locale, titles, stop):
    tab = open_page(browser, house.url, locale=locale)
    assert tab.evaluate("document.documentElement.lang") == locale[:2]
    say(tab, "Hallo!", max_tokens=4)
    last_answer(tab).get_by_text(stop).click(timeout=60_000)
    for part, title in zip(PARTS, titles):
        tab.goto(f"{house.url}/#{part}")
        tab.locator("h1", has_text=title).wait_for(state="attached")
        tab.wait_for_timeout(300)
        unsaid = re.findall(r"\b[a-z]+\.[a-z_]+(?:\.[a-z_]+)*\b", tab.locator("body").inner_text())
        assert [each for each in unsaid if each.split(".")[0] in {name.split(".")[0] for name in table("en")}] == []
    tab.context.close()


@slow
@real
def test_fits_a_phone(browser, house):
    tab = open_page(browser, house.url, size=PHONE)
    say(tab, "Say hello.", max_tokens=6)
    last_answer(tab).locator(".time summary").click(timeout=60_000)
    for part in PARTS:
        tab.goto(f"{house.url}/#{part}")
        tab.wait_for_timeout(500)
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], part
        small = tab.evaluate("""[...document.querySelectorAll('nav a, button, select')].filter(e => e.offsetParent)
            .map(e => [e.getAttribute('aria-label') ?? e.textContent.trim(), e.getBoundingClientRect()])
            .filter(([, box]) => box.height < 24 || box.width < 24).map(([name]) => name)""")
        assert small == [], f"too small for a thumb on {part}"
    tab.context.close()


@slow
@real
def test_works_by_keyboard_alone(browser, house):
    tab = open_page(browser, house.url)
    tab.wait_for_function("() => document.querySelector('select option') !== null")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Go to the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.tagName") == "MAIN"
    for _ in range(20):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.id") == "words":
            break
    tab.keyboard.type("Say hello in one word.")
    tab.keyboard.press("Shift+Enter")
    tab.keyboard.type("Thank you.")
    assert "\n" in tab.input_value("#words")
    tab.keyboard.press("Enter")
    last_answer(tab).locator(".prose").wait_for(timeout=60_000)
    tab.keyboard.press("Escape")
    last_answer(tab).locator(".time").wait_for(timeout=20_000)
    tab.context.close()


@slow
@real
def test_asks_nobody_but_the_server_it_came_from(browser, house):
    tab = open_page(browser, house.url)
    for part in PARTS:
        tab.goto(f"{house.url}/#{part}")
        tab.wait_for_timeout(400)
    foreign = [url for url in tab.asked if urllib.parse.urlsplit(url)[:2] != urllib.parse.urlsplit(house.url)[:2] and not url.startswith("data:")]
    assert tab.asked and foreign == []
    assert tab.faults == []
    assert "default-src 'none'" in house.request("GET", "/")[1]["Content-Security-Policy"]
    tab.context.close()
