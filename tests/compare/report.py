"""The table of a comparison in Markdown, and every run behind it as JSON."""
import dataclasses
import json
import time

from prove.evidence import processor


class Report:
    def __init__(self, path, threads, command):
        self.path, self.command = path, command
        self.facts = {"machine": processor(), "date": time.strftime("%Y-%m-%d"), "threads": threads, "versions": {}}
        self.lines, self.runs = [], []

    def version(self, label, said):
        self.facts["versions"][label] = said
        self.keep()

    def run(self, **what):
        self.runs.append(what)
        self.keep()

    def keep(self):
        """At once, so that what was measured survives an interruption."""
        self.path.with_suffix(".json").write_text(json.dumps({**self.facts, "command": self.command, "runs": self.runs}, indent=1) + "\n")

    def line(self, model, row, label, verdict, why, probes):
        self.lines.append({"model": model, "row": row, "label": label, "verdict": verdict, "why": why, "probes": probes})
        self.path.with_suffix(".md").write_text(self.text())

    def text(self):
        facts = self.facts
        out = ["# Beside other engines", "",
               "Ours and a peer's runs in turns: same file, same threads, no speculation. A ratio above 1 says that ours is better, in every",
               "row: the median of the pairs, and their quartiles. Before and after each pair the machine's limits are probed; pairs whose two",
               "probes differ by more than 15 % are left out and counted.", "",
               f"- Machine: {facts['machine']}", f"- Date: {facts['date']}", f"- Threads: {facts['threads']}", f"- Command: `{self.command}`"]
        out += [f"- {label}: {said}" for label, said in facts["versions"].items()]
        for model in dict.fromkeys(line["model"] for line in self.lines):
            out += ["", f"## {model}", "", "| work | peer | ratio | quartiles | ours | theirs | pairs (left out) | integer dot, GOP/s | read, GB/s |",
                    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
            out += [shown(line) for line in self.lines if line["model"] == model]
        return "\n".join(out + ["", "## Commands", ""] + self.commands()) + "\n"

    def commands(self):
        """Of each row and side, that of its last run."""
        last = {(r["model"], r["row"], r["side"]): r["command"] for r in self.runs if "command" in r}
        return [f"- {model}, {row}, {side}: `{command}`" for (model, row, side), command in last.items()]


def shown(line):
    verdict, row, probes = line["verdict"], line["row"], line["probes"]
    limits = " | ".join(f"{min(p) / 1e9:.0f} to {max(p) / 1e9:.0f}" if p else "" for p in ([each[name] for each in probes] for name in ("dot", "read")))
    if verdict is None:
        return f"| {row.title} | {line['label']} | {line['why']} | | | | | {limits} |"
    figure = "{:.2f}" if row.unit == "s" else "{:.1f}"
    return (f"| {row.title} | {line['label']} | {verdict.ratio:.2f} | {verdict.low:.2f} to {verdict.high:.2f} | {figure.format(verdict.ours)} {row.unit} | "
            f"{figure.format(verdict.theirs)} {row.unit} | {verdict.counted} ({verdict.left_out}) | {limits} |")


def plain(run):
    return dataclasses.asdict(run)
