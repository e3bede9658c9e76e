"""Programs that measure themselves: cadans bench, a bench like llama-bench, and node-llama-cpp through its own script.

Each has offers(row) and measure(row, model, threads), which gives a Run.
"""
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess

from server import BINARY, ROOT

LIMIT_S = 1800


@dataclasses.dataclass
class Run:
    value: float
    command: str
    raw: dict          # what the program said


class Failed(Exception):
    pass


def run(command):
    """Text that a command printed; what it complains is shown where it fails."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=LIMIT_S)
    if done.returncode:
        raise Failed(f"{shlex.join(map(str, command))} ended with {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


class CadansBench:
    def __init__(self, binary=BINARY):
        self.binary = binary

    def version(self):
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        return f"{run([self.binary, '--version']).strip()} {commit}".strip()

    def offers(self, row):
        return row.kind in ("prefill", "decode")

    def command(self, row, model, threads):
        prompt, generate = (row.tokens, 0) if row.kind == "prefill" else (0, row.tokens)
        return [self.binary, "bench", "--model", model, "--threads", threads, "--prompt", prompt, "--generate", generate, "--depth", row.depth,
                "--batch", row.streams, "--repeat", 1, "--json"]

    def measure(self, row, model, threads):
        command = self.command(row, model, threads)
        record = json.loads(run(command))[0]
        return Run(record["tokens_per_second"]["median"], shlex.join(map(str, command)), record)

    def probe(self, model, threads):
        """The machine's limits at this moment: {"dot": operations a second, "read": bytes a second}."""
        record = json.loads(run([self.binary, "bench", "--model", model, "--threads", threads, "--prompt", 0, "--generate", 1, "--repeat", 1, "--json"]))[0]
        return {"dot": record["limits"]["dot_operations_per_second"], "read": record["limits"]["read_bytes_per_second"]}


class LlamaBench:
    """A binary with llama-bench's options. Depth is -d where there is such an option, else -gp, which decodes behind a prompt."""

    def __init__(self, command):
        self.words = shlex.split(command)
        # Its help may come with an exit status.
        self.help = subprocess.run([self.words[0], "--help"], capture_output=True, text=True, errors="replace", timeout=60)
        self.help = self.help.stdout + self.help.stderr
        self.has_depth, self.has_behind = "--n-depth" in self.help, "-gp <" in self.help
        self.said_version = "not run yet"

    def version(self):
        return self.said_version

    def offers(self, row):
        if row.kind not in ("prefill", "decode") or row.streams > 1:
            return False
        return row.depth == 0 or self.has_depth or (self.has_behind and row.kind == "decode")

    def command(self, row, model, threads):
        size = ["-p", row.tokens, "-n", 0] if row.kind == "prefill" else ["-p", 0, "-n", row.tokens]
        if row.depth and self.has_depth:
            size += ["-d", row.depth]
        elif row.depth:
            size = ["-p", 0, "-n", 0, "-gp", f"{row.depth},{row.tokens}"]
        return [self.words[0], "-m", model, "-t", threads, *size, "-r", 1, "-o", "json", *self.words[1:]]

    def measure(self, row, model, threads):
        command = self.command(row, model, threads)
        said = run(command)
        records = json.loads(said[said.index("["):])
        record = next(r for r in records if (r["n_gen"] > 0) == (row.kind == "decode"))
        self.said_version = f"build {record.get('build_number')} ({record.get('build_commit')})"
        return Run(record["avg_ts"], shlex.join(map(str, command)), record)


class NodeLlama:
    """node-llama-cpp as tests/peer installs it; no network once it is there."""
    FOLDER = ROOT / "tests" / "peer"

    def __init__(self):
        node = ROOT / ".venv" / "bin" / "node"
        self.node = str(node) if node.exists() else "node"
        if not (self.FOLDER / "node_modules" / "node-llama-cpp").is_dir():
            raise Failed("node-llama-cpp is not installed (tools/setup test)")

    def version(self):
        def said(name):
            return json.loads((self.FOLDER / "node_modules" / name).read_text())
        release = said("node-llama-cpp/llama/binariesGithubRelease.json") if (
            self.FOLDER / "node_modules/node-llama-cpp/llama/binariesGithubRelease.json").exists() else {}
        return f"node-llama-cpp {said('node-llama-cpp/package.json')['version']}, llama.cpp {release.get('release', 'of that package')}"

    def offers(self, row):
        return row.kind in ("prefill", "decode")

    def measure(self, row, model, threads):
        job = {"model": str(pathlib.Path(model).resolve()), "threads": threads, "kind": row.kind, "tokens": row.tokens, "depth": row.depth,
               "streams": row.streams}
        command = [self.node, str(self.FOLDER / "bench.mjs"), json.dumps(job)]
        record = json.loads(run(command).splitlines()[-1])
        return Run(record["tokens_per_second"], shlex.join(command).replace(str(ROOT) + os.sep, ""), record)
