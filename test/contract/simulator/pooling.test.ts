/** The simulated engine that gives vectors, seen by another implementation of gRPC. */
import { describe, expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import { ask, type Client, type Plain, until, withEngine, withScript } from "./harness.ts";

const REQUEST = "vllm.grpc.engine.EmbedRequest";
const RESPONSE = "vllm.grpc.engine.EmbedResponse";
const POOLING = { speed: "instant", poolingDim: 64, contextLength: 32 };
/** "hello" in the demo model's tokens. */
const HELLO = 14990;

const embed = (client: Client, ids: readonly number[], requestId = "e"): Promise<Plain> =>
  client.unary("Embed", REQUEST, RESPONSE, { request_id: requestId, tokenized: { input_ids: [...ids] } });
const vector = async (client: Client, ids: readonly number[]) => (await embed(client, ids))["embedding"] as number[];
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const refusal = (reply: Promise<unknown>): Promise<unknown> => reply.then(() => undefined).catch((error) => error);

describe("a simulated engine with pooling-dim", () => {
  test("gives unit vectors: equal for equal ids, near where tokens are shared, else far", () =>
    withEngine(POOLING, async (client) => {
      const reply = await embed(client, [1000, 2000, 3000, 4000]);
      expect(reply).toMatchObject({ prompt_tokens: 4, embedding_dim: 64 });
      const base = reply["embedding"] as number[];
      expect(base).toHaveLength(64);
      expect(dot(base, base)).toBeCloseTo(1, 5);
      expect(await vector(client, [1000, 2000, 3000, 4000])).toEqual(base);
      const near = dot(base, await vector(client, [1000, 2000, 3000, 5000]));
      const far = dot(base, await vector(client, [5000, 6000, 7000, 8000]));
      expect(near).toBeGreaterThan(0.55);
      expect(Math.abs(far)).toBeLessThan(0.45);
      // special tokens are around every text and say nothing of it
      expect(dot(base, await vector(client, [151644, 1000, 2000, 3000, 4000, 151645]))).toBeCloseTo(1, 5);
      expect(dot(await vector(client, [151645]), await vector(client, [151645]))).toBeCloseTo(1, 5);
    }));

  test("says that it does not generate, and refuses to; the context may be full", () =>
    withEngine(POOLING, async (client, engine) => {
      const info = await client.unary(
        "GetModelInfo",
        "vllm.grpc.engine.GetModelInfoRequest",
        "vllm.grpc.engine.GetModelInfoResponse",
      );
      expect([info["is_generation"] ?? false, info["max_context_length"]]).toEqual([false, 32]);
      expect(await client.generate(ask([HELLO]))).toMatchObject({
        status: grpc.status.INVALID_ARGUMENT,
        details: "This model does not support generation",
      });
      expect(await embed(client, new Array(32).fill(HELLO))).toMatchObject({ prompt_tokens: 32 });
      const tooLong = await refusal(embed(client, new Array(33).fill(HELLO)));
      expect(tooLong).toMatchObject({ code: grpc.status.INVALID_ARGUMENT });
      expect(engine.stats()).toMatchObject({ received: 3, refused: 2, finished: 1, open: 0 });
      expect(engine.requests().map(({ outcome }) => outcome)).toEqual(["refused", "finished", "refused"]);
    }));

  test("a whole cache can be one prompt", () =>
    withEngine({ ...POOLING, contextLength: 64, kvTokens: 64 }, async (client) => {
      expect(await embed(client, new Array(63).fill(HELLO))).toMatchObject({ prompt_tokens: 63 });
    }));

  test("what has no ids is refused in vLLM's words", () =>
    withEngine(POOLING, async (client) => {
      expect(await refusal(embed(client, []))).toMatchObject({ details: "The decoder prompt cannot be empty" });
      expect(await refusal(client.unary("Embed", REQUEST, RESPONSE, { request_id: "e" }))).toMatchObject({
        code: grpc.status.INVALID_ARGUMENT,
        details: "EmbedRequest requires tokenized input",
      });
    }));

  test("scripts delay, fail and hang; an abort ends the call", () =>
    withScript(
      `
- contains: hello
  times: 1
  fault: { kind: status, after_tokens: 0, code: RESOURCE_EXHAUSTED, message: full }
- contains: hello
  times: 1
  fault: { kind: hang }
- contains: hello
  times: 1
  delay_ms: 60
`,
      async (client, engine) => {
        expect(await refusal(embed(client, [HELLO]))).toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED });
        const hanging = refusal(embed(client, [HELLO], "stuck"));
        await until(() => engine.stats().open === 1, "the second request runs");
        await client.unary("Abort", "vllm.grpc.engine.AbortRequest", "vllm.grpc.engine.AbortResponse", {
          request_ids: ["stuck"],
        });
        expect(await hanging).toMatchObject({ code: grpc.status.INTERNAL });
        const started = performance.now();
        await embed(client, [HELLO]);
        expect(performance.now() - started).toBeGreaterThan(55);
        expect(engine.stats()).toMatchObject({ faulted: 1, abortedByRpc: 1, finished: 1, open: 0 });
      },
      { poolingDim: 8 },
    ));
});
