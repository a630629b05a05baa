"""Makes the small tokenizers that the variants of make_golden.py are made of, and a real charsmap.

Run:  pip install tokenizers==0.23.3 sentencepiece==0.2.3 && python make_bases.py
      writes bases/*.json and nmt_nfkc.map.gz beside this file. Training is not the same in every run: the files are kept.
In `bases`, a precompiled_charsmap "nmt_nfkc" stands for the content of nmt_nfkc.map.gz.
"""
import gzip
import json
import os
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tokenizer"))
from make_golden import PARTS, Rng, string  # noqa: E402

SIZE = 700


def texts():
    r = Rng(99)
    lines = [" ".join(r.pick(v) for v in PARTS.values()) for _ in range(800)]
    return [line.replace("\n", " ").replace("\0", "") for line in lines + [string(r, []) for _ in range(500)]]


def bare(model):
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model,
    }


def characters():
    """Every character shows: as a token of its own that tells whether a piece begins with it, or as its bytes."""
    vocab = {"<0x%02X>" % b: b for b in range(256)}
    for i, c in enumerate("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "):
        vocab[c] = 300 + 2 * i
        vocab["#" + c] = 301 + 2 * i
    return bare({"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": True, "continuing_subword_prefix": "#"})


def sentence_piece(name, **options):
    with tempfile.TemporaryDirectory() as folder:
        corpus, prefix = os.path.join(folder, "corpus"), os.path.join(folder, "model")
        open(corpus, "w", encoding="utf-8").write("\n".join(texts()))
        sentencepiece.SentencePieceTrainer.train(
            input=corpus, model_prefix=prefix, vocab_size=options.pop("vocab_size", SIZE), normalization_rule_name=name, minloglevel=2,
            hard_vocab_limit=False, **options,
        )
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(open(prefix + ".model", "rb").read())
    vocab = [[p.piece, p.score] for p in proto.pieces]
    return vocab, proto.normalizer_spec.precompiled_charsmap


def trained(tokenizer, trainer):
    tokenizer.train_from_iterator(texts(), trainer)
    made = json.loads(tokenizer.to_str())
    made["added_tokens"] = []
    return made


def main():
    os.makedirs(os.path.join(HERE, "bases"), exist_ok=True)

    def save(name, made):
        path = os.path.join(HERE, "bases", name + ".json")
        json.dump(made, open(path, "w", encoding="utf-8"), separators=(",", ":"))
        print(name, os.path.getsize(path))

    save("characters", characters())
    vocab, charsmap = sentence_piece("nmt_nfkc", character_coverage=0.98)
    open(os.path.join(HERE, "nmt_nfkc.map.gz"), "wb").write(gzip.compress(charsmap, 9, mtime=0))
    made = bare({"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": False})
    made["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "nmt_nfkc"}
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    made["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}
    made["decoder"] = metaspace
    save("unigram", made)
    vocab, _ = sentence_piece("identity", character_coverage=0.98, byte_fallback=True, vocab_size=1200)
    save("unigram_bytes", bare({"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": True}))

    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    save("wordpiece", trained(t, trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=specials)))

    t = Tokenizer(models.BPE())  # bytes that the texts lack are missing, as in SmolLM's vocabulary
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    save("byte_level", trained(t, trainers.BpeTrainer(vocab_size=SIZE, limit_alphabet=150, special_tokens=["<|end|>"])))

    t = Tokenizer(models.BPE(unk_token="<|end|>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(" ", " "), normalizers.Lowercase()])
    t.pre_tokenizer, t.decoder = pre_tokenizers.Whitespace(), decoders.BPEDecoder()
    save("clip", trained(t, trainers.BpeTrainer(vocab_size=SIZE, special_tokens=["<|end|>"], end_of_word_suffix="</w>")))

    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    made = trained(t, trainers.BpeTrainer(vocab_size=SIZE + 256, limit_alphabet=120, special_tokens=special))
    made["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    spaces = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    made["decoder"] = {"type": "Sequence", "decoders": [spaces, {"type": "ByteFallback"}, {"type": "Fuse"}, strip]}
    save("metaspace", made)


if __name__ == "__main__":
    main()
