"""The table of a comparison in Markdown, and every run and line behind it as JSON."""
import dataclasses
import json
import time

from compare.pairs import Verdict
from compare.rows import ROWS
from prove.evidence import processor


class Report:
    """PATH.json and PATH.md, written again after every run.

    resume  goes on with what PATH.json holds, if it is of this kind of machine and of so many threads
    """

    def __init__(self, path, threads, command, resume=False):
        self.path = path
        self.facts = {"machine": processor(), "threads": threads, "commands": [command], "versions": {}}
        self.lines, self.runs = [], []
        if resume and path.with_suffix(".json").exists():
            self.take(json.loads(path.with_suffix(".json").read_text()))

    def take(self, kept):
        for fact in ("machine", "threads"):
            if kept[fact] != self.facts[fact]:
                raise ValueError(f"{self.path.with_suffix('.json')} was measured with {fact} {kept[fact]}, this is {self.facts[fact]}: name another --out")
        self.facts["commands"] = list(dict.fromkeys(kept["commands"] + self.facts["commands"]))
        self.facts["versions"], self.lines, self.runs = kept["versions"], kept["lines"], kept["runs"]

    def has(self, model, row, label, pairs):
        """A verdict from so many pairs, of whichever commit of ours; the line says of which."""
        return any((line["model"], line["row"], line["label"]) == (model, row, label) and line["verdict"] and line["pairs"] >= pairs for line in self.lines)

    def version(self, label, said):
        self.facts["versions"][label] = said
        self.keep()

    def run(self, **what):
        self.runs.append(what)
        self.keep()

    def keep(self):
        """At once, so that what was measured survives an interruption."""
        self.path.with_suffix(".json").write_text(json.dumps({**self.facts, "lines": self.lines, "runs": self.runs}, indent=1) + "\n")

    def line(self, model, row, label, verdict, why, probes, pairs):
        self.lines = [line for line in self.lines if (line["model"], line["row"], line["label"]) != (model, row.name, label)]
        self.lines.append({"model": model, "row": row.name, "title": row.title, "label": label, "verdict": verdict and dataclasses.asdict(verdict), "why": why,
                           "probes": probes, "pairs": pairs, "date": time.strftime("%Y-%m-%d"), "ours": self.facts["versions"].get("ours", "").split(" ")[-1]})
        self.keep()
        self.path.with_suffix(".md").write_text(self.text())

    def text(self):
        facts = self.facts
        out = ["# Beside other engines", "",
               "Ours and a peer's runs in turns: same file, same threads, no speculation. A ratio above 1 says that ours is better, in every",
               "row: the median of the pairs, and their quartiles. Before and after each pair the machine's limits are probed; pairs whose two",
               "probes differ by more than 15 % are left out and counted.", "",
               f"- Machine: {facts['machine']}", f"- Threads: {facts['threads']}"] + [f"- Command: `{command}`" for command in facts["commands"]]
        out += [f"- {label}: {said}" for label, said in facts["versions"].items()]
        for model in dict.fromkeys(line["model"] for line in self.lines):
            out += ["", f"## {model}", "", "| work | peer | ratio | quartiles | ours | theirs | pairs (left out) | integer dot, GOP/s | read, GB/s | of |",
                    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
            out += [shown(line) for line in self.lines if line["model"] == model]
        return "\n".join(out + ["", "## Commands", ""] + self.commands()) + "\n"

    def commands(self):
        """Of each row and side, that of its last run."""
        last = {(r["model"], r["row"], r["side"]): r["command"] for r in self.runs if "command" in r}
        return [f"- {model}, {row}, {side}: `{command}`" for (model, row, side), command in last.items()]


def shown(line):
    row, probes = ROWS[line["row"]], line["probes"]
    verdict = line["verdict"] and Verdict(**line["verdict"])
    limits = " | ".join(f"{min(p) / 1e9:.0f} to {max(p) / 1e9:.0f}" if p else "" for p in ([each[name] for each in probes] for name in ("dot", "read")))
    limits += f" | {line['ours']}, {line['date']}"
    if verdict is None:
        return f"| {line['title']} | {line['label']} | {line['why']} | | | | | {limits} |"
    figure = "{:.2f}" if row.unit == "s" else "{:.1f}"
    return (f"| {line['title']} | {line['label']} | {verdict.ratio:.2f} | {verdict.low:.2f} to {verdict.high:.2f} | {figure.format(verdict.ours)} {row.unit} | "
            f"{figure.format(verdict.theirs)} {row.unit} | {verdict.counted} ({verdict.left_out}) | {limits} |")


def plain(run):
    return dataclasses.asdict(run)
