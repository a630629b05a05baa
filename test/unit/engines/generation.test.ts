/** One Generate stream with messages that engines seldom send, or never should. */
import { describe, expect, test } from "bun:test";
import type { Channel, StreamHandler } from "../../../src/engines/channel.ts";
import { GenerateResponseDecoder } from "../../../src/engines/decode.ts";
import { dialectByName, unknownFacts } from "../../../src/engines/dialects.ts";
import type { ChoiceFinish, EngineError, GenerateRequest, TokenLogprobs } from "../../../src/engines/engine.ts";
import type { EngineFacts } from "../../../src/engines/facts.ts";
import { startGeneration } from "../../../src/engines/generation.ts";
import { GrpcError, GrpcStatus } from "../../../src/engines/grpc-error.ts";
import { type DialectName, dialectPackage } from "../../support/proto-package.ts";

type Plain = Record<string, unknown>;

/** Starts a generation on a channel whose messages the test gives. */
function begin(name: DialectName, request: Partial<GenerateRequest> = {}, known: Partial<EngineFacts> = {}) {
  const dialect = dialectByName(name)!;
  const proto = dialectPackage(name);
  let handler: StreamHandler | undefined;
  let bytes = new Uint8Array(0);
  let cancels = 0;
  const channel: Channel = {
    unary: () => Promise.reject(new Error("not asked")),
    serverStream(_path, request, given) {
      handler = given;
      bytes = Uint8Array.from(request);
      return {
        cancel() {
          cancels++;
          given.onEnd(new GrpcError(GrpcStatus.CANCELLED, "cancelled by the client"));
        },
        pause() {},
        resume() {},
      };
    },
    close() {},
  };
  const seen = {
    ids: [] as [number, ...number[]][],
    logprobs: [] as (TokenLogprobs | undefined)[],
    prompt: [] as TokenLogprobs[],
    finishes: [] as ChoiceFinish[],
    ends: [] as (EngineError | undefined)[],
  };
  const peer = {
    channel,
    rules: dialect.generate,
    decoder: new GenerateResponseDecoder(dialect.generate.layout),
    facts: { ...unknownFacts(dialect), ...known },
  };
  let aborts = 0;
  const call = startGeneration(
    peer,
    { requestId: "r", tokenIds: Uint32Array.of(1, 2, 3), sampling: {}, stream: true, ...request },
    {
      onChunk(chunk) {
        seen.ids.push([chunk.index, ...chunk.tokenIds.subarray(0, chunk.count)]);
        seen.logprobs.push(chunk.outputLogprobs);
        if (chunk.promptLogprobs !== undefined) seen.prompt.push(chunk.promptLogprobs);
      },
      onFinish: (finish) => seen.finishes.push(finish),
      onIdle() {},
      onEnd: (error) => seen.ends.push(error),
    },
    () => aborts++,
  );
  return {
    seen,
    call,
    isSent: () => handler !== undefined,
    /** The request as it went out. */
    sent: () => proto.decode("GenerateRequest", bytes),
    cancels: () => cancels,
    aborts: () => aborts,
    send(...messages: Plain[]) {
      for (const message of messages) {
        const bytes = proto.encode("GenerateResponse", message);
        handler!.onMessage(bytes, 0, bytes.length);
      }
    },
    end: (error?: GrpcError) => handler!.onEnd(error),
  };
}

test("several choices of SGLang are asked for as a stream, whatever was wanted: else they would come one after another", () => {
  const { seen, send, end, sent } = begin("sglang", { stream: false, sampling: { n: 2 } });
  expect(sent()).toMatchObject({ stream: true, sampling_params: { n: 2 } });
  expect(begin("sglang", { stream: false }).sent()["stream"]).toBeFalsy();
  send(
    { chunk: { token_ids: [8], index: 1 } },
    { chunk: { token_ids: [7] } },
    { complete: { output_ids: [8], finish_reason: "stop", completion_tokens: 1, index: 1 } },
    { complete: { output_ids: [7], finish_reason: "stop", completion_tokens: 1 } },
  );
  end();
  expect(seen.ids).toEqual([
    [1, 8],
    [0, 7],
  ]);
  expect(seen.finishes.map(({ index }) => index)).toEqual([1, 0]);
  expect(seen.ends).toEqual([undefined]);
});

describe.each(["vllm", "sglang", "tokenspeed", "trtllm", "mlx"] as const)("%s says too much", (dialect) => {
  const ids = dialect === "trtllm" ? "output_token_ids" : "output_ids";
  const index = dialect === "trtllm" ? "sequence_index" : "index";

  test("a second Complete and tokens behind the first change nothing", () => {
    const { seen, send, end } = begin(dialect);
    send(
      { chunk: { token_ids: [1, 2], completion_tokens: 2 } },
      { complete: { [ids]: [2], finish_reason: "stop", completion_tokens: 2 } },
      { complete: { [ids]: [2], finish_reason: "length", completion_tokens: 2 } },
      { chunk: { token_ids: [9] } },
    );
    end();
    expect(seen.ids).toEqual([[0, 1, 2]]);
    expect(seen.finishes).toMatchObject([{ reason: "stop", completionTokens: 2 }]);
    expect(seen.ends).toEqual([undefined]);
  });

  if (dialect === "mlx") return; // makes one choice only
  test("nor do they of one of several choices, while another goes on", () => {
    const { seen, send, end } = begin(dialect, { sampling: { n: 2, temperature: 1 } });
    const first = { complete: { [ids]: [1], finish_reason: "stop", completion_tokens: 1 } };
    send({ chunk: { token_ids: [1] } }, { chunk: { token_ids: [5], [index]: 1 } }, first, first);
    send({ chunk: { token_ids: [9] } }, { chunk: { token_ids: [6], [index]: 1 } });
    send({ complete: { [ids]: [6], finish_reason: "length", completion_tokens: 2, [index]: 1 } });
    end();
    expect(seen.ids).toEqual([
      [0, 1],
      [1, 5],
      [1, 6],
    ]);
    expect(seen.finishes).toMatchObject([
      { index: 0, reason: "stop", completionTokens: 1 },
      { index: 1, reason: "length", completionTokens: 2 },
    ]);
    expect(seen.ends).toEqual([undefined]);
  });
});

test("chunks without tokens give nothing, of whatever dialect", () => {
  for (const dialect of ["vllm", "sglang", "tokenspeed", "trtllm", "mlx"] as const) {
    const { seen, send } = begin(dialect);
    send({ chunk: {} }, { chunk: { prompt_tokens: 3 } });
    expect(seen.ids).toEqual([]);
  }
});

test("stray chunks of a request that does not stream are ignored", () => {
  const { seen, send, end } = begin("trtllm", { stream: false });
  send(
    { chunk: { token_ids: [1] } },
    { complete: { output_token_ids: [1, 2], finish_reason: "length", completion_tokens: 2 } },
  );
  end();
  expect(seen.ids).toEqual([[0, 1, 2]]);
});

test("all tokens again in a Complete are not given twice, and counted once; trimmed ones count", () => {
  for (const [dialect, ids] of [
    ["trtllm", "output_token_ids"],
    ["tokenspeed", "output_ids"],
  ] as const) {
    const { seen, send, end } = begin(dialect);
    send(
      { chunk: { token_ids: [1, 2], completion_tokens: 2 } },
      { chunk: { token_ids: [3], completion_tokens: 3 } },
      { complete: { [ids]: [1, 2, 3], finish_reason: "stop", completion_tokens: 4 } },
    );
    end();
    expect(seen.ids.flatMap(([, ...tokens]) => tokens)).toEqual([1, 2, 3]);
    expect(seen.finishes).toMatchObject([{ reason: "stop", completionTokens: 4 }]);
  }
});

test("prompt logprobs that only the end brings come once, without a value for the first token", () => {
  const { seen, send, end } = begin("trtllm", { sampling: { promptLogprobs: 1, n: 2 } });
  const prompt = [1, 2, 3].map((token_id) => ({
    token_id,
    logprob: -token_id,
    top_logprobs: [{ token_id, logprob: -token_id }],
  }));
  send({ chunk: { token_ids: [9] } }, { chunk: { token_ids: [8], sequence_index: 1 } });
  for (const sequence_index of [0, 1])
    send({
      complete: {
        output_token_ids: [9],
        sequence_index,
        finish_reason: "stop",
        prompt_logprobs: prompt,
        logprobs: prompt,
      },
    });
  end();
  expect(seen.prompt).toEqual([
    {
      tokenIds: [1, 2, 3],
      logprobs: [null, -2, -3],
      top: [
        { tokenIds: [], logprobs: [] },
        { tokenIds: [2], logprobs: [-2] },
        { tokenIds: [3], logprobs: [-3] },
      ],
    },
  ]);
  expect(seen.logprobs.every((logprobs) => logprobs === undefined)).toBe(true);
  expect(seen.ids).toEqual([[0, 9], [1, 8], [0]]);
});

test("a choice that was not asked for breaks the generation, and the engine is told", () => {
  const { seen, send, cancels } = begin("tokenspeed");
  send({ chunk: { token_ids: [1], index: 3 } }, { chunk: { token_ids: [2] } });
  expect(cancels()).toBe(1);
  expect(seen.ids).toEqual([]);
  expect(seen.ends).toMatchObject([{ kind: "failed", message: "the engine sent choice 3 of 1" }]);
});

describe("reasons", () => {
  test.each([
    ["sglang", "abort", "abort"],
    ["sglang", "", "error"],
    ["tokenspeed", "tool_calls", "error"],
    ["trtllm", "stop_word", "stop"],
    ["trtllm", "", "stop"],
    ["trtllm", "timeout", "error"],
    ["trtllm", "cancelled", "abort"],
    ["mlx", "abort", "error"],
    ["vllm", "repetition", "stop"],
    ["vllm", "constructor", "error"],
  ] as const)("%s '%s' is %s", (dialect, finish_reason, reason) => {
    const { seen, send } = begin(dialect);
    send({ complete: { finish_reason } });
    expect(seen.finishes).toMatchObject([{ reason, rawReason: finish_reason }]);
  });
});

describe("ends", () => {
  test("OK without a Complete is a failure; after all Completes a bad end is none", () => {
    const cut = begin("sglang");
    cut.send({ chunk: { token_ids: [1] } });
    cut.end();
    expect(cut.seen.ends).toMatchObject([{ kind: "failed" }]);
    const whole = begin("sglang");
    whole.send({ complete: { finish_reason: "stop" } });
    whole.end(new GrpcError(GrpcStatus.UNAVAILABLE, "gone"));
    expect(whole.seen.ends).toEqual([undefined]);
  });

  test("a cancel of ours tells the engine twice over; one of the engine is its failure", () => {
    const ours = begin("mlx");
    ours.call.cancel();
    expect([ours.cancels(), ours.aborts()]).toEqual([1, 1]);
    expect(ours.seen.ends).toMatchObject([{ kind: "cancelled" }]);
    const theirs = begin("mlx");
    theirs.end(new GrpcError(GrpcStatus.CANCELLED, ""));
    expect(theirs.seen.ends).toMatchObject([{ kind: "failed", message: "the engine cancelled the request" }]);
  });
});

describe("what the engine cannot do", () => {
  test("is refused before anything is sent, once the caller has its call", async () => {
    const { seen, isSent, call } = begin("mlx", { sampling: { n: 2, minTokens: 3 } });
    expect(seen.ends).toEqual([]);
    await Promise.resolve();
    expect(isSent()).toBe(false);
    expect(seen.ends).toMatchObject([
      { kind: "invalid", message: "the engine of this model does not support n, min_tokens" },
    ]);
    call.cancel();
    expect(seen.ends).toHaveLength(1);
  });

  test("a call that is cancelled first ends as cancelled", async () => {
    const { seen, call } = begin("mlx", { tokenIds: new Uint32Array(0) });
    call.cancel();
    await Promise.resolve();
    expect(seen.ends).toMatchObject([{ kind: "cancelled" }]);
  });
});
