"""Builds the small tokenizers of small/: shapes that the real ones at hand lack. The files are stored; this is how they were made.

Run:  pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf transformers==5.24.0
      python make_small.py FOLDER_OF_TYPESCRIPT_5_9_3     (the npm package; its texts train the vocabularies)
"""
import io
import json
import os
import sys

import sentencepiece as spm
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "small")


def corpus(folder):
    lines = []
    for lang in ("cs", "de", "es", "fr", "it", "ja", "ko", "pl", "pt-br", "ru", "tr", "zh-cn", "zh-tw"):
        path = os.path.join(folder, "lib", lang, "diagnosticMessages.generated.json")
        lines += list(json.load(open(path, encoding="utf-8")).values())
    lines += open(os.path.join(folder, "lib", "lib.es5.d.ts"), encoding="utf-8").read().split("\n")
    for name in ("README.md", "ThirdPartyNoticeText.txt"):
        lines += open(os.path.join(folder, name), encoding="utf-8").read().split("\n")
    return [l for l in lines if l.strip()]


def save(tok, name):
    path = os.path.join(OUT, name + ".json")
    tok.save(path)
    print(name, tok.get_vocab_size(), os.path.getsize(path))


def sp_model(lines, kind, **more):
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, model_type=kind, num_threads=1, minloglevel=2, **more
    )
    import sentencepiece.sentencepiece_model_pb2 as pb

    m = pb.ModelProto()
    m.ParseFromString(out.getvalue())
    return m


def unigram(lines):
    """T5 / XLM-R shape: Precompiled normalizer, WhitespaceSplit + Metaspace always, no byte fallback, EOS appended."""
    m = sp_model(lines, "unigram", vocab_size=3000, character_coverage=0.998, normalization_rule_name="nmt_nfkc", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, user_defined_symbols=["<extra_id_0>"])
    tok = Tokenizer(models.Unigram([(p.piece, p.score) for p in m.pieces], unk_id=2, byte_fallback=False))
    tok.normalizer = normalizers.Sequence([normalizers.Precompiled(m.normalizer_spec.precompiled_charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")])
    tok.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    tok.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tok.add_special_tokens([AddedToken("<extra_id_0>", lstrip=True, normalized=False)])
    save(tok, "unigram")


def unigram_bytes(lines):
    """Byte fallback, Metaspace first, NFC and Lowercase, a user symbol."""
    m = sp_model(lines, "unigram", vocab_size=2000, character_coverage=0.98, byte_fallback=True, normalization_rule_name="identity", unk_id=0, bos_id=1, eos_id=2, pad_id=-1, user_defined_symbols=["<tool>", "</tool>"])
    tok = Tokenizer(models.Unigram([(p.piece, p.score) for p in m.pieces], unk_id=0, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    tok.add_special_tokens(["<unk>", "<s>", "</s>"])
    tok.add_tokens([AddedToken("<tool>", normalized=True), AddedToken("</tool>", normalized=False, rstrip=True)])
    save(tok, "unigram_bytes")


def metaspace_bpe(lines):
    """Mistral / Llama 2 non-legacy shape: BPE with byte fallback, no normalizer, Metaspace first without splitting."""
    special = ["[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]"]
    m = sp_model(lines, "bpe", vocab_size=3000, character_coverage=0.98, byte_fallback=True, normalization_rule_name="identity", unk_id=0, bos_id=1, eos_id=2, pad_id=-1, control_symbols=special, remove_extra_whitespaces=False)
    pieces = [p.piece for p in m.pieces]
    vocab = {p: i for i, p in enumerate(pieces)}
    merges = []
    for p in m.pieces:
        for k in range(1, len(p.piece)):
            a, b = p.piece[:k], p.piece[k:]
            if p.type == 1 and a in vocab and b in vocab:
                merges.append((vocab[p.piece], vocab[a], vocab[b], a, b))
    merges = [(a, b) for _, _, _, a, b in sorted(merges)]
    tok = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    tok.add_special_tokens(["<unk>", "<s>", "</s>"] + special)
    save(tok, "metaspace_bpe")


def flags(lines):
    """Byte-level BPE with add_prefix_space, Digits, GPT-2's pattern, and every added-token flag."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)])
    tok.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=3000, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), special_tokens=["<|endoftext|>"]))
    tok.normalizer = normalizers.Sequence([normalizers.Replace("…", "..."), normalizers.NFKC(), normalizers.Strip(left=False, right=True)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<sep>", rstrip=True), AddedToken("<both>", lstrip=True, rstrip=True), AddedToken("<A>"), AddedToken("<A>b"), AddedToken("<norm>", normalized=True)])
    tok.add_tokens([AddedToken("whole", single_word=True), AddedToken("Part", normalized=True), AddedToken("ﬁx", normalized=True), AddedToken("raw…", normalized=False), AddedToken("日本", single_word=True), AddedToken(" x", normalized=False), AddedToken("  ", normalized=False), AddedToken("const", normalized=True, lstrip=True, single_word=True)])
    eot = tok.token_to_id("<|endoftext|>")
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|endoftext|> $A <|endoftext|>", pair="$A <|endoftext|> $B:1", special_tokens=[("<|endoftext|>", eot)])])
    save(tok, "flags")


def wordpiece(lines):
    """Cased WordPiece with accents kept and Chinese characters not split; Bert decoder without cleanup."""
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=60))
    tok.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Punctuation("isolated")])
    tok.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=3000, limit_alphabet=1500, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tok.decoder = decoders.WordPiece(cleanup=False)
    tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    save(tok, "wordpiece")


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    text = corpus(sys.argv[1])
    print(len(text), "lines")
    for f in (unigram, unigram_bytes, metaspace_bpe, flags, wordpiece):
        try:
            f(text)
        except Exception as e:
            print(f.__name__, "failed:", repr(e)[:500])
