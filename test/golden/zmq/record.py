"""Records what real ZeroMQ sockets send: a publisher of KV events in every form that engines write, and what answers for its past.

python -m venv v && v/bin/pip install pyzmq==27.3.0 msgspec==0.23.0 && v/bin/python record.py
"""
import json
import pathlib
import socket
import sys
import threading
import time
from typing import Any

import msgspec
import zmq

HERE = pathlib.Path(__file__).parent


class Batch(msgspec.Struct, array_like=True, omit_defaults=True):
    ts: float
    events: list[Any]
    data_parallel_rank: int | None = None


def event(array_like):
    class KVCacheEvent(msgspec.Struct, array_like=array_like, omit_defaults=True, tag=True):
        pass

    class BlockStored(KVCacheEvent):
        block_hashes: list[int | bytes]
        parent_block_hash: int | bytes | None
        token_ids: list[int]
        block_size: int
        lora_id: int | None
        medium: str | None = None
        lora_name: str | None = None
        extra_keys: list[tuple[Any, ...] | None] | None = None

    class BlockRemoved(KVCacheEvent):
        block_hashes: list[int | bytes]
        medium: str | None = None

    class AllBlocksCleared(KVCacheEvent):
        pass

    return BlockStored, BlockRemoved, AllBlocksCleared


def batches():
    for array_like in (True, False):
        Stored, Removed, Cleared = event(array_like)
        yield Batch(1.5, [Stored([7, 2**64 - 1], None, list(range(8)), 4, None)])
        yield Batch(1.5, [Stored([-3], 2**63, [100000, 1, 2, 3], 4, None, "GPU"), Removed([7], "GPU")], 1)
        yield Batch(1.5, [Stored([bytes(range(32))], bytes(32), [1, 2, 3, 4], 4, 5, "CPU", "tune")])
        yield Batch(1.5, [Stored([1, 2], None, list(range(8)), 4, None, "GPU", None, [("img", 3), None], )])
        yield Batch(1.5, [Stored([3], 1, [9] * 4, 4, None, "GPU", None, [(("picture", 0),)]), Cleared()])
        yield Batch(2.5, [Stored(list(range(300)), None, list(range(4 * 300)), 4, None, "GPU")])


payloads = [msgspec.msgpack.Encoder().encode(batch) for batch in batches()]
context = zmq.Context()
pub = context.socket(zmq.PUB)
pub_port = pub.bind_to_random_port("tcp://127.0.0.1")
router = context.socket(zmq.ROUTER)
router_port = router.bind_to_random_port("tcp://127.0.0.1")


def greeting():
    return b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + bytes(32)


def ready(kind):
    properties = b"\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind + b"\x08Identity" + bytes(4)
    body = b"\x05READY" + properties
    return b"\x04" + bytes([len(body)]) + body


def connect(port, kind, then):
    """What the server sends, until it is silent."""
    client = socket.create_connection(("127.0.0.1", port))
    client.settimeout(5)
    time.sleep(0.3)  # here a greeting that comes while the connection is accepted is now and then not seen
    got = b""
    for size, answer in ((64, greeting()), (2, ready(kind)), (0, then)):
        client.sendall(answer)
        goal = len(got) + size
        while len(got) < goal:
            got += client.recv(1 << 16)
    try:
        while piece := client.recv(1 << 16):
            got += piece
    except TimeoutError:
        pass
    client.close()
    return got


def publish():
    time.sleep(1)
    for number, payload in enumerate(payloads):
        pub.send_multipart([b"kv", number.to_bytes(8, "big"), payload])


def answer():
    who, empty, start = router.recv_multipart()
    assert empty == b""
    for number in range(int.from_bytes(start, "big"), len(payloads)):
        topic = [b"kv"] if number % 2 else []  # vLLM repeats the topic, SGLang does not
        router.send_multipart([who, b"", *topic, number.to_bytes(8, "big"), payloads[number]])
    router.send_multipart([who, b"", (-1).to_bytes(8, "big", signed=True), b""])


for name, port, kind, then, work in (
    ("publisher", pub_port, b"SUB", b"\x00\x01\x01", publish),
    ("replay", router_port, b"DEALER", b"\x01\x00\x00\x08" + (9).to_bytes(8, "big"), answer),
):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    (HERE / f"{name}.bin").write_bytes(connect(port, kind, then))
    thread.join()

versions = {"pyzmq": zmq.__version__, "libzmq": zmq.zmq_version(), "msgspec": msgspec.__version__, "python": sys.version.split()[0]}
(HERE / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")
