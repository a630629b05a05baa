"""What the scripted servers of all dialects have in common: they play steps, and tell what they were asked.

A dialect's `Server` derives from `ScriptedEngine` and from the servicer of the official stubs, and says how its messages look.
"""

import asyncio
import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass, field

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from smg_grpc_proto.generated import common_pb2

EOS = 151645
PIECE = 64 * 1024
FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
# What the dialects that tell defaults of sampling say.
DEFAULTS = json.dumps({"temperature": 0.5, "top_p": 0.75, "top_k": 20})


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def unknown_fields(message, path=""):
    """Fields that the peer sent and these stubs don't know, as paths of numbers."""
    found = [f"{path}{unknown.field_number}" for unknown in UnknownFieldSet(message)]
    for described, value in message.ListFields():
        if described.message_type is None or described.message_type.GetOptions().map_entry:
            continue
        for each in [value] if hasattr(value, "ListFields") else value:
            found += unknown_fields(each, f"{path}{described.name}.")
    return found


def bundle(folder):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name in FILES:
            z.write(os.path.join(folder, name), name)
    return out.getvalue()


@dataclass
class Choice:
    """What of one choice has been said so far."""

    index: int
    ids: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    last_ids: list = field(default_factory=list)
    last_rows: list = field(default_factory=list)
    # Tokens up to the end of the last message.
    said: int = 0
    # Tokens that the engine made and left out.
    trimmed: int = 0


class ScriptedEngine:
    SERVICE = ""
    # The EOS or stop token stays out of the ids.
    TRIMS = False
    # A message has one token.
    ONE_TOKEN = False
    # Completes come when all choices are done.
    COMPLETES_LAST = False

    def __init__(self, args):
        self.args = args
        self.zip = bundle(args.bundle)
        self.script = []

    # How a dialect's requests and messages look.
    def prompt_ids(self, request):
        return request.tokenized.input_ids

    def streams(self, request):
        return request.stream

    def chunk(self, request, choice, prompt_tokens):
        """The message of `choice.last_ids`."""
        raise NotImplementedError

    def complete(self, request, choice, prompt_tokens, step):
        raise NotImplementedError

    async def Generate(self, request, context):
        shown = MessageToDict(request, preserving_proto_field_name=True)
        ids = list(self.prompt_ids(request))
        if len(ids) > 200:
            del shown["tokenized"]
        say(
            "generate",
            id=request.request_id,
            request=shown,
            unknown=unknown_fields(request),
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
        choices, ends = {}, []
        for step in self.script:
            index = step.get("index", 0)
            choice = choices.setdefault(index, Choice(index))
            if "sleep" in step:
                await asyncio.sleep(step["sleep"])
            elif "hang" in step:
                await asyncio.sleep(3600)
            elif "error" in step:
                trailers = tuple(step.get("trailers", {}).items())
                await context.abort(getattr(grpc.StatusCode, step["error"]), step.get("details", ""), trailers)
            elif "repeat" in step:
                while True:
                    for message in self.chunks(request, choice, step["repeat"], prompt_tokens):
                        yield message
                    await asyncio.sleep(step["every"])
            elif "chunk" in step:
                for message in self.chunks(request, choice, step, prompt_tokens):
                    yield message
            elif "complete" in step:
                end = self.complete(request, choice, prompt_tokens, step)
                if self.COMPLETES_LAST:
                    ends.append(end)
                else:
                    yield end
        for end in ends:
            yield end

    def chunks(self, request, choice, step, prompt_tokens):
        ids, rows = step["chunk"], step.get("logprobs", [])
        if self.TRIMS and ids and ids[-1] == EOS:
            ids, rows = ids[:-1], rows[: len(ids) - 1]
            choice.trimmed += 1
        choice.ids += ids
        choice.rows += rows
        size = 1 if self.ONE_TOKEN else max(1, len(ids))
        for at in range(0, len(ids), size):
            choice.last_ids, choice.last_rows = ids[at : at + size], rows[at : at + size]
            choice.said += len(choice.last_ids)
            if self.streams(request):
                yield self.chunk(request, choice, prompt_tokens)

    def bundle_pieces(self):
        digest = "0" * 64 if self.args.bad_digest else hashlib.sha256(self.zip).hexdigest()
        for at in range(0, len(self.zip), PIECE):
            last = at + PIECE >= len(self.zip)
            yield common_pb2.GetTokenizerChunk(data=self.zip[at : at + PIECE], sha256=digest if last else "")


def output_logprobs(pb, rows):
    """The parallel lists that four dialects have. A row: [logprob, id, [[logprob, id], …]]."""
    message = pb.OutputLogProbs()
    for value, token, top in rows:
        message.token_logprobs.append(value)
        message.token_ids.append(token)
        message.top_logprobs.append(pb.TopLogProbs(values=[v for v, _ in top], token_ids=[t for _, t in top]))
    return message
