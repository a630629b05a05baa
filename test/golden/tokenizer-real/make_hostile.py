"""Golden ids of the Rust `tokenizers` library for hostile texts, with real tokenizers and the small ones of this folder and of ../tokenizer.

Run:  pip install tokenizers==0.23.3
      npm run fixtures                               prints FOLDER
      python make_hostile.py FOLDER [NAME ...]       writes hostile.golden.json, or the named tokenizers' rows of it (half an hour for all)

  texts     name: [unit, times]; the unit "SPECIALS" is all special tokens of the tokenizer one after the other. U+FFFD stands for a lone
            surrogate, which a Python string for Rust can not hold
  ids       tokenizer: {text: [number of ids, sha256 cut to 32 digits over the ids as a line [1,2,3] and a newline]}; null where the
            library took more than LIMIT seconds
"""
import json
import multiprocessing
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
from make_real import ORIGINS, dump, ids_line, sha  # noqa: E402

LIMIT = 120
K = 1 << 18
BIG = {"10 MB of a letter": ["a", 10_000_000], "1 MB of marks": ["\u0301\u0323\u0327\u0345", 131072], "specials": ["SPECIALS", 100_000]}
UNITS = {
    "letter": "a", "capital": "A", "alternating": "ab", "cases": "aA", "cases back": "Aa", "modifiers": "\u02b0", "accent": "\u00e9", "decomposed": "e\u0301",
    "marks": "\u0301\u0323\u0327\u0345", "same mark": "\u0301", "hangul": "\u1100\u1161\u11a8", "han": "\u7684", "kana": "\u3042", "thai": "\u0e01\u0e49",
    "digit": "7", "digits": "1234567890", "spaces": " ", "newlines": "\n", "returns": "\r\n", "tabs": "\t", "wide spaces": "\u3000", "space and letter": " a",
    "nul": "\0", "surrogates": "\ufffd", "joiners": "\U0001f469\u200d", "flags": "\U0001f1e9\U0001f1ea", "punctuation": "!", "signs": "=-", "contractions": "'s",
    "half contractions": "'", "metaspace": "\u2581", "opened": "<", "half a special": "<|en", "half a tag": "<think", "byte token": "<0x0A>", "ligature": "\ufb01",
    "unassigned": "\U000e0fff", "private": "\ue000", "supplement": "\U00020000", "slash": "/", "code": "{}();\n\t", "long mixed": "a\u0301 1\u7684\n'S\u3000<|\U0001f469\u200d",
}
TEXTS = {**BIG, **{name: [u, max(1, K // len(u.encode("utf-8")))] for name, u in UNITS.items()}}


def names(folder):
    """Paths by name; two have the name wordpiece, so it goes with its folder's."""
    real = {"real/" + n: os.path.join(folder, "tokenizers", n + ".json") for n in ORIGINS if not ORIGINS[n].startswith("ours")}
    own = {"own/" + f[:-5]: os.path.join(HERE, "small", f) for f in sorted(os.listdir(os.path.join(HERE, "small")))}
    small = os.path.join(HERE, "..", "tokenizer", "small")
    return {**real, **own, **{"small/" + f[:-5]: os.path.join(small, f) for f in sorted(os.listdir(small))}}


def text(rule, specials):
    unit, times = rule
    return "".join(specials) * (times // len(specials)) if unit == "SPECIALS" else unit * times


def work(path, name, out):
    import tokenizers

    with open(path, encoding="utf-8") as f:
        raw = f.read()
    tok = tokenizers.Tokenizer.from_str(raw)
    tok.no_truncation()
    tok.no_padding()
    ids = tok.encode(text(TEXTS[name], [t["content"] for t in json.loads(raw)["added_tokens"] if t["special"]]), add_special_tokens=False).ids
    out.put([len(ids), sha([ids_line(ids)])])


def row(path, name):
    out = multiprocessing.Queue()
    p = multiprocessing.Process(target=work, args=(path, name, out))
    p.start()
    try:
        return out.get(timeout=LIMIT)
    except Exception:
        return None
    finally:
        p.kill()
        p.join()


if __name__ == "__main__":
    import tokenizers

    file = os.path.join(HERE, "hostile.golden.json")
    ids = json.load(open(file, encoding="utf-8"))["ids"] if os.path.exists(file) else {}
    paths = names(sys.argv[1])
    for tokenizer in sys.argv[2:] or paths:
        ids[tokenizer] = {name: row(paths[tokenizer], name) for name in TEXTS}
        print(tokenizer, [name for name, v in ids[tokenizer].items() if v is None], flush=True)
        dump({"made_with": {"tokenizers": tokenizers.__version__}, "texts": TEXTS, "ids": dict(sorted(ids.items()))}, file, ("texts",), ("ids",))
