"""Asks xgrammar whether it takes the structural tags of structural-tags.ts, and which texts they let through.

Run:  pip install xgrammar==0.2.9   (0.2.8, which vLLM 0.32 has, says the same)
      node scripts/bun.mjs run test/golden/tools/structural-tags.ts | python test/golden/tools/check_tags.py [--write structural-tags.json]
"""
import importlib.metadata
import json
import sys

import xgrammar
from xgrammar.testing import _is_grammar_accept_string as accepts

cases = json.load(sys.stdin)
bad = 0
for case in cases:
    try:
        grammar = xgrammar.Grammar.from_structural_tag(case["tag"])
    except Exception as e:
        print(case["name"], "does not compile:", str(e)[:300])
        bad += 1
        continue
    for wanted, texts in ((True, case["accepts"] + case.get("takesToo", []) + [text for text, _ in case.get("answers", [])] + [t for t in [case["simulated"]] if t is not None]), (False, case["rejects"])):
        for text in texts:
            if accepts(grammar, text) is not wanted:
                bad += 1
                print(case["name"], "refuses" if wanted else "takes", repr(text))
print(len(cases), "tags,", bad, "wrong")
if len(sys.argv) == 3 and not bad:
    made_with = {"xgrammar": importlib.metadata.version("xgrammar")}
    json.dump({"made_with": made_with, "cases": cases}, open(sys.argv[2], "w", encoding="utf-8"), ensure_ascii=False, indent=1)
sys.exit(bool(bad))
