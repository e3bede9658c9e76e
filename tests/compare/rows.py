"""What is compared: the rows of a table, each a kind of work and its size."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    name: str            # what the command line calls it
    title: str           # what the table calls it
    kind: str            # prefill, decode, start or memory
    tokens: int = 0
    depth: int = 0       # tokens that stand before
    streams: int = 1
    unit: str = "tokens/s"

    @property
    def more_is_better(self):
        return self.kind in ("prefill", "decode")

    @property
    def probe(self):
        """Which of the machine's limits must be the same before and after a pair; memory depends on none."""
        return {"prefill": "dot", "memory": None}.get(self.kind, "read")


ROWS = {row.name: row for row in (
    Row("prefill", "prefill 512", "prefill", 512),
    Row("prefill-8k", "prefill 512 at depth 8,192", "prefill", 512, depth=8192),
    Row("decode", "decode, one stream", "decode", 64),
    Row("decode-4k", "decode at depth 4,096, one stream", "decode", 64, depth=4096),
    Row("decode-8k", "decode at depth 8,192, one stream", "decode", 64, depth=8192),
    Row("streams", "decode, 8 streams together", "decode", 64, streams=8),
    Row("start", "start to first token, warm page cache", "start", unit="s"),
    Row("memory", "memory beyond the file and its keys and values", "memory", unit="MB"),
)}


def small(row):
    """The same work in little, to try the script."""
    return dataclasses.replace(row, tokens=min(row.tokens, 64) and max(8, row.tokens // 8), depth=row.depth // 16,
                               title=row.title + " (reduced)")
