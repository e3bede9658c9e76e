"""Ours beside other engines on this machine, in turns: the table of what is how many times as fast, with its spread.

    tools/compare_peers --model FILE [--model FILE ...]
        --bench  'LABEL: PROGRAM FLAGS'     a program with llama-bench's options; -m, -t, -p, -n, -r, -o are added
        --server 'LABEL: PROGRAM FLAGS'     a server; {model}, {port}, {threads}, {context} and {slots} are filled in
        --node                              node-llama-cpp, as tools/setup test installs it
        [--rows prefill,decode,...] [--pairs 11] [--threads N] [--small] [--resume] [--out docs/performance/peers]

The same label on a bench and a server is one peer. Ours is measured as the peer is: bench beside bench, server beside
server. Every run is kept in OUT.json while it goes on; OUT.md is the table. The whole takes hours: Ctrl-C ends it, and --resume goes
on with what OUT.json lacks; each line says of which commit it is. Nothing else should run meanwhile.
"""
import argparse
import os
import pathlib
import shlex
import sys
import time

from compare import servers
from compare.benches import CadansBench, Failed, LlamaBench, NodeLlama
from compare.pairs import Pair, first_is_ours, judge
from compare.report import Report, plain
from compare.rows import ROWS, small
from server import ROOT


def arguments(words):
    parser = argparse.ArgumentParser(prog="tools/compare_peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", required=True, type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--bench", action="append", default=[], metavar="LABEL: COMMAND")
    parser.add_argument("--server", action="append", default=[], metavar="LABEL: COMMAND")
    parser.add_argument("--node", action="store_true")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--small", action="store_true", help="less of everything, to see that it works")
    parser.add_argument("--resume", action="store_true", help="keep the lines that OUT.json has of this kind of machine, measure the others")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "performance" / "peers")
    given = parser.parse_args(words)
    unknown = [name for name in given.rows.split(",") if name not in ROWS]
    if unknown:
        parser.error(f"no such rows: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    for model in given.model:
        if not model.is_file():
            parser.error(f"{model}: no such file")
    return given


def split(labelled):
    label, colon, command = labelled.partition(":")
    if not colon or not command.strip():
        raise Failed(f"'{labelled}': expected 'LABEL: COMMAND'")
    return label.strip(), command.strip()


def peers_of(given):
    """{label: [its sides]}, benches first."""
    peers = {}
    for labelled in given.bench:
        label, command = split(labelled)
        peers.setdefault(label, []).append(LlamaBench(command))
    if given.node:
        peers.setdefault("node-llama-cpp", []).append(NodeLlama())
    for labelled in given.server:
        label, command = split(labelled)
        peers.setdefault(label, []).append(servers.ServerSide(command))
    if not peers:
        raise Failed("no peer is named: --bench, --server or --node")
    return peers


class Comparison:
    def __init__(self, given, report):
        self.given, self.report = given, report
        self.bench, self.server = CadansBench(), servers.ServerSide(servers.OURS, ready="/health/ready")

    def ours(self, row, side):
        """Our way to measure a row beside that side: ours has a depth where a peer must go through its server."""
        return self.bench if self.bench.offers(row) and (not isinstance(side, servers.ServerSide) or row.streams == 1) else self.server

    def row(self, model, row, label, sides):
        side = next((each for each in sides if each.offers(row)), None)
        if side is None:
            return self.report.line(model.stem, row, label, None, "its programs do not offer it", [], self.given.pairs)
        ours, pairs, probes, why = self.ours(row, side), [], [self.bench.probe(model, self.given.threads)], "no pair was settled"
        try:
            if row.kind in ("start", "memory"):   # what a first start of all keeps is not to be counted
                self.once(model, row, "ours", ours, None)
                self.once(model, row, label, side, None)
            for number in range(self.given.pairs):
                order = [("ours", ours), (label, side)]
                values = {name: self.once(model, row, name, each, number) for name, each in (order if first_is_ours(number) else order[::-1])}
                probes.append(self.bench.probe(model, self.given.threads))
                before, after = (each[row.probe] if row.probe else 1 for each in probes[-2:])
                pairs.append(Pair(values["ours"], values[label], before, after))
        except Failed as failed:
            why = str(failed)
            print(f"compare: {why}", file=sys.stderr)
        self.report.version(label, side.version())
        self.report.line(model.stem, row, label, judge(pairs, row.more_is_better), why.replace("|", "/").replace("\n", " ")[:200], probes, self.given.pairs)

    def once(self, model, row, name, side, number):
        began = time.strftime("%H:%M:%S")
        run = side.measure(row, model, self.given.threads)
        print(f"compare: {model.stem}, {row.title}, {name}: {run.value:.2f} {row.unit}", file=sys.stderr, flush=True)
        self.report.run(model=model.stem, row=row.name, side=name, pair=number, began=began, **plain(run))
        return run.value


def main(words):
    given = arguments(words)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        report = Report(given.out, given.threads, shlex.join(["tools/compare_peers", *words]), given.resume)
        peers, comparison = peers_of(given), Comparison(given, report)
        report.version("ours", comparison.bench.version())
        for model in given.model:
            for name in given.rows.split(","):
                for label, sides in peers.items():
                    if given.resume and report.has(model.stem, name, label, given.pairs):
                        continue
                    comparison.row(model, small(ROWS[name]) if given.small else ROWS[name], label, sides)
    except (Failed, ValueError) as failed:
        print(f"compare: {failed}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ncompare: interrupted; --resume goes on from here", file=sys.stderr)
        return 130
    print(report.text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
