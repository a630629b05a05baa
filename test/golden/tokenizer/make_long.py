"""Golden ids of long pieces: texts without a place to cut, or nearly so, that the kernel merges in windows.

Run:  pip install tokenizers==0.23.3
      python make_long.py          writes long.golden.json beside this file: per tokenizer one sha256 over the ids of each text

A text: pieces of the alphabet (one row of ALPHABETS), chosen by make_golden.py's generator seeded with 11, until `length` code points
are there: mode 0 one at a time; mode 1 a unit of 1 + below(70) of them, again and again; mode 2 each 1 + below(200) times.
"""
import hashlib
import json
import os

import tokenizers
from make_golden import HERE, Rng, ids_line

ALPHABETS = ["ab", "a", "abc", "etaoinshrdlu", "-", "=-", "_", "éa", "ab12", "中文字的", "、。", "a ", "\n", " ", "\t ", "ü", "0", "Aa", "\u0301a", "한국", "x✓", "eeeeeeeet", "😀👍", "▁"]
LENGTHS = [500, 513, 600, 1100, 2500, 9000]
NAMES = ["cl100k", "cl100k_nfc", "o200k", "kimi", "tekken", "deepseek", "gpt2", "gaps", "gemma", "prepend", "metaspace_first"]


def text(r, alphabet, length, mode):
    if mode == 0:
        return "".join(r.pick(alphabet) for _ in range(length))
    if mode == 1:
        unit = "".join(r.pick(alphabet) for _ in range(1 + r.below(70)))
        return (unit * (length // len(unit) + 1))[:length]
    out = ""
    while len(out) < length:
        out += r.pick(alphabet) * (1 + r.below(200))
    return out[:length]


if __name__ == "__main__":
    r = Rng(11)
    texts = [text(r, a, n, mode) for a in ALPHABETS for n in LENGTHS for mode in range(3)]
    strings = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    found = {}
    for name in NAMES:
        tok = tokenizers.Tokenizer.from_file(os.path.join(HERE, "small", name + ".json"))
        h = hashlib.sha256()
        for encoding in tok.encode_batch(texts, add_special_tokens=False):
            h.update(ids_line(encoding.ids).encode())
        found[name] = h.hexdigest()
    data = {"made_with": tokenizers.__version__, "strings_sha256": strings, "ids_sha256": found}
    with open(os.path.join(HERE, "long.golden.json"), "w", encoding="utf-8") as f:
        json.dump(data, f, indent=1)
        f.write("\n")
