"""The official JSON Schema Test Suite: every schema is kept or refused, and what is written always validates."""
import collections
import json

import jsonschema
import pytest

import walker

DRAFTS = {"draft7": (jsonschema.Draft7Validator, "http://json-schema.org/draft-07/schema#"),
          "draft2020-12": (jsonschema.Draft202012Validator, "https://json-schema.org/draft/2020-12/schema")}
WALKS = 10


def cases(draft):
    for path in sorted((walker.suite() / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": DRAFTS[draft][1], **schema}
            yield path.stem, group["description"], schema, group["tests"]


def in_order(value, schema):
    """The value with its names in the order of the schema's properties, which is how it would be written."""
    if isinstance(value, dict) and isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        order = list(schema["properties"])
        return dict(sorted(value.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))
    return value


@pytest.mark.slow
@pytest.mark.parametrize("draft", sorted(DRAFTS))
def test_every_schema_is_kept_or_refused(draft):
    listed = list(cases(draft))
    jobs = [{"kind": "schema", "source": schema, "walks": WALKS, "seed": n, "open": is_open, "texts": [json.dumps(in_order(t["data"], schema)) for t in tests]}
            for n, (_, _, schema, tests) in enumerate(listed) for is_open in (True, False)]
    counts, wrong, refusals, narrower = collections.Counter(), [], collections.Counter(), []
    answers = walker.run(jobs)
    for n, (file, title, schema, tests) in enumerate(listed):
        opened, closed = answers[2 * n], answers[2 * n + 1]
        counts["schemas"] += 1
        if "refused" in opened:
            counts["refused"] += 1
            assert opened["refused"]["where"].startswith("#") and opened["refused"]["message"], (file, title, opened)
            refusals[file] += 1
            continue
        counts["kept"] += 1
        validator = DRAFTS[draft][0](schema)
        for answer in (opened, closed):
            for text in answer.get("written", []):
                counts["written"] += 1
                if not validator.is_valid(json.loads(text)):
                    wrong.append((file, title, "wrote", text))
        for test, taken, narrow in zip(tests, opened["taken"], closed.get("taken", [False] * len(tests))):
            kind = "valid" if test["valid"] else "invalid"
            counts[f"{kind} instances"] += 1
            counts[f"{kind} taken"] += taken
            if (taken or narrow) and not test["valid"]:
                wrong.append((file, title, "took", test["data"]))
            if not taken and test["valid"]:
                narrower.append((file, title, test["description"]))
    print(f"\n{draft}: {dict(counts)}\nrefused by file: {dict(refusals)}")
    for line in narrower:
        print("valid but not written:", *line, sep=" | ")
    assert not wrong, (len(wrong), wrong[:10])
    assert counts["invalid taken"] == 0 and counts["kept"] >= 170, "fewer schemas are kept than were"
    assert counts["valid taken"] > 0.8 * counts["valid instances"]
