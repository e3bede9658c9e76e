"""What the page shows, read back as numbers: each with the half step by which its digits may differ from the exact one."""
import re

UNITS = {"ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
NUMBER = r"\d[\d,]*(?:\.\d+)?"


def step_of(digits):
    return 10.0 ** -len(digits.partition(".")[2])


def value_of(digits):
    return float(digits.replace(",", ""))


def is_span(text, ns):
    """Whether text, such as "7.3 s" or "2 min 5 s", is that many nanoseconds."""
    parts = re.findall(rf"({NUMBER})\s(ms|s|min|h)\b", text)
    told = sum(value_of(digits) * UNITS[unit] for digits, unit in parts)
    return bool(parts) and ns is not None and abs(told - ns) <= 0.501 * step_of(parts[-1][0]) * UNITS[parts[-1][1]]


def is_number(text, value):
    """Whether the first number in text, such as "845 tokens/s", is that one."""
    found = re.search(NUMBER, text)
    return found is not None and value is not None and abs(value_of(found[0]) - value) <= 0.501 * step_of(found[0])


def numbers(text):
    return [value_of(each) for each in re.findall(NUMBER, text)]


def four_figures(place):
    """{name: (value, note)} of the four figures within a locator."""
    return {name: (place.locator(f"dl > .{name} .value").inner_text(), place.locator(f"dl > .{name} .note").inner_text())
            for name in ("reading", "first", "between", "writing")}


def are_gaps(value, note, gaps):
    """Whether the time between words is that of a record: two spans beside the median, or a dash where too few words came apart."""
    if gaps is None:
        return value == "–" and note == "too few words to say"
    spans = re.findall(rf"(?:{NUMBER}\s(?:ms|s|min|h)\s?)+", note)
    return is_span(value, gaps["p50"]) and len(spans) > 1 and is_span(spans[0], gaps["p99"]) and is_span(spans[-1], gaps["max"])


def are_figures_of(shown, record):
    """Whether the four figures are those of a request's record; a list of those that are not."""
    speed = record["output_tokens_per_second"]
    checks = {
        "reading": is_number(shown["reading"][0], record["prompt_tokens_per_second"]),
        "reading's tokens": is_number(shown["reading"][1], record["computed_tokens"]),
        "reading's time": is_span(shown["reading"][1], record["prompt_ns"]),
        "first": is_span(shown["first"][0], record["ttft_ns"]),
        "between": are_gaps(*shown["between"], record["gap_ns"]),
        "writing": shown["writing"][0] == "–" if speed is None else is_number(shown["writing"][0], speed),
        "writing's tokens": is_number(shown["writing"][1], record["output_tokens"]),
    }
    return [name for name, holds in checks.items() if not holds]


def colours_in(canvas, *names):
    """Of a canvas, how many pixels have the colour of that name in the style sheet, such as "--read"."""
    return canvas.evaluate("""(canvas, names) => {
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return names.map(name => {
            const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
            const [r, g, b] = [0, 2, 4].map(at => parseInt(hex.slice(at, at + 2), 16));
            let found = 0;
            for (let i = 0; i < data.length; i += 4) found += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
            return found;
        });
    }""", list(names))
