"""The model fetch: resumes, checks, joins, asks for consent, and never leaves half a file under a model's name."""
import hashlib
import http.server
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import zipfile

import pytest

TOOL = pathlib.Path(__file__).parent.parent.parent / "tools" / "fetch_model.py"
DATA = random.Random(4).randbytes(3_000_000)


class Source(http.server.ThreadingHTTPServer):
    """Serves bytes by name; can break off after so many bytes of each answer, ignore ranges, or answer with an error."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.break_after, self.ranges, self.error, self.asked = {}, None, True, None, []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        source = self.server
        begin = self.headers.get("Range")
        source.asked.append(begin)
        if source.error:
            return self.send_error(source.error)
        data = source.files[self.path[1:]]
        begin = int(begin[6:-1]) if begin and source.ranges else 0
        if begin >= len(data) > 0:
            return self.send_error(416)
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        part = data[begin:]
        self.wfile.write(part if source.break_after is None else part[:source.break_after])
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def source():
    server = Source()
    yield server
    server.shutdown()
    server.server_close()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def fetch(home, manifest, *flags, name="m", env=None):
    listing = pathlib.Path(home) / "manifest.json"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text(json.dumps(manifest))
    environment = {k: v for k, v in os.environ.items() if k != "CADANS_ACCEPT_TERMS"}
    return subprocess.run([sys.executable, str(TOOL), "--manifest", str(listing), "--pause", "0.01", name, *flags], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env={**environment, "CADANS_HOME": str(home), **(env or {})})


def plain(source, data=DATA, **more):
    source.files["m.bin"] = data
    return {"m": {"file": "m.gguf", "bytes": len(data), "sha256": sha(data), "licence": "none",
                  "parts": [{"url": source.url("m.bin"), "sha256": sha(data)}], **more}}


def kept(home):
    folder = pathlib.Path(home) / "models"
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.name != ".lock") if folder.exists() else []


def test_a_model_is_fetched_once(source, tmp_path):
    manifest = plain(source)
    first = fetch(tmp_path, manifest)
    assert first.returncode == 0 and first.stdout.strip() == str(tmp_path / "models" / "m.gguf")
    assert (tmp_path / "models" / "m.gguf").read_bytes() == DATA and kept(tmp_path) == ["m.gguf"]
    asked = len(source.asked)
    second = fetch(tmp_path, manifest)
    assert second.returncode == 0 and second.stdout == first.stdout and len(source.asked) == asked


def test_a_connection_that_breaks_is_resumed_where_it_broke(source, tmp_path):
    source.break_after = 1_100_000
    result = fetch(tmp_path, plain(source))
    assert result.returncode == 0 and source.asked == [None, "bytes=1100000-", "bytes=2200000-"]
    assert (tmp_path / "models" / "m.gguf").read_bytes() == DATA


def test_what_one_run_left_the_next_run_continues(source, tmp_path):
    source.break_after = 100_000
    manifest = plain(source)
    result = fetch(tmp_path, manifest)
    assert result.returncode == 1 and "run the same command again" in result.stderr and "m.gguf" not in kept(tmp_path)
    source.break_after, source.asked = None, []
    assert fetch(tmp_path, manifest).returncode == 0
    assert source.asked == ["bytes=500000-"] and (tmp_path / "models" / "m.gguf").read_bytes() == DATA


def test_a_source_that_ignores_ranges_is_read_from_the_start(source, tmp_path):
    source.break_after = 2_000_000
    manifest = plain(source)
    source.ranges = False
    assert fetch(tmp_path, manifest).returncode == 1
    source.break_after = None
    assert fetch(tmp_path, manifest).returncode == 0
    assert (tmp_path / "models" / "m.gguf").read_bytes() == DATA


def test_damaged_bytes_are_never_installed(source, tmp_path):
    manifest = plain(source)
    source.files["m.bin"] = DATA[:-1] + b"?"
    result = fetch(tmp_path, manifest)
    assert result.returncode == 1 and "SHA-256" in result.stderr and kept(tmp_path) == []


def test_a_wrong_hash_of_the_whole_is_never_installed(source, tmp_path):
    manifest = plain(source, sha256=sha(b"other"))
    result = fetch(tmp_path, manifest)
    assert result.returncode == 1 and "Nothing was installed" in result.stderr and "m.gguf" not in kept(tmp_path)


def test_a_broken_rest_of_an_earlier_run_is_noticed_and_fetched_anew(source, tmp_path):
    manifest = plain(source)
    source.break_after = 100_000
    fetch(tmp_path, manifest)
    rest = next((tmp_path / "models" / ".partial").iterdir())
    rest.write_bytes(b"x" * rest.stat().st_size)
    source.break_after = None
    assert fetch(tmp_path, manifest).returncode == 0
    assert (tmp_path / "models" / "m.gguf").read_bytes() == DATA


def test_parts_in_archives_are_joined_in_order(source, tmp_path):
    parts = []
    for number in range(4):
        path = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as box:
            box.writestr("data/part", DATA[number * 750_000:(number + 1) * 750_000])
        source.files[path.name] = path.read_bytes()
        parts.append({"url": source.url(path.name), "sha256": sha(path.read_bytes()), "member": "data/part"})
    assert fetch(tmp_path / "home", plain(source, parts=parts)).returncode == 0
    assert (tmp_path / "home" / "models" / "m.gguf").read_bytes() == DATA and kept(tmp_path / "home") == ["m.gguf"]


def test_an_archive_without_the_file_is_refused(source, tmp_path):
    manifest = plain(source)
    manifest["m"]["parts"][0]["member"] = "data/part"
    result = fetch(tmp_path, manifest)
    assert result.returncode == 1 and "Nothing was installed" in result.stderr and "m.gguf" not in kept(tmp_path)


def test_terms_are_shown_before_anything_is_fetched(source, tmp_path):
    manifest = plain(source, terms="Be kind.")
    refused = fetch(tmp_path, manifest)
    assert refused.returncode == 1 and "Be kind." in refused.stderr and source.asked == []
    accepted = fetch(tmp_path, manifest, "--accept-terms")
    assert accepted.returncode == 0 and "Be kind." in accepted.stderr


def test_terms_can_be_accepted_by_the_environment(source, tmp_path):
    assert fetch(tmp_path, plain(source, terms="Be kind."), env={"CADANS_ACCEPT_TERMS": "m"}).returncode == 0


@pytest.mark.parametrize("error", [403, 404])
def test_an_answer_that_is_an_error_is_said_plainly(source, tmp_path, error):
    source.error = error
    result = fetch(tmp_path, plain(source))
    assert result.returncode == 1 and str(error) in result.stderr and len(source.asked) == 1


def test_nobody_listening_is_said_plainly(source, tmp_path):
    manifest = plain(source)
    source.shutdown()
    source.server_close()
    result = fetch(tmp_path, manifest)
    assert result.returncode == 1 and "Traceback" not in result.stderr and "refused" in result.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small disk")
def test_a_full_disk_is_said_plainly_and_leaves_nothing(source, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount")
    try:
        result = fetch(disk, plain(source))
        assert result.returncode == 1 and "disk" in result.stderr and "Traceback" not in result.stderr and "m.gguf" not in kept(disk)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_while_writing_is_said_plainly(source, tmp_path):
    """A limit on file size stands in for the disk: the write itself fails."""
    manifest = plain(source)
    listing = tmp_path / "manifest.json"
    listing.write_text(json.dumps(manifest))
    result = subprocess.run(["bash", "-c", f'ulimit -f 1000; trap "" XFSZ; exec "{sys.executable}" "{TOOL}" --manifest "{listing}" m'],
                            capture_output=True, text=True, timeout=60, env={**os.environ, "CADANS_HOME": str(tmp_path)})
    assert result.returncode == 1 and "Traceback" not in result.stderr and "m.gguf" not in kept(tmp_path)


def test_an_unknown_model_is_wrong_usage(source, tmp_path):
    result = fetch(tmp_path, plain(source), name="other")
    assert result.returncode == 2 and "known: m" in result.stderr


def test_two_at_once_fetch_it_once(source, tmp_path):
    manifest = plain(source)
    results = []
    threads = [threading.Thread(target=lambda: results.append(fetch(tmp_path, manifest))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.returncode for r in results] == [0, 0, 0] and source.asked == [None]
