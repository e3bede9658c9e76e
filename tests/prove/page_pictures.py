"""The page, as a reader sees it while a real model answers: pictures, and what was checked as they were taken.

SmolLM2 answers. One browser chats; a program sends a long document meanwhile; the view of now watches both. Then prompt length,
history and settings. Each view is opened in light and in dark, on a desk and on a phone. As each picture is taken: axe finds no
serious fault, nothing is wider than the screen, nobody but the server is asked, and the browser reports no error.
The receipt on screen is compared with the server's to the nanosecond, and the four figures in the history with the record's. The
browsers run on the same machine, at the lowest priority except for the last part. Whatever else the machine does counts too, so its
load is in the first row.
Last, each view is opened twenty times beside a prompt that is being read when 10,000 requests are in the history. Browser and engine
share the machine there, so nine of ten must be there within a second; the longest is told beside them.
"""
import base64
import gzip
import itertools
import os
import statistics
import struct
import tempfile
import threading
import urllib.parse
import zlib

import numpy

import models
from browser import DESK, PARTS, PHONE, STORY, accessibility_faults, chromium, document, last_answer, open_page, receipt_on_screen, say
from prove.evidence import PAGES
from server import ROOT, Server
from shown import are_figures_of, four_figures

INPUTS = ["src/page", "tests/browser.py", "tests/shown.py", "tests/page/package-lock.json"]
FOLDER = PAGES / "page_pictures"
LOOKS = [(scheme, name, size) for name, size in (("desk", DESK), ("phone", PHONE)) for scheme in ("light", "dark")]
MOST_BYTES = 1_500_000       # of all pictures together: they are kept with the sources
KEPT = 10_000                # requests of history
MOST_MS = 1_000              # until a view is there: what feels as if one had asked and not waited
QUESTION = "In two sentences: what is a cadence in music?"


class Program:
    """A client that streams beside the readers."""

    def __init__(self, server, prompt, max_tokens, user):
        body = {"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True, "stream": True, "user": user}
        self.thread = threading.Thread(target=lambda: list(server.frames("/v1/completions", body, timeout=600)))
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join(600)


class Camera:
    """Takes the pictures, and looks at what they show."""

    def __init__(self, evidence, server):
        self.evidence, self.server, self.bytes = evidence, server, 0

    def take(self, tab, part, scheme, size, whole=False):
        self.keep(tab, tab.screenshot(full_page=whole), part, scheme, size)

    def keep(self, tab, picture, part, scheme, size):
        name = f"{part}_{scheme}_{size}"
        path = FOLDER / f"{name}.png"
        path.write_bytes(with_palette(tab, picture))
        self.bytes += path.stat().st_size
        faults = accessibility_faults(tab)
        wide = max(0, tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
        foreign = [url for url in tab.asked if not url.startswith("data:") and urllib.parse.urlsplit(url)[:2] != urllib.parse.urlsplit(self.server.url)[:2]]
        self.evidence.picture(f"{part}, {scheme}, {size}", path)
        self.evidence.row(f"{part}, {scheme}, {size}", serious_faults=len(faults), too_wide_px=wide, asked=len(tab.asked), asked_elsewhere=len(foreign), errors=len(tab.faults))
        for fault, what in ((faults, "axe"), (wide > 0, "too wide"), (foreign, "asked elsewhere"), (tab.faults, "errors")):
            self.evidence.require(not fault, f"{name}: {what}: {fault}")


def with_palette(tab, picture):
    """The same picture as a PNG of 256 colours, of a third of the size. The browser unpacks it."""
    width, height, pixels = tab.context.new_page().evaluate("""async picture => {
        const bitmap = await createImageBitmap(await (await fetch("data:image/png;base64," + picture)).blob());
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        const context = canvas.getContext("2d");
        context.drawImage(bitmap, 0, 0);
        const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
        let text = "";
        for (let i = 0; i < data.length; i += 32768) text += String.fromCharCode(...data.subarray(i, i + 32768));
        return [canvas.width, canvas.height, btoa(text)];
    }""", base64.b64encode(picture).decode())
    tab.context.pages[-1].close()
    packed = numpy.frombuffer(base64.b64decode(pixels), numpy.uint8).reshape(-1, 4)[:, :3].astype(numpy.int64) @ [65536, 256, 1]
    found, places, counts = numpy.unique(packed, return_inverse=True, return_counts=True)
    colours = numpy.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    palette = colours[numpy.argsort(-counts, kind="stable")[:160]]
    far = ((colours[:, None] - palette[None]) ** 2).sum(2).min(1)
    for _ in range(min(96, len(colours) - len(palette))):   # and those least like any of them, so that a small mark keeps its colour
        palette = numpy.vstack([palette, colours[numpy.argmax(far * (counts > 6))]])
        far = numpy.minimum(far, ((colours - palette[-1]) ** 2).sum(1))
    nearest = numpy.array([numpy.argmin(((palette - colour) ** 2).sum(1)) for colour in colours], numpy.uint8)
    rows = nearest[places.reshape(-1)].reshape(height, width)
    unfiltered = numpy.hstack([numpy.zeros((height, 1), numpy.uint8), rows]).tobytes()
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) + chunk(b"PLTE", palette.astype(numpy.uint8).tobytes())
            + chunk(b"IDAT", zlib.compress(unfiltered, 9)) + chunk(b"IEND", b""))


def chats(browser, camera, server):
    for turn, (scheme, name, size) in enumerate(LOOKS):
        tab = open_page(browser, server.url, scheme=scheme, size=size)
        say(tab, f"{document(500, f'chat{turn}')}\n\n{QUESTION}", max_tokens=90)
        answer = last_answer(tab)
        answer.get_by_role("progressbar").wait_for(timeout=60_000)
        answer.locator(".time").wait_for(timeout=120_000)
        on_screen = receipt_on_screen(tab, answer)
        request = answer.locator("table[data-receipt]").get_attribute("data-receipt")
        told = server.get(f"/cadans/v1/requests/{request}")[1]
        camera.evidence.require(on_screen == {**{cause: ns for cause, ns in told["receipt_ns"].items() if ns}, "total": told["total_ns"]},
                                f"chat, {scheme}, {name}: the receipt on screen is not the server's")
        answer.locator(".sentences p").first.wait_for()
        tab.locator("article.own").last.evaluate("element => scrollTo(0, element.offsetTop - 76)")   # below the menu
        camera.take(tab, "chat", scheme, name)
        tab.context.close()


def lanes(browser, camera, server):
    """A chat writes while a document is read: the lane of the chat says whether its words keep coming."""
    kept, longest, typical = [], [], []
    for turn, (scheme, name, size) in enumerate(LOOKS):
        chat, tab = open_page(browser, server.url), open_page(browser, server.url, "now", scheme=scheme, size=size)
        tab.get_by_text("All is quiet").wait_for(timeout=20_000)
        say(chat, STORY, max_tokens=400)
        chat.wait_for_function("() => document.querySelector('.answer .prose')?.innerText.length > 60", timeout=120_000)
        with Program(server, document(2400, f"lanes{turn}"), 30, "anna"):
            tab.locator("li[data-protected]").wait_for(timeout=60_000)
            tab.wait_for_timeout(3000)
            kept.append(tab.locator("li[data-protected]").first.get_attribute("data-protected", timeout=5_000))
            picture = tab.screenshot(full_page=name == "desk")
        chat.keyboard.press("Escape")
        last_answer(chat).locator(".time").wait_for(timeout=60_000)
        request = last_answer(chat)
        receipt_on_screen(chat, request)
        record = server.get(f"/cadans/v1/requests/{request.locator('table[data-receipt]').get_attribute('data-receipt')}")[1]
        longest.append(record["gap_ns"]["max"] / 1e6)
        typical.append(record["gap_ns"]["p50"] / 1e6)
        camera.keep(tab, picture, "now", scheme, name)   # packing it takes the machine for a while: the stream is over
        chat.context.close()
        tab.context.close()
    promise = server.get("/cadans/v1/machine")[1]["settings"]["gap_ms"]
    camera.evidence.row("a chat's words beside a document, two readers on the same machine", typical_gap_ms=statistics.median(typical),
                        longest_gap_ms=max(longest), gap_promised_ms=promise, shown_as_protected=f"{kept.count('true')} of {len(kept)}")
    camera.evidence.require(kept.count("true") > len(kept) / 2, f"a stream beside a document was shown as protected in {kept.count('true')} of {len(kept)} lanes")


def rest(browser, camera, server):
    ready = {"lengths": "table tbody tr", "history": "li > button.row", "settings": "table tbody tr"}
    for part, (scheme, name, size) in itertools.product(ready, LOOKS):
        tab = open_page(browser, server.url, part, scheme=scheme, size=size)
        tab.locator(ready[part]).first.wait_for(timeout=30_000)
        if part == "history":
            tab.get_by_role("radio", name="Hour").check(force=True)
            tab.wait_for_timeout(500)
        if part == "history" and name == "desk":
            tab.locator(ready[part]).first.click()
            account = tab.locator("li .account")
            account.locator("table[data-receipt]").wait_for()
            record = server.get(f"/cadans/v1/requests/{account.locator('table[data-receipt]').get_attribute('data-receipt')}")[1]
            camera.evidence.require(are_figures_of(four_figures(account), record) == [], f"{part}, {scheme}: the four figures are not the record's")
        tab.evaluate("scrollTo(0, 0)")
        tab.wait_for_timeout(500)
        camera.take(tab, part, scheme, name, whole=name == "desk")
        tab.context.close()


def some_history(server):
    for turn, words in enumerate((30, 60, 120, 250, 500, 1000, 1800)):
        for text in (0, 1, 0):   # the last finds what the first has read
            with Program(server, document(words, f"past{turn}-{text}"), 30, ("anna", "bert", "clara")[turn % 3]):
                pass


def a_long_history(browser, evidence, smollm2):
    with tempfile.TemporaryDirectory() as state, Server([models.tiny("llama", "f32"), smollm2], "--context", "2048", env={"XDG_STATE_HOME": state}) as server:
        for _ in range(KEPT):
            server.ok("/v1/completions", {"prompt": [3], "max_tokens": 1})
        tab, times, reading = open_page(browser, server.url, "settings"), {}, threading.Event()

        def read():
            for turn in itertools.takewhile(lambda _: not reading.is_set(), itertools.count()):
                server.ok("/v1/completions", {"model": smollm2.stem, "prompt": document(1000, turn), "max_tokens": 1})
        reader = threading.Thread(target=read)
        reader.start()
        ready = {"history": "li > button.row", "lengths": "table tbody tr", "now": "#lanes", "settings": "table tbody tr"}
        for _, part in itertools.product(range(20), ready):
            times.setdefault(part, []).append(tab.evaluate("""async ([part, wanted]) => {
                const began = performance.now();
                location.hash = part;
                for (;;) {
                    await new Promise(requestAnimationFrame);
                    if (document.querySelector("nav [aria-current]").hash === "#" + part && document.querySelector(wanted)) return performance.now() - began;
                }
            }""", [part, ready[part]]))
        reading.set()
        reader.join()
        for part, each in times.items():
            most = sorted(each)[len(each) * 9 // 10]
            evidence.row(f"{part} is there, beside a prompt being read, {KEPT:,} requests kept", half_ms=statistics.median(each), nine_of_ten_ms=most, longest_ms=max(each))
            evidence.require(most <= MOST_MS, f"{part}: {most:.0f} ms until it is there, in nine of ten cases")


def prove(evidence):
    smollm2 = models.fetcher().models_folder() / models.fetcher().MODELS["smollm2"]["file"]
    evidence.require(smollm2.exists(), "the default model has not been fetched (make serve)")
    if not smollm2.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.png"):
        old.unlink()
    evidence.row("the machine before the proof began", load=os.getloadavg()[0])
    evidence.row("the page as it is sent, packed", bytes=len(gzip.compress((ROOT / "src" / "page" / "built" / "index.html").read_bytes(), 9)))
    # A reader's browser is on a machine of its own; while streams are watched it leaves the processor to the server.
    with chromium(polite=True) as browser:
        with tempfile.TemporaryDirectory() as state, Server(smollm2, "--context", "4096", env={"XDG_STATE_HOME": state}) as server:
            camera = Camera(evidence, server)
            some_history(server)
            chats(browser, camera, server)
            lanes(browser, camera, server)
            rest(browser, camera, server)
        evidence.row("all pictures", bytes=camera.bytes)
        evidence.require(camera.bytes <= MOST_BYTES, f"the pictures are {camera.bytes} bytes")
        evidence.require({picture.name.split("_")[0] for picture in FOLDER.glob("*.png")} == set(PARTS), "there is not a picture of every view")
    # How soon a view is there is the browser's work too, so that here it has its share.
    with chromium() as browser:
        a_long_history(browser, evidence, smollm2)
