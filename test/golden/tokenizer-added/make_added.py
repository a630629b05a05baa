#!/usr/bin/env python3
"""What files beside a tokenizer.json add to its tokens, by transformers' AutoTokenizer: cases.json, from small tokenizers of this repository.

    python3 make_added.py [--check]

Each case: the tokenizer.json (a file in test/golden), changes to its parts (a list of added tokens that is null is none), the files beside it, and the result: added tokens with ids and
flags (w: single_word, l: lstrip, r: rstrip, n: normalized, s: special), ids and texts (without special tokens) of strings.
"""
import json
import os
import random
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers  # noqa: E402
import transformers  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
GENERIC = {"tokenizer_class": "PreTrainedTokenizerFast"}
PADDING = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 3, "pad_type_id": 0, "pad_token": "<padding>"}


def token(content, **flags):
    return {"content": content, **dict.fromkeys(FLAGS, False), **flags}


def own(id, content, **flags):
    return {"id": id, **token(content, **flags)}


def typed(content, **flags):
    return {"__type": "AddedToken", "content": content, **flags}


def config(**keys):
    return {"tokenizer_config.json": {**GENERIC, **keys}}



def cases():
    """Name, files beside, changes of the tokenizer.json. <own> and <raw> stand in it; N is the size of its vocabulary."""
    yield "nothing", lambda n: {}, {}
    yield "nothing new", lambda n: config(added_tokens_decoder={str(n): token("<own>", special=True), str(n + 1): token("<raw>", lstrip=True, normalized=True)}), {}
    yield "declared", lambda n: config(added_tokens_decoder={str(n + 3): token("<z>", special=True), str(n + 2): token("<new>"), str(n): token("<own>", special=True)}), {}
    yield "declared with a gap", lambda n: config(added_tokens_decoder={str(n + 40): token("<z>", special=True), str(n + 7): token("<new>", rstrip=True)}), {}
    yield "declared, few flags", lambda n: config(added_tokens_decoder={str(n + 2): {"content": "<z>"}, str(n + 3): {"content": "<y>", "special": True}, str(n + 4): {"content": "ab", "single_word": True}}), {}
    yield "other flags", lambda n: config(added_tokens_decoder={str(n): token("<own>", lstrip=True), str(n + 1): token("<raw>", special=True)}), {}
    yield "a word of the vocabulary", lambda n: config(added_tokens_decoder={"5": token("a"), str(n + 5): token("e", special=True)}), {}
    yield "named, not special", lambda n: config(eos_token="<raw>", pad_token="<new>", added_tokens_decoder={str(n + 2): {"content": "<new>"}}), {}
    yield "named, older", lambda n: config(eos_token="<raw>", pad_token="<new>", bos_token="a"), {}
    yield "named, with flags", lambda n: config(mask_token=typed("<mask>", lstrip=True), cls_token=typed("<cls>", normalized=True), sep_token="<own>", added_tokens_decoder={}), {}
    yield "all kinds", lambda n: config(extra_special_tokens=["<x>", typed("<y>", rstrip=True)], additional_special_tokens=["<q>"], my_token="<my>",
                                        image_token=typed("<im>"), other_token=token("<o>"), add_bos_token=True, added_tokens_decoder={}), {}
    yield "additional", lambda n: config(additional_special_tokens=["<q>", "<own>", "<q>"], extra_special_tokens=[]), {}
    yield "extra, named", lambda n: config(extra_special_tokens={"v_token": "<v>", "w": "<w>"}), {}
    yield "twice", lambda n: config(bos_token="<q>", eos_token=typed("<q>", lstrip=True), extra_special_tokens=["<q>"], added_tokens_decoder={}), {}
    yield "special_tokens_map", lambda n: {**config(eos_token="<no>"), "special_tokens_map.json": {"eos_token": token("<e>", normalized=True), "pad_token": "<p>", "additional_special_tokens": ["<s1>"], "x_token": {"content": "<xt>"}}}, {}
    yield "special_tokens_map, extra", lambda n: {**config(extra_special_tokens=["<k>"]), "special_tokens_map.json": {"extra_special_tokens": [{"content": "<s1>", "rstrip": True}, "<s2>", "<k>"]}}, {}
    yield "special_tokens_map beside declared ones", lambda n: {**config(added_tokens_decoder={}), "special_tokens_map.json": {"eos_token": "<e>"}, "added_tokens.json": {"<n>": n + 2}}, {}
    yield "special_tokens_map, own keys", lambda n: {**config(a_token="<a1>", b_token="<b1>", c_token=typed("<c1>")), "special_tokens_map.json": {"x_token": "<x>", "b_token": "<b2>", "y_token": {"content": "<y>", "lstrip": True}}}, {}
    yield "special_tokens_map alone", lambda n: {"special_tokens_map.json": {"eos_token": "<e>", "unk_token": "<raw>"}}, {}
    yield "added_tokens", lambda n: {**config(), "added_tokens.json": {"<n2>": n + 3, "<n1>": n + 2, "<raw>": n + 7, "<c>": n}, "special_tokens_map.json": {"eos_token": "<n1>"}}, {}
    yield "added_tokens alone", lambda n: {"added_tokens.json": {"<n2>": n + 30, "<n1>": n + 2}}, {}
    yield "padding", lambda n: config(added_tokens_decoder={}), {"padding": PADDING}
    yield "padding alone", lambda n: {}, {"padding": PADDING}
    yield "padding, none named", lambda n: config(pad_token=None), {"padding": PADDING}
    yield "no list", lambda n: config(added_tokens_decoder={str(n): token("<new>", special=True)}), {"added_tokens": None}
    yield "empty list", lambda n: config(added_tokens_decoder={str(n): token('<"ü\\😀>', special=True)}), {"added_tokens": []}
    yield "an unknown class", lambda n: {"tokenizer_config.json": {"tokenizer_class": "OwnTokenizer", "added_tokens_decoder": {str(n + 2): token("<new>")}}}, {}
    r = random.Random(7)
    for i in range(40):
        yield f"random {i}", at_random(r), ({"padding": PADDING} if r.random() < 0.2 else {})


def at_random(r):
    words = ["<own>", "<raw>", "<new>", "<z>", "<p>", "a", "e", "<padding>"]
    flags = lambda: {f: r.random() < 0.4 for f in FLAGS if f != "single_word" and r.random() < 0.6}
    named = {k: r.choice([None, *words, *words, typed(r.choice(words), **flags())]) for k in ("bos_token", "eos_token", "unk_token", "pad_token", "own_token") if r.random() < 0.5}
    several = lambda: [r.choice([r.choice(words), typed(r.choice(words), **flags())]) for _ in range(r.randrange(4))]
    lists = {k: several() for k in ("extra_special_tokens", "additional_special_tokens") if r.random() < 0.3}
    ids = r.sample(range(9), r.randrange(6))
    chosen = [(i, r.choice(words), flags()) for i in ids]
    if r.random() < 0.6:
        return lambda n: config(**named, **lists, added_tokens_decoder={str(n + i): {"content": c, **f} for i, c, f in chosen})
    mapped = {k: r.choice([r.choice(words), {"content": r.choice(words), **flags()}]) for k in ("bos_token", "eos_token", "sep_token") if r.random() < 0.5}
    return lambda n: {**config(**named, **lists), "special_tokens_map.json": mapped, "added_tokens.json": {c: n + i for i, c, _ in chosen}}


BASES = ["tokenizer/small/cl100k.json", "tokenizer/small/metaspace_first.json", "tokenizer/small/gemma.json", "tokenizer-real/small/unigram.json", "tokenizer-general/bases/wordpiece.json"]


def build(base, name, beside, changes):
    with open(os.path.join(GOLDEN, base), encoding="utf-8") as f:
        data = json.load(f)
    n = tokenizers.Tokenizer.from_str(json.dumps({**data, "added_tokens": []})).get_vocab_size()
    changes = {"padding": None, "truncation": None, "added_tokens": [own(n, "<own>", special=True), own(n + 1, "<raw>", lstrip=True, normalized=True)], **changes}
    files = beside(n)
    with tempfile.TemporaryDirectory() as folder:
        whole = {k: v for k, v in {**data, **changes}.items() if k != "added_tokens" or v is not None}
        for file, content in {"tokenizer.json": whole, **files}.items():
            with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                json.dump(content, f)
        backend = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
    tokens = sorted(backend.get_added_tokens_decoder().items())
    contents = [t.content for _, t in tokens]
    strings = [f"a {c} b{c}c  {c}" for c in contents] + ["".join(contents), " ".join(reversed(contents)), "a cabe bead"]
    texts = []
    for s in strings:
        ids = backend.encode(s, add_special_tokens=False).ids
        texts.append([s, ids, backend.decode(ids)])
    flagged = [[i, t.content, "".join(f for f, k in zip("wlrns", FLAGS) if getattr(t, k))] for i, t in tokens]
    return {"base": base, "name": name, "changes": changes, "files": files, "tokens": flagged, "texts": texts}


def main():
    transformers.logging.set_verbosity_error()
    built = [build(base, *case) for base in BASES for case in cases()]
    one = lambda x: json.dumps(x, ensure_ascii=True, separators=(",", ":"))
    versions = {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__}
    text = '{"made_with":%s,"cases":[\n%s\n]}\n' % (one(versions), ",\n".join(map(one, built)))
    path = os.path.join(HERE, "cases.json")
    if "--check" in sys.argv:
        same = open(path, encoding="utf-8").read() == text
        print("equal" if same else "differs")
        sys.exit(0 if same else 1)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
