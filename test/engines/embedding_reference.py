"""What transformers makes of texts with an embedding model.   embedding_reference.py MODEL_FOLDER < texts.json

texts.json: a list of [text, most tokens or null]. Prints {"vectors", "counts"}: for each text the mean of the last layer over its tokens,
scaled to length 1 (the recipe of sentence-transformers for all-MiniLM-L6-v2), and its number of tokens.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModel.from_pretrained(sys.argv[1]).eval()
vectors, counts = [], []
for text, most in json.load(sys.stdin):
    # tokenizer.json sets a length to cut and to pad to; here only what is asked for counts
    given = tokenizer(text, return_tensors="pt", padding=False, truncation=most is not None, max_length=most)
    with torch.no_grad():
        hidden = model(**given).last_hidden_state[0]
    vectors.append(torch.nn.functional.normalize(hidden.mean(0), dim=0).tolist())
    counts.append(int(given["input_ids"].shape[1]))
json.dump({"vectors": vectors, "counts": counts}, sys.stdout)
