"""Small tokenizers in other formats than tokenizer.json, and what the reference of each format makes of them.

Run:  pip install tokenizers==0.23.3 transformers==5.24.0 tiktoken==0.14.0 sentencepiece==0.2.3 mistral-common==1.13.1
      python make_formats.py             writes models/ (if it is not there) and cases.json
      python make_formats.py --check     compares cases.json with a fresh run

References
  vocab+merges, sentencepiece   AutoTokenizer of transformers on the same folder: its tokenizer.json without vocabulary and merges (`head`),
                                sha256 of these (`tables_sha256`), and its ids
  tiktoken                      tiktoken.Encoding with the ranks, the pattern of the model's own code and the special tokens
  tekken                        Tekkenizer of mistral-common, on texts without special tokens; ids of special tokens by name
Where no class says otherwise, ids of SentencePiece models are those of the sentencepiece library as well (`sentencepiece_differs` counts
the strings where they are not).

Fields of a case: `files` by name (the name of a file of models/, or JSON), `format`, `batches` and `cases` as in ../tokenizer/make_golden.py,
`without`: strings that hold one of these are left out of the batches.
"""
import base64
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "models")
sys.path.insert(0, os.path.join(HERE, "..", "tokenizer"))
import make_golden as golden  # noqa: E402

SEED = 20261130
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LO, END = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
FIRST = r"[^\r\n\p{L}\p{N}]?"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = f"{FIRST}{UP}*{LO}+{END}|{FIRST}{UP}+{LO}*{END}|" + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL
TEKKEN = f"{FIRST}{UP}*{LO}+|{FIRST}{UP}+{LO}*|" + r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL
UP_K, LO_K = UP[:-1] + r"&&[^\p{Han}]]", LO[:-1] + r"&&[^\p{Han}]]"
KIMI = r"[\p{Han}]+|" + f"{FIRST}{UP_K}*{LO_K}+{END}|{FIRST}{UP_K}+{LO_K}*{END}|" + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL


def strings(seed, n, specials=()):
    r = golden.Rng(seed)
    return [golden.string(r, list(specials)) for _ in range(n)]


def corpus():
    parts = [golden.PARTS[kind] for kind in golden.CLASSES]
    words = [w for part in parts for w in part if w.strip()]
    rnd = random.Random(3)
    lines = [" ".join(rnd.choice(words) for _ in range(12)) for _ in range(2500)]
    return lines + [s.replace("\n", " ").replace("\0", "") for s in strings(11, 2500) if s.strip()]


# ---------------------------------------------------------------- models

def byte_level(size):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=alphabet))
    return json.loads(tok.to_str())["model"]


def unicode_bytes():
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, n = {chr(b): b for b in keep}, 0
    for b in range(256):
        if b not in keep:
            table[chr(256 + n)] = b
            n += 1
    return table


def ranked(size, more):
    """Trained tokens with some random ones of two to four of them strewn in: many tokens then have several last merges."""
    table = unicode_bytes()
    vocab = byte_level(size)["vocab"]
    trained = [bytes(table[c] for c in t) for t, _ in sorted(vocab.items(), key=lambda x: x[1])]
    single = [bytes([b]) for b in range(256)]
    rest = [t for t in trained if len(t) > 1]
    rnd = random.Random(5)
    short = [t for t in trained if len(t) < 5]
    for _ in range(more):
        t = b"".join(rnd.choice(short) for _ in range(rnd.randint(2, 4)))
        if t not in rest:
            rest.insert(rnd.randrange(len(rest) + 1), t)
    for c in b"a =-\n":
        for n in (2, 3, 4, 7):
            if bytes([c]) * n not in rest:
                rest.insert(rnd.randrange(len(rest) + 1), bytes([c]) * n)
    return single + rest


def train_spm(name, **options):
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "corpus.txt")
        with open(text, "w", encoding="utf-8") as f:
            f.write("\n".join(corpus()))
        base = dict(vocab_size=1200, character_coverage=0.98, max_sentence_length=100000, minloglevel=2, num_threads=1)
        prefix = os.path.join(folder, "m")
        sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=prefix, **{**base, **options})
        shutil.copy(prefix + ".model", os.path.join(MODELS, name))


def make_models():
    os.makedirs(MODELS)
    tokens = ranked(700, 250)
    with open(os.path.join(MODELS, "ranks.tiktoken"), "w") as f:
        f.writelines(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens))
    vocab = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": t.decode("utf-8", "replace")} for i, t in enumerate(tokens)]
    config = {"pattern": TEKKEN, "num_vocab_tokens": len(vocab), "default_vocab_size": len(vocab) - 30 + 40, "default_num_special_tokens": 40}
    special = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[THINK]", "[/THINK]"]
    listed = [{"rank": i, "token_str": s, "is_control": i != 6} for i, s in enumerate(special)]
    for name, version, more in (("tekken_v3.json", "v3", {}), ("tekken_v13.json", "v13", {"special_tokens": listed})):
        with open(os.path.join(MODELS, name), "w", encoding="utf-8") as f:
            json.dump({"config": {**config, "version": version}, "vocab": vocab, **more}, f, ensure_ascii=False, separators=(",", ":"))
    model = byte_level(700)
    with open(os.path.join(MODELS, "vocab.json"), "w", encoding="utf-8") as f:
        json.dump(model["vocab"], f, ensure_ascii=False, separators=(",", ":"))
    with open(os.path.join(MODELS, "merges.txt"), "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in ["#version: 0.2"] + [m if isinstance(m, str) else " ".join(m) for m in model["merges"]])
    plain = dict(normalization_rule_name="identity", remove_extra_whitespaces=False)
    train_spm("bpe_llama.model", model_type="bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, **plain)
    gemma = dict(pad_id=0, eos_id=1, bos_id=2, unk_id=3, bos_piece="<bos>", eos_piece="<eos>")
    train_spm("bpe_gemma.model", model_type="bpe", byte_fallback=True, add_dummy_prefix=False, **gemma, **plain)
    train_spm("bpe_user.model", model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
              user_defined_symbols=["<tool>", "a.b", "한국"], control_symbols=["<ctl>"])
    train_spm("unigram_nmt.model", model_type="unigram", normalization_rule_name="nmt_nfkc")
    train_spm("unigram_plain.model", model_type="unigram", byte_fallback=True, user_defined_symbols=["<tool>", "a.b"], **plain)


# ---------------------------------------------------------------- cases

def token(content, special=True, **more):
    return {"content": content, "lstrip": False, "rstrip": False, "single_word": False, "special": special, **more}


def cases():
    n = sum(1 for _ in open(os.path.join(MODELS, "ranks.tiktoken")))
    v = len(json.load(open(os.path.join(MODELS, "vocab.json"), encoding="utf-8")))
    behind = {str(n): token("<|begin|>"), str(n + 1): token("<|end|>"), str(n + 4): token("<tool_call>", special=False)}
    kimi = {str(n): token("[BOS]"), str(n + 1): token("[EOS]"), str(n + 2): token("<|im_end|>"), str(n + 20): token("<think>", special=False)}
    auto = {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}, "tokenizer_class": "TikTokenTokenizer"}
    tik = lambda name, tokens, config, pattern, end, **more: dict(
        format="tiktoken", pattern=pattern, first=n, end=end, tokens=tokens,
        files={name: "ranks.tiktoken", "tokenizer_config.json": {"added_tokens_decoder": tokens, **more}, "config.json": config})
    yield "tiktoken_cl100k", tik("tokenizer.model", behind, {"model_type": "llama"}, CL100K, n + 5)
    yield "tiktoken_o200k", tik("x.tiktoken", behind, {"model_type": "gpt_oss"}, O200K, n + 5)
    yield "kimi_k2", tik("tiktoken.model", kimi, {"model_type": "other", "vocab_size": n + 256}, KIMI, n + 256, **auto)
    yield "kimi_k3", tik("tiktoken.model", kimi, {"model_type": "kimi_k3", "text_config": {"vocab_size": n + 258}}, KIMI, n + 258)
    for name in ("tekken_v3", "tekken_v13"):
        yield name, dict(format="tekken", files={"tekken.json": name + ".json"})

    both = {"vocab.json": "vocab.json", "merges.txt": "merges.txt"}
    hf = lambda format, files, **config: dict(format=format, files={**files, "tokenizer_config.json": config})
    qwen = {str(v): token("<|endoftext|>", normalized=False), str(v + 1): token("<|im_start|>"), str(v + 2): token("<think>", special=False, normalized=False)}
    yield "qwen2", hf("vocab+merges", both, tokenizer_class="Qwen2TokenizerFast", added_tokens_decoder=qwen, eos_token="<|im_start|>", bos_token=None, unk_token=None)
    old = {"added_tokens.json": {"<|im_end|>": v + 1, "<|endoftext|>": v, "<x>": v + 2}, "config.json": {"model_type": "qwen2"},
           "special_tokens_map.json": {"eos_token": token("<|im_end|>", lstrip=False), "additional_special_tokens": ["<y>"]}}
    yield "qwen2_old", hf("vocab+merges", {**both, **old})
    yield "gpt2", hf("vocab+merges", both, tokenizer_class="GPT2Tokenizer", add_bos_token=True)
    yield "roberta", hf("vocab+merges", both, tokenizer_class="RobertaTokenizer", mask_token={"__type": "AddedToken", **token("<mask>", lstrip=True, normalized=False)})

    spm = lambda model, name="tokenizer.model", config={"model_type": "llama"}, **more: hf("sentencepiece", {name: model, "config.json": config}, **more)
    yield "llama", spm("bpe_llama.model", tokenizer_class="LlamaTokenizer", add_bos_token=True, add_eos_token=False)
    yield "llama_legacy", spm("bpe_llama.model", tokenizer_class="LlamaTokenizer", legacy=True, added_tokens_decoder={"1200": token("<|im_end|>", normalized=False)})
    yield "mistral", spm("bpe_llama.model", config={"model_type": "mistral"}, tokenizer_class="LlamaTokenizer")
    yield "mistral_first", spm("bpe_llama.model", config={"model_type": "mistral"}, legacy=False)
    yield "gemma", spm("bpe_gemma.model", tokenizer_class="GemmaTokenizer")
    yield "plain_gemma", spm("bpe_gemma.model")
    yield "bpe_user", spm("bpe_user.model")
    yield "t5", spm("unigram_nmt.model", "spiece.model", tokenizer_class="T5Tokenizer", extra_ids=5)
    yield "xlm_roberta", spm("unigram_nmt.model", "sentencepiece.bpe.model", tokenizer_class="XLMRobertaTokenizer")
    yield "unigram_nmt", spm("unigram_nmt.model")
    yield "unigram_plain", spm("unigram_plain.model")


def write_folder(folder, files):
    for name, content in files.items():
        if isinstance(content, str):
            shutil.copy(os.path.join(MODELS, content), os.path.join(folder, name))
        else:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                json.dump(content, f)


def reference(case, folder):
    """Encode function, texts of special tokens to put into strings, texts that strings must not hold, more fields."""
    if case["format"] == "tiktoken":
        import tiktoken

        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in open(os.path.join(MODELS, "ranks.tiktoken")))}
        names = {int(i): t["content"] for i, t in case["tokens"].items()}
        special = {names.get(i, f"<|reserved_token_{i}|>"): i for i in range(case["first"], case["end"])}
        enc = tiktoken.Encoding("x", pat_str=case["pattern"], mergeable_ranks=ranks, special_tokens=special)
        shown = list(special)[:24]
        return lambda s: enc.encode(s, allowed_special="all"), shown, [], {"pattern": case["pattern"], "special": special}
    if case["format"] == "tekken":
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tek = Tekkenizer.from_file(os.path.join(folder, "tekken.json"))
        special = {str(getattr(t["token_str"], "value", t["token_str"])): t["rank"] for t in tek._all_special_tokens}
        return lambda s: tek.encode(s, bos=False, eos=False), [], list(special), {"special": special, "vocab_size": tek.n_words}
    import transformers

    transformers.logging.set_verbosity_error()
    backend = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
    data = json.loads(backend.to_str())
    tables = {k: data["model"].pop(k) for k in ("vocab", "merges") if k in data["model"]}
    if isinstance(tables["vocab"], list):
        tables["vocab"] = [t for t, _ in tables["vocab"]]  # the library rounds scores when it reads them again
    else:
        tables["vocab"] = sorted(([t, i] for t, i in tables["vocab"].items()), key=lambda x: x[1])
    shorten_charsmap(data["normalizer"])
    text = json.dumps(tables, ensure_ascii=False, separators=(",", ":"))
    more = {"head": data, "tables_sha256": hashlib.sha256(text.encode()).hexdigest()}
    if case["format"] == "sentencepiece":
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(os.path.join(folder, next(n for n in case["files"] if n.endswith(".model"))))
        added = [t["content"] for t in data["added_tokens"]]
        differ = [s for s in strings(SEED, 3000) if not any(a in s for a in added) and processor.encode(s) != backend.encode(s, add_special_tokens=False).ids]
        more["sentencepiece_differs"] = len(differ)
    shown = [t["content"] for t in data["added_tokens"]][:24]
    return lambda s: backend.encode(s, add_special_tokens=False).ids, shown, [], more


def shorten_charsmap(part):
    """In place of a compiled map of characters (320 kB) its sha256."""
    for step in (part or {}).get("normalizers", [part] if part else []):
        if "precompiled_charsmap" in step:
            step["precompiled_charsmap"] = hashlib.sha256(step["precompiled_charsmap"].encode()).hexdigest()


def build(name, case):
    with tempfile.TemporaryDirectory() as folder:
        write_folder(folder, case["files"])
        encode, specials, without, more = reference(case, folder)
    clean = lambda s: s if not any(w in s for w in without) else ""
    batches = []
    r = golden.Rng(SEED)
    for _ in range(2):
        batch = [golden.string(r, specials) for _ in range(1000)]
        ids = [encode(clean(s)) for s in batch]
        batches.append({"strings_sha256": golden.sha(s + "\n" for s in batch), "ids_sha256": golden.sha(map(golden.ids_line, ids))})
    r = golden.Rng(SEED + 1)
    rows = []
    fixed = ["", " ", "  a", "a  b ", "▁x", " ▁x", "\n a", "aaaaaaaaa", "=" * 11, "한국 a.b<tool>", "中文English混合", "café\u0301"]
    for s in fixed + [golden.string(r, specials) for _ in range(40)]:
        if len(s) <= 200 and clean(s) == s:
            rows.append({"s": s, "ids": encode(s)})
    return {"name": name, "format": case["format"], "files": case["files"], **more, "specials": specials, "without": without, "batches": batches, "cases": rows}


def main():
    import importlib.metadata as meta

    if not os.path.exists(MODELS):
        make_models()
    versions = {p: meta.version(p) for p in ("tokenizers", "transformers", "tiktoken", "sentencepiece", "mistral-common")}
    built = [build(name, case) for name, case in cases()]
    one = lambda x: json.dumps(x, ensure_ascii=True, separators=(",", ":"))
    text = '{"made_with":%s,"seed":%d,"cases":[\n%s\n]}\n' % (one(versions), SEED, ",\n".join(map(one, built)))
    path = os.path.join(HERE, "cases.json")
    if "--check" in sys.argv:
        same = open(path, encoding="utf-8").read() == text
        print("equal" if same else "differs")
        sys.exit(0 if same else 1)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    for c in built:
        print(c["name"], c.get("sentencepiece_differs", ""))


if __name__ == "__main__":
    main()
