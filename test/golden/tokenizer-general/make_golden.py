"""Ids and decodes of the Rust `tokenizers` library for variants of small tokenizers: every part of a pipeline at least once.

Run:  pip install tokenizers==0.23.3
      python make_golden.py            writes variants.json and points.json beside this file
      python make_golden.py --check    compares them with a fresh run

variants.json, per variant
  base, patch    bases/BASE.json with the members of `patch` in place of its own (those of `model` within the model); a
                 precompiled_charsmap "nmt_nfkc" stands for nmt_nfkc.map.gz in base64
  ids_sha256     over the ids of the strings, each list as [1,2,3] and a newline; with special tokens added (`with`), and with
                 special tokens taken for text (`plain`)
  cases          the first strings with their ids
  decode         ids with their text; `skip` without special tokens, if it differs
The strings: COUNT, in turn by `string` of ../tokenizer/make_golden.py and by `hard` (hard.ts is its twin), seeded with SEED.
points.json: for some variants, over all code points of the planes 0, 1 and 14: the first 16 digits of a sha256 per block of 8,192
code points, over the ids of texts of 32 of them with "a" between, as above. `classes`: for names of character classes the sha256
of the code points that a pattern finds, written in decimals with commas. `numbers`: scores of a Unigram model as text and as the
library read them. `patterns`: for each of patterns.json the sha256 of the pieces of the strings that a Split makes, each piece ended
by U+001E and each string by U+001F.
"""
import base64
import gzip
import hashlib
import json
import os
import sys

import tokenizers
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tokenizer"))
from make_golden import Rng, ids_line, sha, string  # noqa: E402

SEED = 20261130
COUNT = 240
CASES = 4
DECODES = 12
HARD = json.load(open(os.path.join(HERE, "hard.json"), encoding="utf-8"))


def hard(r, specials):
    out = []
    for _ in range(1 + r.below(20)):
        kind = r.below(8)
        if kind == 0 and specials:
            out.append(r.pick(specials))
        elif kind == 1:
            out.append(chr(1 + r.below(0x33FF)))
        elif kind == 2:
            out.append(chr(0x10000 + r.below(0x10000)))
        elif kind < 5:
            out.append("abcXYZ019 .,'-#_"[r.below(16)])
        else:
            out.append(r.pick(HARD))
    return "".join(out)


def t(type_, **fields):
    return {"type": type_, **fields}


def token(content, **flags):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": 0, "content": content, **plain, **flags}


def nseq(*parts):
    return t("Sequence", normalizers=list(parts))


def pseq(*parts):
    return t("Sequence", pretokenizers=list(parts))


def dseq(*parts):
    return t("Sequence", decoders=list(parts))


def template(single, pair, **ids):
    piece = lambda p: {"Sequence": {"id": p, "type_id": 0}} if p in ("A", "B") else {"SpecialToken": {"id": p, "type_id": 0}}
    tokens = {k: {"id": k, "ids": [v], "tokens": [k]} for k, v in ids.items()}
    return t("TemplateProcessing", single=[piece(p) for p in single], pair=[piece(p) for p in pair], special_tokens=tokens)


def metaspace(scheme="always", split=True, sign="\u2581"):
    return t("Metaspace", replacement=sign, prepend_scheme=scheme, split=split)


def byte_level(space=False, regex=True):
    return t("ByteLevel", add_prefix_space=space, trim_offsets=True, use_regex=regex)


BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
ADDED = [
    token("<s>"), token("<L>", lstrip=True), token("<R>", rstrip=True), token("<B>", lstrip=True, rstrip=True),
    token("word", single_word=True, special=False), token("caf\u00e9", normalized=True, special=False),
    token("Norm<R>", normalized=True), token("ab", special=False), token("\u0130", normalized=True, special=False),
    token("foo bar", normalized=True, special=False, lstrip=True), token("<s>b"),
]
CHARSMAP = t("Precompiled", precompiled_charsmap="nmt_nfkc")
BERT = lambda clean=True, chinese=True, accents=None, lower=True: t(
    "BertNormalizer", clean_text=clean, handle_chinese_chars=chinese, strip_accents=accents, lowercase=lower)
SPACES = t("Replace", pattern={"Regex": " {2,}"}, content=" ")
CL100K = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
          "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
CLIP = "<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"


def variants():
    def put(name, base, **patch):
        assert name not in out
        out[name] = (base, patch)

    out = {}
    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"):
        put("normalizer " + form, "characters", normalizer=t(form))
    put("normalizer Strip", "characters", normalizer=t("Strip", strip_left=True, strip_right=True))
    put("normalizer Strip left", "characters", normalizer=t("Strip", strip_left=True, strip_right=False))
    put("normalizer Strip right", "characters", normalizer=t("Strip", strip_left=False, strip_right=True))
    put("normalizer Prepend", "characters", normalizer=nseq(t("Prepend", prepend="\u2581"), t("Replace", pattern={"String": " "}, content="\u2581")))
    put("normalizer Replace", "characters", normalizer=nseq(SPACES, t("Replace", pattern={"Regex": "\\p{M}+|[0-9](?=x)"}, content="")))
    put("normalizer Precompiled", "characters", normalizer=CHARSMAP)
    for i in range(16):
        clean, chinese, lower, accents = i & 1 > 0, i & 2 > 0, i & 4 > 0, (None, True)[i >> 3]
        put(f"normalizer BertNormalizer {i}", "characters", normalizer=BERT(clean, chinese, accents, lower))
    put("normalizer BertNormalizer accents kept", "characters", normalizer=BERT(accents=False))

    pre = {
        "BertPreTokenizer": t("BertPreTokenizer"), "Whitespace": t("Whitespace"), "WhitespaceSplit": t("WhitespaceSplit"),
        "UnicodeScripts": t("UnicodeScripts"), "FixedLength": t("FixedLength", length=3),
        "CharDelimiterSplit": t("CharDelimiterSplit", delimiter="a"),
        "Digits one": t("Digits", individual_digits=True), "Digits": t("Digits", individual_digits=False),
        "Metaspace old": t("Metaspace", replacement="\u2581", add_prefix_space=True),
        "Metaspace older": t("Metaspace", replacement="_", add_prefix_space=False, prepend_scheme="never"),
        "ByteLevel": byte_level(), "ByteLevel space": byte_level(True), "ByteLevel whole": byte_level(True, False),
        "possessive": t("Split", pattern={"Regex": "(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+"}, behavior="Isolated", invert=False),
        "cl100k": t("Split", pattern={"Regex": CL100K}, behavior="Isolated", invert=False),
        "clip": pseq(t("Split", pattern={"Regex": CLIP}, behavior="Removed", invert=True), byte_level()),
        "intersection": t("Split", pattern={"Regex": "[\\p{Han}&&[^\u4e00]]+|[\\w&&[^\\d_]]+|^.|.$"}, behavior="Isolated", invert=False),
        "thousands": t("Split", pattern={"Regex": "(?<=\\d)(?=(?:\\d{3})+(?!\\d))"}, behavior="Isolated", invert=False),
        "Sequence": pseq(t("WhitespaceSplit"), t("Punctuation", behavior="Isolated"), t("Digits", individual_digits=True), metaspace()),
        "Sequence first": pseq(t("Digits", individual_digits=True), metaspace("first")),
    }
    for b in BEHAVIORS:
        pre["Punctuation " + b] = t("Punctuation", behavior=b)
        for invert in (False, True):
            name = f"{b}{' inverted' if invert else ''}"
            pre["Split expression " + name] = t("Split", pattern={"Regex": "\\s+|\\p{N}|[^\\s\\w]"}, behavior=b, invert=invert)
            pre["Split text " + name] = t("Split", pattern={"String": "a"}, behavior=b, invert=invert)
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            pre[f"Metaspace {scheme}{'' if split else ' whole'}"] = metaspace(scheme, split)
    for name, part in pre.items():
        put("pre_tokenizer " + name, "characters", pre_tokenizer=part)

    put("added", "characters", added_tokens=ADDED)
    normal = {
        "NFKC": t("NFKC"), "Strip": t("Strip", strip_left=True, strip_right=True), "Lowercase": t("Lowercase"),
        "Replace": nseq(SPACES, t("NFC")), "Prepend": t("Prepend", prepend="x"), "Bert": BERT(),
        "accents": nseq(t("NFD"), t("StripAccents")), "Precompiled": nseq(CHARSMAP, SPACES),
    }
    for name in ("Metaspace first", "Metaspace first whole", "Sequence first", "BertPreTokenizer", "ByteLevel space"):
        for n, part in normal.items():
            put(f"added {name} {n}", "characters", added_tokens=ADDED, pre_tokenizer=pre[name], normalizer=part)

    each_first = pseq(t("Split", pattern={"Regex": "."}, behavior="Isolated", invert=False), metaspace("first"))
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        put("start " + form, "characters", pre_tokenizer=each_first, normalizer=t(form))
    put("start Precompiled", "characters", pre_tokenizer=each_first, normalizer=CHARSMAP)
    put("start accents", "characters", pre_tokenizer=each_first, normalizer=nseq(t("NFKD"), t("StripAccents"), t("NFKC")), added_tokens=ADDED)
    put("start Replace", "characters", pre_tokenizer=each_first, normalizer=nseq(t("Replace", pattern={"Regex": "^\\s+|a"}, content="xy"), t("Lowercase")))

    special = [token(c) for c in ("<s>", "</s>", "<unk>")] + [token("<mask>", lstrip=True)]
    put("like XLM-R", "unigram", added_tokens=special, normalizer=nseq(CHARSMAP, SPACES),
        post_processor=template(["<s>", "A", "</s>"], ["<s>", "A", "</s>", "</s>", "B", "</s>"], **{"<s>": 1, "</s>": 2}))
    put("like T5", "unigram", added_tokens=[token("</s>"), token("<unk>"), token("<extra_id_0>", lstrip=True, rstrip=True)],
        post_processor=template(["A", "</s>"], ["A", "</s>", "B", "</s>"], **{"</s>": 2}))
    put("like ALBERT", "unigram", added_tokens=[token("[CLS]"), token("[SEP]"), token("<unk>"), token("[MASK]", lstrip=True, normalized=True)],
        normalizer=nseq(t("Replace", pattern={"String": "``"}, content='"'), t("Replace", pattern={"String": "''"}, content='"'),
                        t("NFKD"), t("StripAccents"), t("Lowercase"), CHARSMAP),
        post_processor=template(["[CLS]", "A", "[SEP]"], ["[CLS]", "A", "[SEP]", "B", "[SEP]"], **{"[CLS]": 700, "[SEP]": 701}))
    put("Unigram whole", "unigram", normalizer=None, pre_tokenizer=None)
    put("Unigram bytes", "unigram_bytes")
    put("Unigram bytes as unknown", "unigram_bytes", model={"byte_fallback": False}, pre_tokenizer=metaspace())
    bert = [token(c) for c in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    bert_ends = t("BertProcessing", sep=["[SEP]", 3], cls=["[CLS]", 2])
    put("like BERT", "wordpiece", added_tokens=bert, post_processor=bert_ends)
    put("like BERT, cased", "wordpiece", added_tokens=bert, post_processor=bert_ends, normalizer=BERT(accents=False, lower=False))
    put("WordPiece short", "wordpiece", model={"max_input_chars_per_word": 5})
    put("WordPiece prefix", "wordpiece", model={"continuing_subword_prefix": "@@"}, decoder=t("WordPiece", prefix="@@", cleanup=False))
    put("WordLevel", "words", decoder=None)
    put("like CLIP", "clip", added_tokens=[token("<|end|>")], post_processor=t("RobertaProcessing", sep=["<|end|>", 0], cls=["<|end|>", 0], trim_offsets=False, add_prefix_space=False))
    put("like SmolLM", "byte_level", added_tokens=[token("<|end|>")], pre_tokenizer=pseq(t("Digits", individual_digits=True), byte_level()))
    put("like RoBERTa", "byte_level", added_tokens=[token("<|end|>"), token("<mask>", lstrip=True)], pre_tokenizer=byte_level(True),
        post_processor=t("RobertaProcessing", sep=["</s>", 2], cls=["<s>", 0], trim_offsets=True, add_prefix_space=True))
    put("BPE unknown", "byte_level", model={"unk_token": "<|end|>"})
    put("BPE unknown fused", "byte_level", model={"unk_token": "<|end|>", "fuse_unk": True})
    put("BPE ignore_merges", "byte_level", model={"ignore_merges": True})
    put("like Llama 2", "metaspace", added_tokens=[token(c) for c in ("<unk>", "<s>", "</s>")], post_processor=template(["<s>", "A"], ["<s>", "A", "<s>", "B"], **{"<s>": 1}))
    put("BPE metaspace unknown", "metaspace", model={"byte_fallback": False, "fuse_unk": False})

    decoders = {
        "none": None, "ByteFallback": dseq(t("ByteFallback"), metaspace()), "WordPiece": t("WordPiece", prefix="##", cleanup=True),
        "BPEDecoder": t("BPEDecoder", suffix="e"), "CTC": t("CTC", pad_token="a", word_delimiter_token="|", cleanup=True),
        "CTC untidied": t("CTC", pad_token="a", word_delimiter_token="|", cleanup=False), "Metaspace first": metaspace("first"),
        "Metaspace never": metaspace("never"), "Fuse": t("Fuse"), "ByteLevel": byte_level(), "Strip": t("Strip", content="\u2581", start=1, stop=0),
        "Fuse Strip": dseq(t("Fuse"), t("Strip", content="e", start=2, stop=2)),
        "Fuse Replace": dseq(t("Fuse"), t("Replace", pattern={"String": "an"}, content="<>")),
        "Fuse Replace expression": dseq(t("Fuse"), t("Replace", pattern={"Regex": "[aeiou]+"}, content="_")),
        "Replace expression": t("Replace", pattern={"Regex": "[aeiou]+$"}, content="_"),
        "Fuse WordPiece": dseq(t("Fuse"), t("WordPiece", prefix="##", cleanup=True)),
        "ByteFallback Fuse Metaspace": dseq(t("ByteFallback"), t("Fuse"), metaspace("first")),
        "ByteLevel Strip": dseq(byte_level(), t("Strip", content=" ", start=1, stop=1)),
        "Fuse BPEDecoder": dseq(t("Fuse"), t("BPEDecoder", suffix="an")),
    }
    tokens = [token("<s>"), token("Day", normalized=True), token("[X]", special=False)]
    for name, part in decoders.items():
        put("decoder " + name, "metaspace", decoder=part, added_tokens=tokens)
    return out


def load(base, patch):
    path = "wordpiece" if base == "words" else base
    made = json.load(open(os.path.join(HERE, "bases", path + ".json"), encoding="utf-8"))
    if base == "words":
        made["model"] = {"type": "WordLevel", "vocab": made["model"]["vocab"], "unk_token": "[UNK]"}
    for key, value in patch.items():
        made[key] = {**made[key], **value} if key == "model" else value
    charsmap = gzip.open(os.path.join(HERE, "nmt_nfkc.map.gz")).read()
    text = json.dumps(made).replace('"nmt_nfkc"', '"%s"' % base64.b64encode(charsmap).decode())
    return Tokenizer.from_str(text)


def strings(specials):
    r = Rng(SEED)
    return [(string if i % 2 == 0 else hard)(r, specials) for i in range(COUNT)]


def decodes(tok, encoded):
    top = max(tok.get_vocab().values()) + 1
    byte_ids = [i for i in range(top) if (tok.id_to_token(i) or "").startswith("<0x")]
    special = [t["id"] for t in json.loads(tok.to_str())["added_tokens"] if t["special"]]
    r = Rng(SEED + 1)
    rows = []
    for k in range(DECODES):
        n = 1 + r.below(16)
        if k % 3 == 0 and byte_ids:
            ids = [r.pick(byte_ids) if r.below(5) else r.below(top) for _ in range(n)]
        elif k % 3 == 1:
            ids = r.pick([e for e in encoded if e])
            at = r.below(len(ids))
            ids = ids[at : at + n]
        else:
            ids = [r.below(top + 3) for _ in range(n)]
            if special:
                ids.insert(r.below(n + 1), r.pick(special))
        try:
            row = {"ids": ids, "keep": tok.decode(ids, skip_special_tokens=False)}
            skip = tok.decode(ids, skip_special_tokens=True)
        except BaseException:  # some decoders fail on short texts
            continue
        rows.append(row if skip == row["keep"] else {**row, "skip": skip})
    return rows


def variant(name, base, patch):
    tok = load(base, patch)
    specials = [a["content"] for a in patch.get("added_tokens", [])]
    texts = strings(specials)
    run = lambda added: [e.ids for e in tok.encode_batch(texts, add_special_tokens=added)]
    ids = run(False)
    made = {
        "name": name, "base": base, "patch": patch, "ids_sha256": sha(map(ids_line, ids)), "with_sha256": sha(map(ids_line, run(True))),
        "vocab_size": max(tok.get_vocab().values()) + 1,
        "cases": [{"s": s, "ids": i} for s, i in list(zip(texts, ids))[:CASES]],
        "decode": decodes(tok, ids),
    }
    tok.encode_special_tokens = True
    return {**made, "plain_sha256": sha(map(ids_line, run(False)))}


POINTS = [
    "normalizer NFC", "normalizer NFKD", "normalizer Lowercase", "normalizer StripAccents", "normalizer Nmt", "normalizer Precompiled",
    "normalizer BertNormalizer 7", "pre_tokenizer BertPreTokenizer", "pre_tokenizer Whitespace", "pre_tokenizer WhitespaceSplit",
    "pre_tokenizer UnicodeScripts", "pre_tokenizer Digits one", "pre_tokenizer Split expression Isolated", "pre_tokenizer ByteLevel",
]


def points(tok):
    codes = [c for plane in (0, 1, 14) for c in range(plane << 16, (plane + 1) << 16) if not 0xD800 <= c < 0xE000]
    out = []
    for at in range(0, len(codes), 8192):
        block = codes[at : at + 8192]
        texts = ["a" + "a".join(map(chr, block[i : i + 32])) for i in range(0, len(block), 32)]
        out.append(sha(ids_line(e.ids) for e in tok.encode_batch(texts, add_special_tokens=False))[:16])
    return out


CLASSES = (
    "Arabic Armenian Bengali Bopomofo Braille Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul Hebrew "
    "Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil Telugu Thai Tibetan "
    "L Lu Ll Lt Lm Lo M N Nd Nl No P S Sc Z C Cn Cf Uppercase_Letter"
).split()


def classes():
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    text = "".join(map(chr, codes))
    out = {}
    for name in CLASSES:
        left = set(map(ord, normalizers.Replace(Regex(r"\p{%s}" % name), "").normalize_str(text)))
        out[name] = hashlib.sha256(",".join(str(c) for c in codes if c not in left).encode()).hexdigest()
    return out


def patterns():
    out = []
    texts = strings(["<s>", "foo"])
    for expression in json.load(open(os.path.join(HERE, "patterns.json"), encoding="utf-8")):
        pre = pre_tokenizers.Split(Regex(expression), "isolated")
        out.append(sha("".join(p + "\x1e" for p, _ in pre.pre_tokenize_str(s)) + "\x1f" for s in texts))
    return out


def numbers():
    r = Rng(SEED + 2)
    digits = lambda n: "".join(str(r.below(10)) for _ in range(n))
    texts = ["0", "-0.0", "-1e2", "-0.1e-400", "1E+5", "-9.313225746154785e-10", "-12345678901234567890123.5", "18446744073709551616", "-0.30000000000000004"]
    texts += [f"-{r.below(20)}.{digits(1 + r.below(20))}" + (f"e-{r.below(30)}" if r.below(3) == 0 else "") for _ in range(150)]
    vocab = ",".join('["t%d",%s]' % (i, x) for i, x in enumerate(texts))
    text = '{"added_tokens":[],"model":{"type":"Unigram","unk_id":0,"vocab":[%s],"byte_fallback":false}}' % vocab
    read = json.loads(Tokenizer.from_str(text).to_str())["model"]["vocab"]
    return [[a, b[1]] for a, b in zip(texts, read)]


def main():
    made_with = {"tokenizers": tokenizers.__version__, "python": sys.version.split()[0]}
    all_variants = variants()
    one = lambda x: json.dumps(x, ensure_ascii=True, separators=(",", ":"))
    rows = [variant(name, base, patch) for name, (base, patch) in all_variants.items()]
    files = {
        "variants.json": {"made_with": made_with, "seed": SEED, "count": COUNT, "variants": rows},
        "points.json": {"made_with": made_with, "points": {n: points(load(*all_variants[n])) for n in POINTS}, "classes": classes(), "numbers": numbers(), "patterns": patterns()},
    }
    wrong = 0
    for name, data in files.items():
        path = os.path.join(HERE, name)
        if "--check" in sys.argv:
            old = json.load(open(path, encoding="utf-8"))
            same = {**old, "made_with": 0} == {**json.loads(one(data)), "made_with": 0}
            wrong += not same
            print(name, "equal" if same else "differs")
            continue
        with open(path, "w", encoding="utf-8") as f:
            text = one(data)
            if "variants" in data:
                text = one({**data, "variants": []})[:-2] + "\n" + ",\n".join(map(one, rows)) + "\n]}"
            f.write(text + "\n")
        print(name, os.path.getsize(path))
    sys.exit(wrong)


if __name__ == "__main__":
    main()
