"""What transformers puts around texts when a folder has a tokenizer.json: whatever tokenizer_config.json says of add_bos_token and
add_eos_token, and whatever class it names, it is the file's own post_processor (the keys are dropped when the file is there).

Run:  pip install transformers==5.24.0 tokenizers==0.23.3
      python make_special_tokens.py          writes special-tokens.json beside this file
"""
import json
import os
import tempfile

import tokenizers
import transformers
from transformers import AutoTokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ["llama", "mistral", "gemma2", "qwen2", "qwen3", "phi3", "granite", None]
CLASSES = ["LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizer", "Qwen2Tokenizer", "PreTrainedTokenizerFast", "TokenizersBackend", None]
FLAGS = [{}, {"add_bos_token": True}, {"add_bos_token": False}, {"add_eos_token": True}, {"add_bos_token": True, "add_eos_token": True}]
BOS, EOS = "<s>", "</s>"


def special(token, type_id=0):
    return {"SpecialToken": {"id": token, "type_id": type_id}}


def processors(ids):
    a, b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    names = {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in (BOS, EOS)}
    template = lambda single, pair: {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": names}
    return {
        "none": None,
        "bos": template([special(BOS), a], [special(BOS), a, special(BOS, 1), b]),
        "both": template([special(BOS), a, special(EOS)], [special(BOS), a, special(EOS), b, special(EOS, 1)]),
    }


def around(ids, text):
    """Ids with each occurrence of `text` as A, then B."""
    out, i, names = [], 0, ["B", "A"]
    while i < len(ids):
        if names and ids[i : i + len(text)] == text:
            out.append(names.pop())
            i += len(text)
        else:
            out.append(ids[i])
            i += 1
    return out


def main():
    raw = json.load(open(os.path.join(HERE, "small", "prepend.json"), encoding="utf-8"))
    ids = {t["content"]: t["id"] for t in raw["added_tokens"]}
    found = {}
    for name, processor in processors(ids).items():
        results = set()
        cases = 0
        for model in MODELS:
            for cls in CLASSES:
                for flags in FLAGS:
                    with tempfile.TemporaryDirectory() as folder:
                        write = lambda file, value: json.dump(value, open(os.path.join(folder, file), "w"))
                        write("tokenizer.json", {**raw, "post_processor": processor})
                        config = {"bos_token": BOS, "eos_token": EOS, **flags, **({"tokenizer_class": cls} if cls else {})}
                        write("tokenizer_config.json", config)
                        write("config.json", {"model_type": model} if model else {})
                        tok = AutoTokenizer.from_pretrained(folder)
                    text = tok("x", add_special_tokens=False)["input_ids"]
                    results.add(json.dumps([around(tok("x")["input_ids"], text), around(tok("x", "x")["input_ids"], text)]))
                    cases += 1
        (only,) = results  # all alike
        single, pair = json.loads(only)
        found[name] = {"post_processor": processor, "cases": cases, "single": single, "pair": pair}
    made_with = {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__}
    data = {"made_with": made_with, "models": MODELS, "classes": CLASSES, "flags": FLAGS, "found": found}
    with open(os.path.join(HERE, "special-tokens.json"), "w", encoding="utf-8") as f:
        json.dump(data, f, ensure_ascii=False, indent=1)
    print({k: (v["cases"], v["single"], v["pair"]) for k, v in found.items()})


if __name__ == "__main__":
    main()
