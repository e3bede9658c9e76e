"""Pairs of runs, ours and a peer's, in turns; which of them count, and what they say."""
import dataclasses
import statistics

SETTLED = 0.15    # two probes further apart than this share of the larger: the machine changed in between


@dataclasses.dataclass
class Pair:
    ours: float
    theirs: float
    before: float    # the probe that the row asks for, before the pair and after it
    after: float

    @property
    def settled(self):
        return abs(self.before - self.after) <= SETTLED * max(self.before, self.after)


@dataclasses.dataclass
class Verdict:
    """ratio is above 1 where ours is better, whatever the unit."""
    ratio: float
    low: float       # quartiles
    high: float
    ours: float
    theirs: float
    counted: int
    left_out: int    # pairs whose probes differ


def first_is_ours(number):
    """Who begins changes from pair to pair, so that neither always runs on a warmed-up or a tired machine."""
    return number % 2 == 0


def quartile(values, share):
    """Linear between neighbours."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def judge(pairs, more_is_better):
    """The Verdict of the settled pairs, or of none: None."""
    good = [p for p in pairs if p.settled and p.ours > 0 and p.theirs > 0]
    if not good:
        return None
    ratios = [p.ours / p.theirs if more_is_better else p.theirs / p.ours for p in good]
    return Verdict(statistics.median(ratios), quartile(ratios, 0.25), quartile(ratios, 0.75), statistics.median(p.ours for p in good),
                   statistics.median(p.theirs for p in good), len(good), len(pairs) - len(good))
