"""What huggingface_hub makes of the same cache, hub and environment: one JSON request as argument, one JSON answer.

Runs with huggingface_hub 1.33.0 and 2.4.0.
"""

import hashlib
import json
import sys

import huggingface_hub
from huggingface_hub import constants, hf_hub_download, scan_cache_dir, snapshot_download
from huggingface_hub.utils import get_token, validate_repo_id


def digests(folder, names):
    found = {}
    for name in names:
        with open(f"{folder}/{name}", "rb") as file:
            found[name] = hashlib.sha256(file.read()).hexdigest()
    return found


def settings(_):
    return {
        "version": huggingface_hub.__version__,
        "cache": constants.HF_HUB_CACHE,
        "endpoint": constants.ENDPOINT,
        "offline": constants.HF_HUB_OFFLINE,
        "token": None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token(),
        "etag_timeout": constants.HF_HUB_ETAG_TIMEOUT,
        "download_timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT,
    }


def names(request):
    def valid(name):
        try:
            validate_repo_id(name)
            return True
        except ValueError:
            return False

    return [valid(name) for name in request["names"]]


def snapshot(request):
    folder = snapshot_download(
        request["id"],
        revision=request.get("revision"),
        local_files_only=request["local"],
        allow_patterns=request.get("allow"),
    )
    return {"folder": folder, "files": digests(folder, request["names"])}


def files(request):
    found = {}
    for name in request["names"]:
        path = hf_hub_download(
            request["id"], name, revision=request.get("revision"), local_files_only=request["local"]
        )
        with open(path, "rb") as file:
            found[name] = hashlib.sha256(file.read()).hexdigest()
    return found


def scan(_):
    info = scan_cache_dir()
    return {
        "warnings": [str(warning) for warning in info.warnings],
        "repositories": [
            {
                "id": repo.repo_id,
                "type": repo.repo_type,
                "refs": {ref: revision.commit_hash for ref, revision in repo.refs.items()},
                "files": sorted(file.file_name for revision in repo.revisions for file in revision.files),
            }
            for repo in info.repos
        ],
    }


request = json.loads(sys.argv[1])
work = {"settings": settings, "names": names, "snapshot": snapshot, "files": files, "scan": scan}
print(json.dumps(work[request["do"]](request)))
