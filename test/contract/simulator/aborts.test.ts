import { describe, expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import { ask, type Client, type Plain, until, withEngine } from "./harness.ts";

const PROMPT = Array.from({ length: 100 }, (_, i) => 5000 + i);
const ENDLESS = { ignore_eos: true, max_tokens: 30_000 };
const ECHO = { output: "echo", speed: "1" } as const;

const abort = (client: Client, ...ids: string[]): Promise<Plain> =>
  client.unary("Abort", "vllm.grpc.engine.AbortRequest", "vllm.grpc.engine.AbortResponse", { request_ids: ids });

/** Starts a call and waits until some messages have come. */
async function begin(client: Client, request: Plain, messages: number) {
  let count = 0;
  let running: grpc.ClientReadableStream<Plain> | undefined;
  const reply = client.generate(request, (n, call) => {
    count = n;
    running = call;
  });
  await until(() => count >= messages, "the stream runs");
  return { reply, call: running! };
}

describe("the Abort call", () => {
  test("ends a stream with OK: an empty chunk and a Complete with `abort` and no ids; the blocks are free at once", () =>
    withEngine(ECHO, async (client, engine) => {
      const { reply } = await begin(client, ask(PROMPT, ENDLESS, { request_id: "a" }), 3);
      expect(engine.stats().engine.blocksInUse).toBeGreaterThan(6);
      await abort(client, "a");
      expect(engine.stats()).toMatchObject({ open: 0, abortedByRpc: 1, engine: { running: 0, blocksInUse: 0 } });
      expect(engine.stats().blocksFreedByAborts).toBeGreaterThan(6);
      const { status, chunks, completes } = await reply;
      expect(status).toBe(grpc.status.OK);
      expect(chunks.at(-1)).toMatchObject({ token_ids: [], prompt_tokens: 100 });
      expect(completes).toHaveLength(1);
      expect(completes[0]).toMatchObject({ finish_reason: "abort", output_ids: [], prompt_tokens: 100 });
    }));

  test("without stream the Complete carries the ids so far", () =>
    withEngine(ECHO, async (client, engine) => {
      const reply = client.generate(ask(PROMPT, ENDLESS, { request_id: "b", stream: false }));
      await until(() => engine.stats().engine.blocksInUse > 7, "some tokens are generated");
      await abort(client, "b");
      const { completes } = await reply;
      expect(completes[0]).toMatchObject({ finish_reason: "abort" });
      expect((completes[0]!["output_ids"] as number[]).length).toBe(completes[0]!["completion_tokens"] as number);
      expect((completes[0]!["output_ids"] as number[]).length).toBeGreaterThan(0);
    }));

  test("with n = 2 each index ends; twins under one id both end; unknown ids are ignored", () =>
    withEngine(ECHO, async (client, engine) => {
      const pair = await begin(client, ask(PROMPT, { ...ENDLESS, n: 2, temperature: 1 }, { request_id: "c" }), 4);
      const twin = await begin(client, ask(PROMPT, ENDLESS, { request_id: "c" }), 2);
      await abort(client, "nobody", "c");
      await abort(client);
      expect((await pair.reply).completes.map((c) => [c["index"] ?? 0, c["finish_reason"]])).toEqual([
        [0, "abort"],
        [1, "abort"],
      ]);
      expect((await twin.reply).completes).toHaveLength(1);
      expect(engine.stats()).toMatchObject({ open: 0, unknownAborts: 1, abortedByRpc: 2, engine: { blocksInUse: 0 } });
    }));

  test("a waiting request can be aborted before it runs", () =>
    withEngine({ ...ECHO, maxRunning: 1 }, async (client, engine) => {
      const first = await begin(client, ask(PROMPT, ENDLESS, { request_id: "first" }), 1);
      const second = client.generate(ask(PROMPT, ENDLESS, { request_id: "second" }));
      await until(() => engine.stats().engine.waiting === 1, "the second waits");
      await abort(client, "second");
      expect((await second).completes[0]).toMatchObject({ finish_reason: "abort" });
      expect(engine.stats().engine).toMatchObject({ running: 1, waiting: 0 });
      await abort(client, "first");
      await first.reply;
    }));
});

test("a cancel by the client frees the slot and the blocks", () =>
  withEngine(ECHO, async (client, engine) => {
    const { reply, call } = await begin(client, ask(PROMPT, ENDLESS), 3);
    call.cancel();
    expect((await reply).status).toBe(grpc.status.CANCELLED);
    await until(() => engine.stats().open === 0, "the cancel arrives");
    expect(engine.stats()).toMatchObject({ abortedByCancel: 1, engine: { running: 0, blocksInUse: 0 } });
    expect(engine.requests()[0]).toMatchObject({ outcome: "cancelled", promptTokens: 100 });
  }));

test("500 cancels at once leave neither calls nor blocks, and bystanders finish", () =>
  withEngine({ ...ECHO, maxRunning: 1000 }, async (client, engine) => {
    const victims = await Promise.all(Array.from({ length: 500 }, () => begin(client, ask(PROMPT, ENDLESS), 1)));
    const bystanders = Array.from({ length: 10 }, () => client.generate(ask(PROMPT, { max_tokens: 5 })));
    for (const { call } of victims) call.cancel();
    for (const reply of bystanders) expect(await reply).toMatchObject({ status: 0 });
    await until(() => engine.stats().open === 0, "all cancels arrive");
    expect(engine.stats()).toMatchObject({ abortedByCancel: 500, engine: { running: 0, waiting: 0, blocksInUse: 0 } });
  }));

test("FlushCache is refused while a request runs, and empties the prefix cache afterwards", () =>
  withEngine(ECHO, async (client, engine) => {
    const flush = () =>
      client.unary("FlushCache", "smg.grpc.common.FlushCacheRequest", "smg.grpc.common.FlushCacheResponse", {
        timeout_s: 0,
      });
    const { reply } = await begin(client, ask(PROMPT, ENDLESS, { request_id: "f" }), 1);
    expect(await flush()).toEqual({ message: "KV prefix cache reset refused; requests may be in flight" });
    await abort(client, "f");
    await reply;
    expect(engine.stats().engine.blocksCached).toBeGreaterThan(0);
    expect(await flush()).toMatchObject({ success: true });
    expect(engine.stats().engine.blocksCached).toBe(0);
    expect((await client.generate(ask(PROMPT, { max_tokens: 1 }))).completes[0]).not.toMatchObject({
      cached_tokens: 96,
    });
  }));
