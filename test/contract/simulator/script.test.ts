import { describe, expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import { ask, connect, until, withScript } from "./harness.ts";

/** "hello" in the demo model's tokens, and something else. */
const HELLO = [14990];
const OTHER = [9707];

describe("answers", () => {
  test("the first rule whose pattern is found speaks; other prompts get the usual answer", () =>
    withScript(
      `
- matches: "^hel+o"
  token_ids: [11, 12, 13, 14, 15, 16]
  tokens_per_message: [1, 3, 2]
  logprobs: [-0.5, -0.25]
- contains: hello
  text: never reached
`,
      async (client) => {
        const { chunks, completes, ids } = await client.generate(ask(HELLO, { logprobs: 1 }));
        expect(ids).toEqual([11, 12, 13, 14, 15, 16, 151645]);
        expect(chunks.map((chunk) => (chunk["token_ids"] as number[]).length)).toEqual([1, 3, 2, 1]);
        expect(chunks[0]).toMatchObject({
          output_logprobs: { token_logprobs: [-0.5], top_logprobs: [{ values: [-0.5] }] },
        });
        expect(chunks[1]).toMatchObject({ completion_tokens: 3 });
        expect(completes[0]).toMatchObject({ finish_reason: "stop", output_ids: [151645] });
        expect((await client.generate(ask(OTHER))).ids.length).toBeGreaterThan(20);
      },
    ));

  test("texts, finish reasons, a limit on uses; max_tokens still cuts", () =>
    withScript(
      `
rules:
  - text: "Hello!"
    finish_reason: error
    times: 1
  - token_ids: [1, 2, 3, 4]
`,
      async (client) => {
        const first = await client.generate(ask(OTHER));
        expect(first.ids).toEqual([9707, 0]);
        expect(first.completes[0]).toMatchObject({ finish_reason: "error" });
        const second = await client.generate(ask(OTHER, { max_tokens: 3 }));
        expect(second.ids).toEqual([1, 2, 3]);
        expect(second.completes[0]).toMatchObject({ finish_reason: "length" });
      },
    ));

  test("a delay holds the first token back, ms_per_token the others", () =>
    withScript(
      `
- contains: hello
  token_ids: [1, 2, 3]
  delay_ms: 60
- token_ids: [1, 2, 3]
  ms_per_token: 30
`,
      async (client) => {
        const times: number[] = [];
        const started = performance.now();
        const note = () => times.push(performance.now() - started);
        await client.generate(ask(HELLO), note);
        expect(times[0]).toBeGreaterThan(55);
        expect(times.at(-1)! - times[0]!).toBeLessThan(60);
        times.length = 0;
        const before = performance.now();
        await client.generate(ask(OTHER), () => times.push(performance.now() - before));
        expect(times.at(-1)).toBeGreaterThan(85);
      },
    ));
});

describe("faults", () => {
  const script = (fault: string) => `
- contains: hello
  token_ids: [1, 2, 3, 4, 5]
  fault: ${fault}
`;

  test("hang: no message, and the call stays open until the client leaves", () =>
    withScript(script("hang"), async (client, engine) => {
      const call = client.channel.makeServerStreamRequest(
        "/vllm.grpc.engine.VllmEngine/Generate",
        (b: Buffer) => b,
        (b) => b,
        Buffer.from([0x12, 0x04, 0x12, 0x02, 0x8e, 0x75]),
      );
      let events = 0;
      call.on("data", () => events++);
      call.on("error", () => {
        // The cancel below.
      });
      await until(() => engine.stats().open === 1, "the call arrives");
      await Bun.sleep(50);
      expect(events).toBe(0);
      call.cancel();
      await until(() => engine.stats().open === 0, "the call ends");
      expect(engine.stats()).toMatchObject({ abortedByCancel: 1 });
    }));

  test("a status before the first message, and one in mid-stream", async () => {
    await withScript(
      script("{ kind: status, code: RESOURCE_EXHAUSTED, message: queue is full é% }"),
      async (client, engine) => {
        const reply = await client.generate(ask(HELLO));
        expect(reply).toMatchObject({
          status: grpc.status.RESOURCE_EXHAUSTED,
          details: "queue is full é%",
          chunks: [],
        });
        expect(engine.requests()[0]).toMatchObject({ outcome: "faulted", details: "queue is full é%" });
      },
    );
    await withScript(script("{ kind: status, after_tokens: 2, code: 14, message: gone }"), async (client, engine) => {
      const reply = await client.generate(ask(HELLO));
      expect(reply).toMatchObject({ status: grpc.status.UNAVAILABLE, details: "gone", ids: [1, 2] });
      expect(reply.completes).toHaveLength(0);
      expect(engine.stats().engine.blocksInUse).toBe(0);
    });
  });

  test("a reset of the stream leaves the neighbours alone", () =>
    withScript(script("{ kind: reset, after_tokens: 3, code: INTERNAL_ERROR }"), async (client) => {
      const [reply, neighbour] = await Promise.all([client.generate(ask(HELLO)), client.generate(ask(OTHER))]);
      expect(reply.ids).toEqual([1, 2, 3]);
      expect(reply.status).toBe(grpc.status.INTERNAL);
      expect(neighbour.status).toBe(0);
    }));

  test("a cut connection takes every call with it", () =>
    withScript(
      `${script("{ kind: disconnect, after_tokens: 2 }")}
- contains: Hello
  fault: hang
`,
      async (client, engine) => {
        const neighbour = client.generate(ask(OTHER));
        await until(() => engine.stats().open === 1, "the neighbour is there");
        const reply = await client.generate(ask(HELLO));
        expect(reply.ids).toEqual([1, 2]);
        expect(reply.status).toBe(grpc.status.UNAVAILABLE);
        expect((await neighbour).status).toBe(grpc.status.UNAVAILABLE);
        await until(() => engine.stats().open === 0, "nothing is left open");
      },
    ));

  test("GOAWAY without an error: the stream ends well, the next call opens a new connection", () =>
    withScript(script("{ kind: goaway, after_tokens: 2 }"), async (client, engine) => {
      const reply = await client.generate(ask(HELLO));
      expect(reply.status).toBe(0);
      expect(reply.ids).toHaveLength(6);
      expect((await client.generate(ask(OTHER))).status).toBe(0);
      await until(() => engine.stats().connections === 1, "the old connection closes");
    }));

  test("GOAWAY with an error ends the stream", () =>
    withScript(script("{ kind: goaway, after_tokens: 2, code: ENHANCE_YOUR_CALM }"), async (client, engine) => {
      const reply = await client.generate(ask(HELLO));
      expect(reply.status).not.toBe(0);
      expect(reply.completes).toHaveLength(0);
      expect(engine.stats()).toMatchObject({ open: 0, faulted: 1 });
    }));

  test("no-complete: all tokens and OK, but no last message", () =>
    withScript(script("no-complete"), async (client) => {
      const reply = await client.generate(ask(HELLO));
      expect(reply).toMatchObject({ status: 0, completes: [] });
      expect(reply.ids).toHaveLength(6);
    }));

  test("exit: the process ends after k tokens", async () => {
    const codes: number[] = [];
    await withScript(
      script("{ kind: exit, after_tokens: 2, code: 3 }"),
      async (client, engine) => {
        const seen = client.generate(ask(HELLO));
        await until(() => codes.length === 1, "the exit");
        expect(codes).toEqual([3]);
        await engine.stop();
        expect((await seen).ids).toEqual([1, 2]);
      },
      {},
      { exit: (code) => codes.push(code) },
    );
  });

  test("a non-streaming call can be hit too", () =>
    withScript(script("{ kind: status, after_tokens: 2, code: INTERNAL }"), async (client) => {
      const reply = await client.generate(ask(HELLO, {}, { stream: false }));
      expect(reply).toMatchObject({ status: grpc.status.INTERNAL, completes: [] });
    }));
});

test("another client still gets answers after a cut connection", () =>
  withScript("- {token_ids: [1], fault: {kind: disconnect}, times: 1}", async (client, engine) => {
    expect((await client.generate(ask(OTHER))).status).toBe(grpc.status.UNAVAILABLE);
    const second = connect(engine.port);
    expect((await second.generate(ask(OTHER))).status).toBe(0);
    second.close();
  }));
