"""Prints how many requests an engine's gRPC server runs, as JSON lines: {"t": seconds, "running": n}.   watch_loads.py DIALECT HOST:PORT

DIALECT is vllm or mlx. Ends when its standard input is closed. Needs grpcio and smg-grpc-proto.
"""

import json
import sys
import threading
import time

import grpc

dialect, target = sys.argv[1:]
channel = grpc.insecure_channel(target)
if dialect == "vllm":
    from smg_grpc_proto import vllm_engine_pb2 as pb
    from smg_grpc_proto import vllm_engine_pb2_grpc as rpc

    stub = rpc.VllmEngineStub(channel)

    def running():
        return sum(load.num_running_reqs for load in stub.GetLoads(pb.GetLoadsRequest(), timeout=5).loads)

else:
    from smg_grpc_proto import mlx_engine_pb2 as pb
    from smg_grpc_proto import mlx_engine_pb2_grpc as rpc

    stub = rpc.MlxEngineStub(channel)

    def running():
        return stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=5).active_requests


over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while not over.is_set():
    print(json.dumps({"t": time.time(), "running": running()}), flush=True)
    over.wait(0.05)
