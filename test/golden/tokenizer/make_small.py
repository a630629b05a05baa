"""Trains the small tokenizers of small/: every configuration that the kernel knows, and two that the general library takes.

Run:  pip install tokenizers==0.23.3
      python make_small.py FOLDER_OF_TYPESCRIPT_5_9_3     (the npm package; its messages train the vocabularies)

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


if __name__ == "__main__":
    os.makedirs(os.path.join(HERE, "small"), exist_ok=True)
    text = corpus(sys.argv[1])
    byte_level(text, "cl100k", [CL100K % r"\p{N}{1,3}"], edit=ignore_merges)
    byte_level(text, "cl100k_nfc", [CL100K % r"\p{N}"], normalizer=normalizers.NFC(), behavior="removed")
    byte_level(text, "o200k", [O200K], edit=ignore_merges)
    byte_level(text, "marks", [MARKS], normalizer=normalizers.NFC())
    byte_level(text, "tekken", [TEKKEN], edit=ignore_merges)
    plain = [AddedToken("normal", normalized=True), AddedToken("Parameter", normalized=True)]
    byte_level(text, "deepseek", DEEPSEEK, normalizer=normalizers.Sequence([]), more=plain)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level(text, "gpt2", [], pre=gpt2)
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2])
    byte_level(text, "gpt2_digits", [], pre=digits, normalizer=normalizers.NFC())
    gemma(text)
    prepend(text)
    metaspace("first")
    metaspace("always")
    strip("cl100k")
    strip("prepend")
    wordpiece(text)
