"""An engine of the vLLM dialect on grpc.aio and the official stubs, that does what its standard input says.

    server.py --bundle DIR [--context N] [--bad-digest] [--unhealthy]

Standard input, one JSON object a line:
    {"script": [STEP, …]}   what the next Generate calls do, from now on
Steps:
    {"chunk": [ids], "index": 0, "logprobs": [[logprob, id, [[logprob, id], …]], …]}
    {"complete": "stop", "index": 0, "token_id": 7, "prompt_tokens": 5}
    {"error": "INVALID_ARGUMENT", "details": "text"}
    {"sleep": 0.2}          {"hang": true}          {"repeat": {"chunk": [5]}, "every": 0.01}
A request without `stream` gets only the Completes, with all ids and logprobs.

Standard output, one JSON object a line, each with "event":
    ready {port}, generate {id, request, metadata, prompt_tokens, prompt_sum}, cancelled {id}, abort {ids}, done {id}
"generate" shows the request as the official stubs decode it (proto3 JSON names as in the proto; long id lists left out).
"""

import argparse
import asyncio
import hashlib
import io
import json
import os
import sys
import zipfile

import grpc
from google.protobuf.json_format import MessageToDict
from smg_grpc_proto import vllm_engine_pb2 as pb
from smg_grpc_proto import vllm_engine_pb2_grpc as rpc
from smg_grpc_proto.generated import common_pb2

PIECE = 64 * 1024
FILES = ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json")


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def bundle(folder):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name in FILES:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                z.write(path, name)
        z.writestr("generation_config.json", json.dumps({"eos_token_id": [151645, 151643]}))
    return out.getvalue()


def logprobs(rows):
    message = pb.OutputLogProbs()
    for value, token, top in rows:
        message.token_logprobs.append(value)
        message.token_ids.append(token)
        message.top_logprobs.append(pb.TopLogProbs(values=[v for v, _ in top], token_ids=[t for _, t in top]))
    return message


class Engine(rpc.VllmEngineServicer):
    def __init__(self, args):
        self.args = args
        self.zip = bundle(args.bundle)
        self.script = []

    async def Generate(self, request, context):
        shown = MessageToDict(request, preserving_proto_field_name=True)
        ids = list(request.tokenized.input_ids)
        if len(ids) > 200:
            del shown["tokenized"]["input_ids"]
        say(
            "generate",
            id=request.request_id,
            request=shown,
            metadata={k: v if isinstance(v, str) else v.hex() for k, v in context.invocation_metadata()},
            prompt_tokens=len(ids),
            prompt_sum=sum(ids),
        )
        context.add_done_callback(lambda _: say("done", id=request.request_id))
        try:
            async for message in self.play(request, context, len(ids)):
                yield message
        except asyncio.CancelledError:
            say("cancelled", id=request.request_id)
            raise

    async def play(self, request, context, prompt_tokens):
        ids, rows = {}, {}
        for step in self.script:
            index = step.get("index", 0)
            if "sleep" in step:
                await asyncio.sleep(step["sleep"])
            elif "hang" in step:
                await asyncio.sleep(3600)
            elif "error" in step:
                await context.abort(getattr(grpc.StatusCode, step["error"]), step.get("details", ""))
            elif "repeat" in step:
                while True:
                    for message in self.chunk(request, step["repeat"], prompt_tokens, ids, rows):
                        yield message
                    await asyncio.sleep(step["every"])
            elif "chunk" in step:
                for message in self.chunk(request, step, prompt_tokens, ids, rows):
                    yield message
            elif "complete" in step:
                complete = pb.GenerateComplete(
                    finish_reason=step["complete"],
                    index=index,
                    prompt_tokens=prompt_tokens,
                    completion_tokens=len(ids.get(index, [])),
                    output_ids=ids.get(index, []) if not request.stream else ids.get(index, [])[-1:],
                )
                if rows.get(index) and not request.stream:
                    complete.output_logprobs.CopyFrom(logprobs(rows[index]))
                if "token_id" in step:
                    complete.matched_token_id = step["token_id"]
                yield pb.GenerateResponse(complete=complete)

    def chunk(self, request, step, prompt_tokens, ids, rows):
        index = step.get("index", 0)
        ids.setdefault(index, []).extend(step["chunk"])
        rows.setdefault(index, []).extend(step.get("logprobs", []))
        if request.stream:
            chunk = pb.GenerateStreamChunk(
                token_ids=step["chunk"], prompt_tokens=prompt_tokens, completion_tokens=len(step["chunk"]), index=index
            )
            if step.get("logprobs"):
                chunk.output_logprobs.CopyFrom(logprobs(step["logprobs"]))
            yield pb.GenerateResponse(chunk=chunk)

    async def Abort(self, request, context):
        say("abort", ids=list(request.request_ids))
        return pb.AbortResponse()

    async def HealthCheck(self, request, context):
        return pb.HealthCheckResponse(healthy=not self.args.unhealthy, message="scripted")

    async def GetModelInfo(self, request, context):
        return pb.GetModelInfoResponse(
            model_path="/models/scripted",
            tokenizer_path="/models/scripted",
            served_model_name="scripted",
            model_type="qwen3",
            architectures=["Qwen3ForCausalLM"],
            is_generation=True,
            max_context_length=self.args.context,
            vocab_size=151936,
            eos_token_ids=[151645],
            default_sampling_params_json=json.dumps({"temperature": 0.5, "top_p": 0.75, "top_k": 20}),
        )

    async def GetServerInfo(self, request, context):
        return pb.GetServerInfoResponse(block_size=32, max_num_seqs=8, data_parallel_size=1)

    async def GetLoads(self, request, context):
        return pb.GetLoadsResponse()

    async def GetTokenizer(self, request, context):
        digest = hashlib.sha256(self.zip).hexdigest()
        if self.args.bad_digest:
            digest = "0" * 64
        for at in range(0, len(self.zip), PIECE):
            last = at + PIECE >= len(self.zip)
            yield common_pb2.GetTokenizerChunk(data=self.zip[at : at + PIECE], sha256=digest if last else "")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--context", type=int, default=131072)
    parser.add_argument("--bad-digest", action="store_true")
    parser.add_argument("--unhealthy", action="store_true")
    engine = Engine(parser.parse_args())
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    rpc.add_VllmEngineServicer_to_server(engine, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    say("ready", port=port)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        engine.script = json.loads(line)["script"]
        say("scripted")
    await server.stop(0)


asyncio.run(main())
