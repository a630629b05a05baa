"""Trains the small tokenizers of small/: every configuration that the kernel knows, and one that the general library takes.

Run:  pip install tokenizers==0.23.3
      python make_small.py FOLDER_OF_TYPESCRIPT_5_9_3 [NAME ...]     (the npm package; its messages train the vocabularies)

With a limited alphabet the trainer breaks ties at random: gemma, prepend and wordpiece come out a little different each time.
"""
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 1500
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LO, SUFFIX = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?" + UP + "*" + LO + "+" + SUFFIX,
        r"[^\r\n\p{L}\p{N}]?" + UP + "+" + LO + "*" + SUFFIX,
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ]
)
MARKS = CL100K.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]") % r"\p{N}"
TEKKEN = O200K.replace(SUFFIX, "").replace("{1,3}", "")
NO_HAN = lambda letters: letters[:-1] + r"&&[^\p{Han}]]"
KIMI = r"[\p{Han}]+|" + O200K.replace(UP, NO_HAN(UP)).replace(LO, NO_HAN(LO)).replace(r"[\r\n/]*", r"[\r\n]*")
POSSESSIVE = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
SEED = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]


def corpus(folder):
    lines = []
    for lang in ("de", "es", "fr", "ja", "ko", "pl", "ru", "tr", "zh-cn"):
        path = os.path.join(folder, "lib", lang, "diagnosticMessages.generated.json")
        lines += list(json.load(open(path, encoding="utf-8")).values())[:700]
    lines += open(os.path.join(folder, "lib", "lib.es5.d.ts"), encoding="utf-8").read().split("\n")[:2000]
    return [line for line in lines if line.strip()]


def save(tok, name, edit=lambda data: None):
    data = json.loads(tok.to_str())
    edit(data)
    Tokenizer.from_str(json.dumps(data))
    with open(os.path.join(HERE, "small", name + ".json"), "w", encoding="utf-8") as f:
        json.dump(data, f, ensure_ascii=False, separators=(",", ":"))
    print(name, tok.get_vocab_size())


def byte_level(lines, name, patterns, normalizer=None, behavior="isolated", more=(), edit=lambda data: None, pre=None):
    tok = Tokenizer(models.BPE())
    if normalizer:
        tok.normalizer = normalizer
    splits = [pre_tokenizers.Split(Regex(p), behavior, invert=behavior == "removed") for p in patterns]
    tok.pre_tokenizer = pre or pre_tokenizers.Sequence(splits + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=SIZE, show_progress=False, initial_alphabet=alphabet))
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.add_special_tokens(["<|begin|>", "<|end|>", "<|endoftext|>"])
    tok.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)] + list(more))
    save(tok, name, edit)


def normalized(data):
    """Added tokens that are looked for in normalized text, two of them not normalized themselves; and ids that are not the file's."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    for content in ["\u65e5\u00e9", "re\u0301sume\u0301", "normal", "\uac00\u11a8", "Parameter", "<|spe\u0301cial|>"]:
        data["added_tokens"].append({"id": 3000 + len(data["added_tokens"]), "content": content, **flags})
    data["added_tokens"].append({"id": 4000, "content": "<raw\u0301>", **flags, "normalized": False})
    data["added_tokens"].append({"id": 4001, "content": "Type", **flags, "special": True})
    data["added_tokens"][-3]["special"] = True


def gaps(data):
    """No token for some bytes; another one stands for each of them."""
    vocab = data["model"]["vocab"]
    for sign in [c for c in pre_tokenizers.ByteLevel.alphabet() if ord(c) > 0x100 + 5 and ord(c) < 0x100 + 25] + ["\u00c1", "\u00f5", "\u00c5"]:
        if not any(sign in merge[0] + merge[1] for merge in data["model"]["merges"]):
            del vocab[sign]
    old = sorted(vocab.items(), key=lambda item: item[1])
    data["model"]["vocab"] = {"<|unknown|>": 0, **{token: i + 1 for i, (token, _) in enumerate(old)}}
    data["model"]["unk_token"] = "<|unknown|>"
    for token in data["added_tokens"]:
        token["id"] += len(old) + 1 - SIZE
    data["added_tokens"].insert(0, {**data["added_tokens"][0], "id": 0, "content": "<|unknown|>"})


def ignore_merges(data):
    """Some tokens lose their merge, so that only a piece that is the whole token gives them."""
    model = data["model"]
    model["ignore_merges"] = True
    del model["merges"][-60::7]


def gemma(lines):
    bytes_ = ["<0x%02X>" % b for b in range(256)]
    tok = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tok.normalizer = normalizers.Replace(" ", "▁")
    tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE + 256,
        show_progress=False,
        limit_alphabet=500,
        max_token_length=12,
        special_tokens=["<pad>", "<eos>", "<bos>", "<unk>", "\n\n", "\n\n\n", "\t\t", "▁▁", "▁▁▁▁"] + bytes_,
    )
    tok.train_from_iterator(lines, trainer)
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.add_special_tokens(["<start_of_turn>", "<end_of_turn>"])

    def edit(data):
        data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in bytes_]
        for token in data["added_tokens"]:
            token["special"] = token["content"].startswith("<")

    save(tok, "gemma", edit)


def prepend(lines):
    """Llama 2's shape: a sign for a space in front of every text."""
    bytes_ = ["<0x%02X>" % b for b in range(256)]
    tok = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, show_progress=False, limit_alphabet=400, max_token_length=12, special_tokens=["<unk>", "<s>", "</s>"] + bytes_
    )
    tok.train_from_iterator(lines, trainer)
    strip = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tok.decoder = decoders.Sequence(strip)

    def edit(data):
        data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in bytes_]

    save(tok, "prepend", edit)


def metaspace(scheme):
    """The vocabulary of `prepend` with a pre-tokenizer that puts the sign."""
    with open(os.path.join(HERE, "small", "prepend.json"), encoding="utf-8") as f:
        tok = Tokenizer.from_str(f.read())
    tok.normalizer = None
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=False)
    save(tok, "metaspace_" + scheme)


def strip(base):
    """Another tokenizer whose first three added tokens take white space: before, after, on both sides."""
    with open(os.path.join(HERE, "small", base + ".json"), encoding="utf-8") as f:
        data = json.load(f)
    for i, (left, right) in enumerate([(True, False), (False, True), (True, True)]):
        data["added_tokens"][i].update(lstrip=left, rstrip=right)
    save(Tokenizer.from_str(json.dumps(data)), base + "_strip")


def wordpiece(lines):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=60))
    tok.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(
        lines, trainers.WordPieceTrainer(vocab_size=SIZE, limit_alphabet=500, show_progress=False, special_tokens=special)
    )
    tok.decoder = decoders.WordPiece(cleanup=True)
    save(tok, "wordpiece")


def everything(text):
    """What makes each file, by its name."""
    plain = [AddedToken("normal", normalized=True), AddedToken("Parameter", normalized=True)]
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2])
    nfc = normalizers.NFC()
    train = lambda name, patterns, **more: (name, lambda: byte_level(text, name, patterns, **more))
    return dict(
        [
            train("cl100k", [CL100K % r"\p{N}{1,3}"], edit=ignore_merges),
            train("cl100k_nfc", [CL100K % r"\p{N}"], normalizer=nfc, behavior="removed"),
            train("possessive", [POSSESSIVE]),
            train("seed", [SEED]),
            train("o200k", [O200K], edit=ignore_merges),
            train("marks", [MARKS], normalizer=nfc),
            train("kimi", [KIMI]),
            train("tekken", [TEKKEN], edit=ignore_merges),
            train("deepseek", DEEPSEEK, normalizer=normalizers.Sequence([]), more=plain),
            train("gpt2", [], pre=gpt2),
            train("gpt2_digits", [], pre=digits, normalizer=nfc),
            train("normalized", [CL100K % r"\p{N}"], normalizer=nfc, edit=normalized),
            train("gaps", [], pre=digits, edit=gaps),
            ("gemma", lambda: gemma(text)),
            ("prepend", lambda: prepend(text)),
            ("metaspace_first", lambda: metaspace("first")),
            ("metaspace_always", lambda: metaspace("always")),
            ("cl100k_strip", lambda: strip("cl100k")),
            ("prepend_strip", lambda: strip("prepend")),
            ("wordpiece", lambda: wordpiece(text)),
        ]
    )


if __name__ == "__main__":
    os.makedirs(os.path.join(HERE, "small"), exist_ok=True)
    for name, make in everything(corpus(sys.argv[1])).items():
        if name in sys.argv[2:] or len(sys.argv) == 2:
            make()
