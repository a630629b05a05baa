"""Golden ids and decodes of the Rust `tokenizers` library, for strings that any language can generate again.

Run:  pip install tokenizers==0.23.3
      python make_golden.py NAME=path/to/tokenizer.json[=origin] ...       writes NAME.golden.json beside this file
      python make_golden.py --check NAME=path/to/tokenizer.json            compares a stored file with a fresh run

Fields of a file
  batches  per 1,000 strings: sha256 over the strings (each with a newline) and over the ids (each list as [1,2,3] and a newline)
  cases    strings with their ids, special tokens not added; `plain` where special tokens as text (encode_special_tokens) give others
  decode   id sequences (broken UTF-8 and ids outside the vocabulary among them) with their text; `skip` without special tokens

The generator (strings.ts is its twin in TypeScript)
  rng    mulberry32, state s (32 bit): s += 0x6D2B79F5; t = s; t = imul(t ^ t>>>15, t | 1); t ^= t + imul(t ^ t>>>7, t | 61);
         output (t ^ t>>>14) as unsigned 32 bit. below(n) = floor(output * n / 2^32).
  table  parts.json: `classes` (order matters) and `parts[class]`.
  kinds  the classes in order, then: digits, hex, repeat, marked, random, special, broken.
  string main = below(kinds); n = 1 + below(12); if below(50) == 0: n = 80 + below(160)
         n times: kind = main if below(3) > 0 else below(kinds); append part(kind);
                  g = below(8): 0..2 append " "; 3 append "\\n"; 4 append parts.space[below]; 5..7 nothing
  part   class     parts[class][below(len)]
         digits    1 + below(12) times the character "0" + below(10)
         hex       4 + below(60) times HEX[below(64)], HEX = A-Z a-z 0-9 + /
         repeat    c = CHARS[below(len(CHARS))], 1 + below(64) times
         marked    1 + below(4) times: parts.latin[below], then parts.marks[below]
         random    1 + below(8) code points, each: r = below(10): r<4: 1 + below(0xD7FF); r<5: 0xE000 + below(0x2000);
                   r<8: 0x10000 + below(0x10000); r<9: 0x20000 + below(0x20000); else 0x10000 + below(0x100000)
         special   specials[below(len)]; none if there are no specials
         broken    x = specials[below(len)] (in code points), its first below(len(x)) code points; none without specials
Strings of all batches come from one stream: batch after batch, seeded once with `seed`.
"""
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = json.load(open(os.path.join(HERE, "parts.json"), encoding="utf-8"))
PARTS, CLASSES = TABLE["parts"], TABLE["classes"]
KINDS = CLASSES + ["digits", "hex", "repeat", "marked", "random", "special", "broken"]
HEX = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
CHARS = ["a", " ", "\n", "=", "-", "1", "あ", "é", "👍", "\t", "A", "한", ".", "!", "\u0301", "\u3000", "_", "<", "ש", "x"]
M = 0xFFFFFFFF


class Rng:
    def __init__(self, seed):
        self.s = seed & M

    def next(self):
        self.s = t = (self.s + 0x6D2B79F5) & M
        t = ((t ^ (t >> 15)) * (t | 1)) & M
        t ^= (t + (((t ^ (t >> 7)) * (t | 61)) & M)) & M
        return (t ^ (t >> 14)) & M

    def below(self, n):
        return (self.next() * n) >> 32

    def pick(self, a):
        return a[self.below(len(a))]


def part(r, kind, specials):
    if kind in PARTS:
        return r.pick(PARTS[kind])
    if kind == "digits":
        return "".join(chr(48 + r.below(10)) for _ in range(1 + r.below(12)))
    if kind == "hex":
        return "".join(HEX[r.below(64)] for _ in range(4 + r.below(60)))
    if kind == "repeat":
        c = r.pick(CHARS)
        return c * (1 + r.below(64))
    if kind == "marked":
        out = ""
        for _ in range(1 + r.below(4)):
            out += r.pick(PARTS["latin"])
            out += r.pick(PARTS["marks"])
        return out
    if kind == "random":
        out = ""
        for _ in range(1 + r.below(8)):
            k = r.below(10)
            if k < 4:
                out += chr(1 + r.below(0xD7FF))
            elif k < 5:
                out += chr(0xE000 + r.below(0x2000))
            elif k < 8:
                out += chr(0x10000 + r.below(0x10000))
            elif k < 9:
                out += chr(0x20000 + r.below(0x20000))
            else:
                out += chr(0x10000 + r.below(0x100000))
        return out
    if not specials:
        return ""
    x = r.pick(specials)
    return x if kind == "special" else x[: r.below(len(x))]


def string(r, specials):
    main = r.below(len(KINDS))
    n = 1 + r.below(12)
    if r.below(50) == 0:
        n = 80 + r.below(160)
    out = []
    for _ in range(n):
        kind = KINDS[main] if r.below(3) > 0 else KINDS[r.below(len(KINDS))]
        out.append(part(r, kind, specials))
        g = r.below(8)
        if g < 3:
            out.append(" ")
        elif g == 3:
            out.append("\n")
        elif g == 4:
            out.append(r.pick(PARTS["space"]))
    return "".join(out)


def sha(lines):
    h = hashlib.sha256()
    for line in lines:
        h.update(line.encode("utf-8"))
    return h.hexdigest()


def ids_line(ids):
    return "[" + ",".join(map(str, ids)) + "]\n"


def build(path, origin, seed, sizes):
    import tokenizers

    batches, n_cases, n_decodes = sizes
    raw = open(path, "rb").read()
    tok = tokenizers.Tokenizer.from_file(path)
    tok.no_truncation()
    tok.no_padding()
    added = json.loads(raw)["added_tokens"]
    every = [t["content"] for t in added]
    specials = every if len(every) <= 24 else [every[i * len(every) // 24] for i in range(24)]
    enc = lambda s: tok.encode(s, add_special_tokens=False).ids

    r = Rng(seed)
    hashes = []
    for _ in range(batches):
        strings = [string(r, specials) for _ in range(1000)]
        ids = [e.ids for e in tok.encode_batch(strings, add_special_tokens=False)]
        hashes.append({"strings_sha256": sha(s + "\n" for s in strings), "ids_sha256": sha(map(ids_line, ids))})

    r = Rng(seed + 1)
    cases = []
    while len(cases) < n_cases:
        s = string(r, specials)
        if len(s) <= 300:
            cases.append({"s": s, "ids": enc(s)})
    tok.encode_special_tokens = True
    for case in cases:
        plain = enc(case["s"])
        if plain != case["ids"]:
            case["plain"] = plain
    tok.encode_special_tokens = False

    top = max(tok.get_vocab(with_added_tokens=True).values()) + 1
    special_ids = [t["id"] for t in added if t["special"]]
    r = Rng(seed + 2)
    # ids whose own decode holds U+FFFD: parts of UTF-8 sequences (and the real U+FFFD)
    broken = [i for i in range(top) if "\ufffd" in tok.decode([i], skip_special_tokens=False)][:4000]
    decodes = []
    for k in range(n_decodes):
        n = 1 + r.below(24)
        if k % 4 == 0 and broken:
            ids = [r.pick(broken) if r.below(3) else r.below(top) for _ in range(n)]
        elif k % 4 == 1:
            s = enc(string(r, specials)) or [0]
            a = r.below(len(s))
            ids = s[a : a + n]
        elif k % 4 == 2:
            ids = []
            for kind in ("emoji", "marks", "chinese", "random"):
                x = enc(part(r, kind, specials))
                ids += x[r.below(len(x) + 1) :] + x[: r.below(len(x) + 1)]
            ids = ids[:40] or [0]
        else:
            ids = [r.below(top + 20) if r.below(4) == 0 else r.below(top) for _ in range(n)]
            if special_ids:
                ids.insert(r.below(len(ids) + 1), r.pick(special_ids))
        row = {"ids": ids, "keep": tok.decode(ids, skip_special_tokens=False)}
        skip = tok.decode(ids, skip_special_tokens=True)
        if skip != row["keep"]:
            row["skip"] = skip
        decodes.append(row)
    return {
        "tokenizer": origin,
        "file_sha256": hashlib.sha256(raw).hexdigest(),
        "made_with": {"tokenizers": tokenizers.__version__, "python": sys.version.split()[0]},
        "seed": seed,
        "specials": specials,
        "vocab_size": top,
        "batches": hashes,
        "cases": cases,
        "decode": decodes,
    }


def dump(data, path):
    one = lambda x: json.dumps(x, ensure_ascii=True, separators=(",", ":"))
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n")
        for k, v in data.items():
            rows = "[\n" + ",\n".join(map(one, v)) + "\n]" if k in ("batches", "cases", "decode") else one(v)
            f.write(one(k) + ": " + rows + (",\n" if k != "decode" else "\n"))
        f.write("}\n")


if __name__ == "__main__":
    args = sys.argv[1:]
    opt = lambda name, d: int(args[args.index(name) + 1]) if name in args else d
    seed = opt("--seed", 20261129)
    sizes = (opt("--batches", 5), opt("--cases", 60), opt("--decodes", 80))
    bad = 0
    for a in args:
        if "=" not in a:
            continue
        name, path, *rest = a.split("=")
        stored = os.path.join(HERE, name + ".golden.json")
        if "--check" in args:
            old = json.load(open(stored, encoding="utf-8"))
            new = build(path, old["tokenizer"], old["seed"], [len(old[k]) for k in ("batches", "cases", "decode")])
            differ = [k for k in old if k != "made_with" and old[k] != new[k]]
            bad += bool(differ)
            print(name, "differs in " + ", ".join(differ) if differ else "equal")
        else:
            dump(build(path, rest[0] if rest else name, seed, sizes), stored)
            print(name, os.path.getsize(stored), "bytes", flush=True)
    sys.exit(1 if bad else 0)
