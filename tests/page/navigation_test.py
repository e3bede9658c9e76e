"""The menu: every view can be reached by hand, by keyboard and by address, and leaves nothing behind."""
import re

import pytest

from browser import PARTS, open_page

pytestmark = [pytest.mark.slow, pytest.mark.real_model]

TITLES = {"chat": "Chat", "now": "Now", "lengths": "Prompt length", "history": "History", "settings": "Settings"}


def shown_part(tab):
    """(title of the view, entry of the menu that is marked, what has the focus, title of the document)."""
    return tab.evaluate("""() => [document.querySelector("h1").textContent, document.querySelector("nav [aria-current=page] .long").textContent,
                                  document.activeElement.tagName, document.title]""")


def test_the_menu_opens_every_view_and_back_returns(browser, house):
    tab = open_page(browser, house.url)
    menu = tab.get_by_role("navigation", name="Parts of the page")
    assert [each.inner_text() for each in menu.get_by_role("link").all()] == [TITLES[part] for part in PARTS]
    for part in PARTS[1:]:
        menu.get_by_role("link", name=TITLES[part]).click()
        tab.wait_for_function("title => document.querySelector('h1').textContent === title && document.activeElement.tagName === 'H1'", arg=TITLES[part])
        assert tab.url == f"{house.url}/#{part}"
        assert shown_part(tab) == [TITLES[part], TITLES[part], "H1", f"{TITLES[part]} · Cadans"]
    for part in reversed(PARTS[:-1]):
        tab.go_back()
        tab.locator("h1", has_text=TITLES[part]).wait_for(state="attached")
    assert tab.faults == []
    tab.context.close()


def test_the_menu_works_by_keyboard(browser, house):
    tab = open_page(browser, house.url)
    tab.get_by_role("link", name="Cadans, start page").focus()
    for part in PARTS:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.querySelector('.long').textContent") == TITLES[part]
    tab.keyboard.press("Shift+Tab")
    tab.keyboard.press("Enter")
    tab.locator("h1", has_text="History").wait_for()
    tab.keyboard.press("Tab")   # the heading has the focus, so the next stop is the view's own first one
    assert tab.evaluate("document.querySelector('main').contains(document.activeElement)")
    tab.context.close()


@pytest.mark.parametrize("part", PARTS)
def test_an_address_opens_its_view_also_when_it_is_loaded_again(browser, house, part):
    tab = open_page(browser, house.url, part)
    assert shown_part(tab)[:2] == [TITLES[part]] * 2
    tab.reload()
    tab.locator("h1", has_text=TITLES[part]).wait_for(state="attached")
    tab.context.close()


def test_an_address_that_names_no_view_opens_the_chat(browser, house):
    tab = open_page(browser, house.url, "nothing-of-this-name")
    assert shown_part(tab)[:2] == ["Chat", "Chat"]
    tab.context.close()


@pytest.mark.parametrize("locale", ["en-GB", "nl-NL", "de-DE"])
@pytest.mark.parametrize("width", [320, 360, 640, 1280])
def test_the_menu_is_whole_at_any_width(browser, house, locale, width):
    tab = open_page(browser, house.url, "settings", locale=locale, size={"width": width, "height": 720})
    boxes = tab.evaluate("""[...document.querySelectorAll("nav a")].map(link => {
        const word = [...link.querySelectorAll("span")].find(span => span.getBoundingClientRect().width > 1).getBoundingClientRect();
        const box = link.getBoundingClientRect();
        return {left: word.left, right: word.right, box_left: box.left, box_right: box.right};
    })""")
    assert len(boxes) == len(PARTS)
    for box in boxes:
        assert box["box_left"] - 0.5 <= box["left"] and box["right"] <= box["box_right"] + 0.5, box
    for before, after in zip(boxes, boxes[1:]):
        assert before["right"] <= after["left"]
    assert boxes[0]["left"] >= 0 and boxes[-1]["right"] <= width
    tab.context.close()


def test_a_view_that_was_left_asks_the_server_for_nothing_more(browser, house):
    """More visits than the server lets watch at once: each must have hung up, or the last is turned away."""
    tab = open_page(browser, house.url, "settings")
    for _ in range(40):
        tab.evaluate("location.hash = 'now'")
        tab.locator("#lanes").wait_for()
        tab.evaluate("location.hash = 'settings'")
        tab.locator("#theme").wait_for()
    asked = len(tab.asked)
    tab.wait_for_timeout(2500)
    assert tab.asked[asked:] == []
    assert house.request("HEAD", "/cadans/v1/now/stream")[0] == 200
    assert len([url for url in tab.asked if re.search(r"/now/stream$", url)]) >= 40
    assert tab.faults == []
    tab.context.close()
