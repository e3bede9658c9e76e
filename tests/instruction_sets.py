"""Which instruction sets this machine runs natively."""
import pathlib
import re

FLAGS = {"scalar": "", "avx2": "avx2", "avx512": "avx512_vnni"}
ALL = list(FLAGS)


def native(name):
    have = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M).group(1).split())
    return not FLAGS[name] or FLAGS[name] in have
