"""What a proof found, kept as a page that says on which machine and from which sources.

A proof is a module of this folder with a docstring, whose first line says what it proves, and a function
prove(evidence). It adds rows, and requirements that must hold; what is required and does not hold fails the proof.
"""
import hashlib
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "evidence"
INPUTS = ["src", ":(exclude)src/page", "cmake", "CMakeLists.txt", "CMakePresets.json", "tests/reference", "tests/server.py", "tests/models.py", "tests/tools",
          "tests/requirements", "tests/peer/package-lock.json", "tests/prove/evidence.py"]


def processor():
    found = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    flags = set(re.search(r"^flags\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    sets = [name for name in ("avx2", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_int8") if name in flags]
    return f"{found[1] if found else 'unknown'}, {len(sorted(pathlib.Path('/sys/devices/system/cpu').glob('cpu[0-9]*')))} cores, {' '.join(sets)}"


def tracked(paths):
    return set(subprocess.run(["git", "ls-files", *paths], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())


def stamp(*files):
    """A hash of every source that the result depends on."""
    digest = hashlib.sha256()
    for name in sorted(tracked(INPUTS) | tracked(files)):   # apart, since what the first leaves out the second may name
        path = ROOT / name
        digest.update(name.encode() + b"\0" + (path.read_bytes() if path.is_file() else b"gone"))
    return digest.hexdigest()[:16]


class Evidence:
    def __init__(self, module, own_stamp):
        self.name = module.__name__.split(".")[-1]
        self.title, _, self.method = module.__doc__.strip().partition("\n")
        self.rows, self.failures, self.pictures, self.stamp = [], [], [], own_stamp

    @property
    def page(self):
        return PAGES / f"{self.name}.md"

    def row(self, label, **figures):
        """One line of the table; floats are shown with four significant digits."""
        self.rows.append((label, figures))
        print("  ", label, ", ".join(f"{k.replace('_', ' ')} {shown(v)}" for k, v in figures.items()), flush=True)

    def picture(self, caption, path):
        """A picture beside the page, below its table."""
        self.pictures.append((caption, path.relative_to(PAGES)))

    def require(self, holds, otherwise):
        if not holds:
            self.failures.append(otherwise)
            print("   FAILS:", otherwise, flush=True)

    def is_fresh(self):
        return self.page.exists() and f"Sources: {self.stamp}" in self.page.read_text() and "Verdict: holds" in self.page.read_text()

    def write(self, seconds):
        names = list(dict.fromkeys(k for _, figures in self.rows for k in figures))
        lines = [f"# {self.title}", "", self.method.strip(), "", f"- Verdict: {'holds' if not self.failures else 'does not hold'}",
                 f"- Machine: {processor()}", f"- Sources: {self.stamp}", f"- Took: {seconds:.0f} s", ""]
        lines += [f"- Fails: {f}" for f in self.failures] + ([""] if self.failures else [])
        lines += ["| | " + " | ".join(n.replace("_", " ") for n in names) + " |", "| --- |" + " --- |" * len(names)]
        lines += [f"| {label} | " + " | ".join(shown(figures.get(n, "")) for n in names) + " |" for label, figures in self.rows]
        for caption, path in self.pictures:
            lines += ["", f"![{caption}]({path})"]
        PAGES.mkdir(parents=True, exist_ok=True)
        self.page.write_text("\n".join(lines).replace("\n\n\n", "\n\n") + "\n")


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
