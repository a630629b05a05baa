"""trtllm.TrtllmService."""

from smg_grpc_proto import trtllm_service_pb2 as pb
from smg_grpc_proto import trtllm_service_pb2_grpc as rpc

from asking import AskingClient, Message
from scripted import ScriptedEngine, say

SERVICE = "trtllm.TrtllmService"


def entries(rows):
    return [
        pb.TokenLogprob(
            token_id=token,
            logprob=value,
            top_logprobs=[pb.TopLogprob(token_id=t, logprob=v) for v, t in top],
        )
        for value, token, top in rows
    ]


class Server(ScriptedEngine, rpc.TrtllmServiceServicer):
    """GetTokenizer is declared only, as in the engine."""

    TRIMS = True
    COMPLETES_LAST = True

    def register(self, server):
        rpc.add_TrtllmServiceServicer_to_server(self, server)

    def prompt_ids(self, request):
        return request.tokenized.input_token_ids

    def streams(self, request):
        return request.streaming

    def chunk(self, request, choice, prompt_tokens):
        chunk = pb.GenerateStreamChunk(
            token_ids=choice.last_ids,
            sequence_index=choice.index,
            prompt_tokens=prompt_tokens,
            completion_tokens=choice.said,
            logprobs=entries(choice.last_rows),
        )
        return pb.GenerateResponse(request_id=request.request_id, chunk=chunk)

    def complete(self, request, choice, prompt_tokens, step):
        # All tokens again, in a stream too.
        complete = pb.GenerateComplete(
            output_token_ids=choice.ids,
            sequence_index=choice.index,
            finish_reason=step["complete"],
            prompt_tokens=prompt_tokens,
            completion_tokens=len(choice.ids) + choice.trimmed,
            logprobs=entries(choice.rows),
        )
        if "token_id" in step:
            complete.matched_token_id = step["token_id"]
        return pb.GenerateResponse(request_id=request.request_id, complete=complete)

    async def Abort(self, request, context):
        say("abort", ids=[request.request_id])
        return pb.AbortResponse(success=True)

    async def HealthCheck(self, request, context):
        return pb.HealthCheckResponse(status="executor is not healthy" if self.args.unhealthy else "OK")

    async def GetModelInfo(self, request, context):
        return pb.GetModelInfoResponse(
            model_id="scripted",
            max_input_len=self.args.context - 1,
            max_seq_len=self.args.context,
            vocab_size=151936,
        )

    async def GetServerInfo(self, request, context):
        return pb.GetServerInfoResponse(version="1.2.0", backend="pytorch", tensor_parallel_size=1, world_size=1)


class Client(AskingClient):
    SERVICE = SERVICE
    REPEATS = "all"
    TRIMS = True
    NAMES_STOP = False
    ABORT = "ok"
    HEALTH_V1 = False
    LOADS = False
    BUNDLE = False

    GUIDES = {"json_schema": "GUIDE_TYPE_JSON_SCHEMA", "regex": "GUIDE_TYPE_REGEX"}

    def __init__(self, target):
        super().__init__(target)
        self.stub = rpc.TrtllmServiceStub(self.channel)
        self.pb = pb

    def request(self, ids, rid, stream=False, **wanted):
        message = pb.GenerateRequest(
            request_id=rid,
            tokenized=pb.TokenizedInput(input_token_ids=ids),
            sampling_config=pb.SamplingConfig(
                beam_width=1,
                num_return_sequences=wanted.get("n", 1),
                temperature=wanted.get("temperature", 1.0),
                seed=wanted.get("seed"),
            ),
            output_config=pb.OutputConfig(logprobs=wanted.get("logprobs"), exclude_input_from_output=True),
            max_tokens=wanted["max_tokens"],
            stop_token_ids=wanted.get("stop_token_ids", []),
            ignore_eos=wanted.get("ignore_eos", False),
            streaming=stream,
        )
        for name, guide in self.GUIDES.items():
            if name in wanted:
                message.guided_decoding.guide_type = getattr(pb.GuidedDecodingParams, guide)
                message.guided_decoding.guide = wanted[name]
        return message

    def read(self, response):
        return Message.of(response, ids=("token_ids", "output_token_ids"), index="sequence_index")

    def abort(self, rid):
        return self.stub.Abort(pb.AbortRequest(request_id=rid), timeout=10)

    def healthy(self, reply):
        return reply.status.strip().lower() == "ok"
