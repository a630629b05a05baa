"""One contestant that runs on Python, in a process of its own; prints a ChildResult (see result.ts).

Run: python peer.py CONTESTANT TOKENIZER_JSON PROMPTS_JSON KIND,KIND,...
`ms` counts the ids as a Python list, `bare_ms` ends before that.
"""
import json
import sys
import time

WARM_PASSES = 4
name, file, prompts_file, order = sys.argv[1:]
with open(prompts_file) as f:
    prompts = json.load(f)

start = time.perf_counter()
if name == "fastokens":
    import fastokens
    from importlib.metadata import version
    tokenizer = fastokens.Tokenizer.from_file(file)
    encode = lambda text: tokenizer.encode(text, False)
else:
    import tokenizers
    from importlib.metadata import version
    tokenizer = tokenizers.Tokenizer.from_file(file)
    if name == "tokenizers":
        encode = lambda text: tokenizer.encode(text, add_special_tokens=False)
    else:
        encode = lambda text: tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]
load_ms = (time.perf_counter() - start) * 1e3


def checksum(total, ids):
    for i, x in enumerate(ids):
        total = (total + (i % 997 + 1) * x) % 2**45
    return total


order = order.split(",")
first = prompts[order[0]]["warm"][0]
start = time.perf_counter()
encode(first).ids
first_ms = (time.perf_counter() - start) * 1e3

ms, bare_ms, sums = {}, {}, {}
for kind in order:
    for _ in range(WARM_PASSES):
        for text in prompts[kind]["warm"]:
            encode(text).ids
    ms[kind], bare_ms[kind], total = [], [], 0
    for text in prompts[kind]["measured"]:
        start = time.perf_counter()
        encoding = encode(text)
        middle = time.perf_counter()
        ids = encoding.ids
        end = time.perf_counter()
        ms[kind].append((end - start) * 1e3)
        bare_ms[kind].append((middle - start) * 1e3)
        total = checksum(total, ids)
    sums[kind] = total
print(json.dumps({
    "version": version("fastokens" if name == "fastokens" else "tokenizers"),
    "load_ms": load_ms, "first_ms": first_ms, "ms": ms, "bare_ms": bare_ms, "sum": sums,
}))
