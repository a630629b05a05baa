"""Prints how many requests a vLLM gRPC server runs, as JSON lines: {"t": seconds, "running": n}.   watch_loads.py HOST:PORT

Ends when its standard input is closed. Needs grpcio and smg-grpc-proto.
"""

import json
import sys
import threading
import time

import grpc
from smg_grpc_proto import vllm_engine_pb2 as pb
from smg_grpc_proto import vllm_engine_pb2_grpc as rpc

stub = rpc.VllmEngineStub(grpc.insecure_channel(sys.argv[1]))
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while not over.is_set():
    loads = stub.GetLoads(pb.GetLoadsRequest(), timeout=5).loads
    print(json.dumps({"t": time.time(), "running": sum(l.num_running_reqs for l in loads)}), flush=True)
    over.wait(0.05)
