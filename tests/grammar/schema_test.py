"""Answers under schemas of the kinds that programs send: what is written validates, what should be refused is."""
import json
import pathlib

import jsonschema
import pytest

import walker

CASES = json.loads((pathlib.Path(__file__).parent / "schemas.json").read_text())
WALKS = 150


@pytest.mark.parametrize("case", CASES["kept"], ids=lambda case: case["name"])
def test_what_is_written_validates(case):
    schema = case["schema"]
    valid, invalid = case.get("valid", []), case.get("invalid", [])
    texts = [json.dumps(v) for v in valid] + [json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in valid] + [json.dumps(v, indent=2) for v in valid]
    [answer] = walker.run([{"kind": "schema", "source": schema, "walks": WALKS, "seed": 5, "texts": texts + [json.dumps(v) for v in invalid]}])
    assert "refused" not in answer, answer
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    for text in answer["written"]:
        validator.validate(json.loads(text))
    assert len(answer["written"]) > WALKS * 0.6, "most walks end"
    assert all(not validator.is_valid(v) for v in invalid), "the case itself is right"
    assert [t for t, taken in zip(texts, answer["taken"]) if not taken] == []
    assert [v for v, taken in zip(invalid, answer["taken"][len(texts):]) if taken] == []


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["where"])
def test_what_cannot_be_kept_is_refused_with_its_place(case):
    [answer] = walker.run([{"kind": "schema", "source": case["schema"]}])
    assert answer.get("refused", {}).get("where", "kept").startswith(case["where"]), answer
    assert case["word"] in answer["refused"]["message"], answer
