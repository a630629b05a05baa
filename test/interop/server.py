"""An engine of any dialect on grpc.aio and the official stubs, that does what its standard input says.

    server.py --dialect NAME --bundle DIR [--context N] [--bad-digest] [--unhealthy] [--pooling] [--no-reflection]

Standard input, one JSON object a line:
    {"script": [STEP, …]}   what the next Generate calls do, from now on
Steps, the same for every dialect (its module in dialects/ makes its messages of them):
    {"chunk": [ids], "index": 0, "logprobs": [[logprob, id, [[logprob, id], …]], …]}
    {"complete": "stop", "index": 0, "token_id": 7}
    {"error": "INVALID_ARGUMENT", "details": "text", "trailers": {}}
    {"sleep": 0.2}          {"hang": true}          {"repeat": {"chunk": [5]}, "every": 0.01}
A request that does not stream gets only the Completes, with all ids and logprobs.

Standard output, one JSON object a line, each with "event":
    ready {port}, generate {id, request, unknown, metadata, prompt_tokens, prompt_sum}, embed {request_ids}, cancelled {id},
    abort {ids}, done {id}
"generate" shows the request as the official stubs decode it (proto3 JSON, names as in the proto; long id lists left out), and the
numbers of fields that these stubs don't know.
"""

import argparse
import asyncio
import json
import sys

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from dialects import NAMES, dialect
from scripted import say


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dialect", required=True, choices=NAMES)
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--context", type=int, default=131072)
    parser.add_argument("--bad-digest", action="store_true")
    parser.add_argument("--unhealthy", action="store_true")
    parser.add_argument("--pooling", action="store_true")
    parser.add_argument("--no-reflection", action="store_true")
    args = parser.parse_args()
    module = dialect(args.dialect)
    engine = module.Server(args)
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    engine.register(server)
    if module.Client.HEALTH_V1:
        states = health.aio.HealthServicer()
        state = health_pb2.HealthCheckResponse.NOT_SERVING if args.unhealthy else health_pb2.HealthCheckResponse.SERVING
        for name in ("", module.SERVICE):
            await states.set(name, state)
        health_pb2_grpc.add_HealthServicer_to_server(states, server)
    if not args.no_reflection:
        reflection.enable_server_reflection((module.SERVICE, reflection.SERVICE_NAME), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    say("ready", port=port)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        engine.script = json.loads(line)["script"]
        say("scripted")
    await server.stop(0)


asyncio.run(main())
