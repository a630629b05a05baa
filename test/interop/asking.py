"""What the clients of all dialects have in common: one form for the messages that come."""

from dataclasses import dataclass

import grpc

LIMITS = [("grpc.max_receive_message_length", 256 << 20), ("grpc.max_send_message_length", 256 << 20)]


@dataclass
class Message:
    """A message of a generation; `end` is the finish reason of a Complete, None in a chunk."""

    ids: list
    index: int
    prompt_tokens: int
    completion_tokens: int
    logprobs: list
    end: str | None = None
    matched: int | None = None

    @staticmethod
    def of(response, ids=("token_ids", "output_ids"), index="index", matched="matched_token_id"):
        """Of a GenerateResponse, by the names of its fields: of the ids in chunks and in Completes, and so on."""
        kind = response.WhichOneof("response")
        inner = getattr(response, kind)
        message = Message(
            ids=list(getattr(inner, ids[0] if kind == "chunk" else ids[1])),
            index=getattr(inner, index),
            prompt_tokens=inner.prompt_tokens,
            completion_tokens=inner.completion_tokens,
            logprobs=logprob_ids(inner),
        )
        if kind == "complete":
            message.end = inner.finish_reason
            message.matched = getattr(inner, matched) if inner.HasField(matched) else None
        return message


def logprob_ids(inner):
    """Ids that have logprobs, and how many rows each has."""
    if "output_logprobs" in inner.DESCRIPTOR.fields_by_name:
        lists = inner.output_logprobs
        return list(zip(lists.token_ids, (len(top.values) for top in lists.top_logprobs)))
    return [(each.token_id, len(each.top_logprobs)) for each in inner.logprobs]


def with_bias(message, field, bias):
    for token, value in bias.items():
        field[token] = value
    return message


class AskingClient:
    """`request` builds a GenerateRequest, `read` understands a GenerateResponse, `abort` sends an Abort."""

    SERVICE = ""
    # Counts of a message are of that message only; else they run.
    COUNTS_MESSAGES = False
    # What ids of a streaming Complete are: the "last" message's again, "all", or "none".
    REPEATS = "last"
    # Completes of requests that don't stream have their numbers; else all say index 0.
    NUMBERS_WHOLE = True
    # It does several choices in one request, and constraints.
    SAMPLES = True
    CONSTRAINS = True
    # The stop token stays out of the ids; the Complete names it.
    TRIMS = False
    NAMES_STOP = True
    # How a stream ends that an Abort names: an "abort" Complete, "ok" without one, a "status", or not at all ("silent").
    ABORT = "complete"
    HEALTH_V1 = True
    EMBEDS = False
    LOADS = True
    # Calls that came later, and the release.
    SINCE = {}
    BUNDLE = True
    # Fields that had no presence in older releases, which reads the same.
    GOT_PRESENCE = ()
    # It refuses prompts that are empty, or have ids past the vocabulary.
    REFUSES_PROMPTS = True

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target, options=LIMITS)
        grpc.channel_ready_future(self.channel).result(timeout=30)

    def healthy(self, reply):
        return reply.healthy
