"""The house stands as ARCHITECTURE.md draws it: who includes whom, what the archives may not contain, and how files look."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
SOURCES = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".h", ".cpp"))
LIBRARIES = ROOT / "build" / "release"


def floors():
    """{folder: folders it may include} from the table in ARCHITECTURE.md."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    names = [name for name, _ in rows]
    return {name: set(names) if allowed == "everything" else {n for n in names if re.search(rf"\b{n}\b", allowed)} for name, allowed in rows}


def test_the_table_names_every_folder_and_no_other():
    assert set(floors()) == {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}


@pytest.mark.parametrize("folder", sorted(floors()))
def test_a_folder_includes_only_what_the_table_allows(folder):
    allowed = floors()[folder] | {folder}
    wrong = []
    for path in SOURCES:
        if path.relative_to(ROOT / "src").parts[0] == folder:
            for include in re.findall(r'^#include "(\w+)/', path.read_text(), re.M):
                if include not in allowed:
                    wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not wrong


# Symbols of clocks, threads, files and randomness: what would make the same calls give other bytes.
BANNED = re.compile(r"\b(clock_gettime|gettimeofday|time@|nanosleep|pthread_create|pthread_mutex|fopen|fread|fwrite|open64|getrandom|rand@|random_device|"
                    r"_ZNSt6chrono3_V212steady_clock3now|_ZNSt6thread|_ZNSt6chrono3_V212system_clock3now)")


@pytest.mark.parametrize("floor", ["flow", "kv", "draft", "sched"])
def test_the_archives_of_the_policy_know_no_clock_thread_file_or_chance(floor):
    archive = next(LIBRARIES.rglob(f"libcadans_{floor}.a"), None)
    if archive is None:
        pytest.skip(f"{floor} has only headers")
    symbols = subprocess.run(["nm", "-u", str(archive)], capture_output=True, text=True, check=True).stdout
    assert not BANNED.findall(symbols)


def test_the_kernels_of_an_instruction_set_define_no_symbol_that_others_could_be_given():
    """The linker keeps one copy of an ordinary inline function; the copy of a newer instruction set must not be it."""
    archive = next(LIBRARIES.rglob("libcadans_kernels.a"), None)
    if archive is None:
        pytest.skip("kernels are not built")
    listing = subprocess.run(["nm", "--defined-only", "-A", str(archive)], capture_output=True, text=True, check=True).stdout
    wrong = []
    for unit, kind, symbol in re.findall(r"^[^:]*:([^:]*):\S* ?([A-Za-z]) (\S+)$", listing, re.M):
        isa = next((name for name in ("avx512", "avx2") if name in unit), None)
        if isa and kind in "WVu" and isa not in symbol:
            wrong.append(f"{unit}: {symbol}")
    assert not wrong, wrong[:10]


def test_every_folder_says_what_it_is():
    assert not [p.name for p in (ROOT / "src").iterdir() if p.is_dir() and not (p / "README.md").exists()]


def test_headers_begin_with_their_idea_and_guard_themselves():
    wrong = []
    for path in SOURCES:
        if path.suffix == ".h":
            lines = path.read_text().splitlines()
            if not lines or not lines[0].startswith("// ") or "#pragma once" not in lines:
                wrong.append(str(path.relative_to(ROOT)))
    assert not wrong


def test_nothing_is_left_to_do_and_no_macro_is_ours():
    wrong = []
    for path in SOURCES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line) or (re.match(r"\s*#\s*define\b", line) and path.name != "platform.h"):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not wrong


def test_locks_exist_where_the_house_says():
    """Two files hold locks of the request's way; base holds the pool's, serve and metrics are named with their reason in their README."""
    holders = {p.relative_to(ROOT / "src").as_posix() for p in SOURCES if re.search(r"std::(mutex|shared_mutex|condition_variable)\b", p.read_text())
               and not p.name.endswith("_test.cpp")}
    assert {h for h in holders if h.split("/")[0] in ("flow", "kv", "sched", "engine", "model", "kernels")} == set()


@pytest.mark.slow
def test_every_file_is_formatted():
    tool = shutil.which("clang-format-14")
    if tool is None:
        pytest.skip("clang-format-14 is not installed")
    result = subprocess.run([tool, "--dry-run", "-Werror", *map(str, SOURCES)], capture_output=True, text=True, cwd=ROOT)
    named = sorted(set(re.findall(r"(src/\S+?):\d+", result.stderr)))
    assert result.returncode == 0, named


def test_nothing_names_a_machine_of_its_makers():
    """No file of the project holds a path of somebody's home or workplace."""
    listed = subprocess.run(["git", "ls-files", "src", "tools", "docs", "cmake", "README.md", "ARCHITECTURE.md", "Makefile"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    wrong = [name for name in listed.stdout.split() if (ROOT / name).is_file() and re.search(r"(?<![\w.])/(work|root)/", (ROOT / name).read_text(errors="replace"))]
    assert not wrong
