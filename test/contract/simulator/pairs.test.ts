/** Two simulated engines that hand a prompt's KV over, as a gateway between them sees it. */
import { describe, expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import type { SimulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { type DialectClient, type Stream, withDialect } from "./dialect-client.ts";
import { type Plain, settings, settle, TABLES, until } from "./harness.ts";

type Dialect = "vllm" | "sglang" | "tokenspeed";

interface Side {
  readonly client: DialectClient;
  readonly engine: Simulator;
}

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);
const PROMPT = range(100, 100);

async function withPair(
  dialect: Dialect,
  changed: Partial<SimulatorOptions>,
  body: (prefill: Side, decode: Side) => Promise<void>,
): Promise<void> {
  await withDialect(dialect, { output: "echo", ...changed, role: "prefill" }, (prefillClient, prefill) =>
    withDialect(dialect, { output: "echo", ...changed, role: "decode" }, async (decodeClient, decode) => {
      await body({ client: prefillClient, engine: prefill }, { client: decodeClient, engine: decode });
      // Whatever happened, nothing is held in the end.
      await until(
        () => [prefill, decode].every((side) => side.stats().engine.blocksInUse === 0),
        "all blocks are free",
      );
    }),
  );
}

const finishReason = (stream: Stream) => stream.completes[0]?.["finish_reason"];

describe.each([
  ["sglang", "disaggregated_params", "max_new_tokens"],
  ["tokenspeed", "kv_bootstrap_info", "max_new_tokens"],
] as const)("%s", (dialect, member, maxTokens) => {
  const ask = (port: number, room: number | string, { prompt = PROMPT, tokens = 5, id = "r" } = {}): Plain => ({
    request_id: id,
    tokenized: { input_ids: prompt },
    sampling_params: { temperature: 0, [maxTokens]: tokens, ignore_eos: true },
    stream: true,
    [member]: { bootstrap_host: "127.0.0.1", bootstrap_port: port, bootstrap_room: room },
  });
  const port = ({ engine }: Side) => engine.bootstrapPort!;

  test("both legs run at once; the prompt is computed by one and decoded by the other", () =>
    withPair(dialect, {}, async (prefill, decode) => {
      for (const room of [0, 7]) {
        const request = ask(port(prefill), room);
        const [first, answer] = await Promise.all([prefill.client.generate(request), decode.client.generate(request)]);
        expect([first.status, answer.status]).toEqual([0, 0]);
        expect(first.completes[0]).toMatchObject({ completion_tokens: 1 });
        expect(finishReason(first)).toContain("length");
        // Echoed from the start: the first token is not lost, nor said twice.
        expect(answer.chunks.flatMap((chunk) => chunk["token_ids"] as number[])).toEqual(PROMPT.slice(0, 5));
        // The decode side tells what the prefill side had in its cache.
        expect(answer.completes[0]).toMatchObject({ cached_tokens: room === 0 ? 0 : 96 });
      }
      expect(prefill.engine.stats()).toMatchObject({ handover: { given: 2 }, finished: 2, pairing: { offers: 0 } });
      expect(decode.engine.stats()).toMatchObject({ handover: { taken: 2, failed: 0 }, finished: 2 });
      expect(decode.engine.blocks()[0]!.blocks).toEqual([]);
    }));

  test("whichever comes first waits for the other, and gives up after a while", () =>
    withPair(dialect, { handoverTimeoutSecs: 1.5 }, async (prefill, decode) => {
      for (const sides of [
        [prefill, decode],
        [decode, prefill],
      ] as const) {
        const request = ask(port(prefill), sides[0] === prefill ? 1 : 2);
        const early = sides[0].client.generate(request);
        await until(() => sides[0].engine.stats().open === 1, "the first has come");
        await Bun.sleep(30);
        expect((await Promise.all([early, sides[1].client.generate(request)])).map(({ status }) => status)).toEqual([
          0, 0,
        ]);
      }
      const alone = async (side: Side, room: number) => {
        const { status, details } = await side.client.generate(ask(port(prefill), room));
        expect(status).toBe(grpc.status.INTERNAL);
        expect(details).toContain("KV transfer failed: ");
        expect(side.engine.requests().at(-1)).toMatchObject({ outcome: "failed", details });
      };
      await Promise.all([alone(prefill, 9), alone(decode, 10)]);
    }));

  test("a room with another prompt fails both legs; a request without a room is refused", () =>
    withPair(dialect, {}, async (prefill, decode) => {
      const both = await Promise.all([
        prefill.client.generate(ask(port(prefill), 3)),
        decode.client.generate(ask(port(prefill), 3, { prompt: [...PROMPT.slice(0, -1), 7] })),
      ]);
      for (const { status, details } of both) {
        expect(status).toBe(grpc.status.INTERNAL);
        expect(details).toContain("room 3 belongs to another prompt");
      }
      for (const { client } of [prefill, decode]) {
        const { [member]: _, ...whole } = ask(0, 0);
        expect(await client.generate(whole)).toMatchObject({ status: grpc.status.INVALID_ARGUMENT });
      }
    }));

  test("a prefill whose decode side has left holds its place until it is aborted too", () =>
    withPair(dialect, { speed: "1", handoverTimeoutSecs: 30, transferTps: 100 }, async (prefill, decode) => {
      const request = ask(port(prefill), 4);
      const first = prefill.client.generate(request);
      const second = decode.client.generate(request);
      await until(() => prefill.engine.stats().engine.blocksPinned === 7, "the prompt is computed and kept");
      expect(prefill.engine.stats()).toMatchObject({ pairing: { offers: 1 }, open: 1, engine: { running: 0 } });
      for (const { client } of [decode, prefill]) await client.call("Abort", { request_id: "r", reason: "" });
      await until(() => prefill.engine.stats().open + decode.engine.stats().open === 0, "both are gone");
      await Promise.all([first, second]);
      expect(prefill.engine.stats().pairing).toMatchObject({ offers: 0 });
    }));

  test.each([
    ["prefill", { kind: "status", code: "UNAVAILABLE", after_tokens: 0 }],
    ["prefill", { kind: "status", code: "UNAVAILABLE", after_tokens: 1 }],
    ["prefill", { kind: "transfer-fail", message: "no route" }],
    ["decode", { kind: "transfer-fail", message: "no route" }],
  ] as const)("a fault on the %s leg, %j: both end, with nothing held", (where, fault) =>
    withPair(dialect, { handoverTimeoutSecs: 0.3 }, async (prefill, decode) => {
      (where === "prefill" ? prefill : decode).engine.setFault({ fault, times: 1 });
      const request = ask(port(prefill), 5);
      const [first, second] = await Promise.all([prefill.client.generate(request), decode.client.generate(request)]);
      if (fault.kind === "status") expect(first.status).toBe(grpc.status.UNAVAILABLE);
      else for (const { status } of [first, second]) expect(status).toBe(grpc.status.INTERNAL);
      expect(second.status).toBe(grpc.status.INTERNAL);
    }),
  );

  test("a decode that dies later leaves the prefill finished; a slow transfer is waited for", () =>
    withPair(dialect, {}, async (prefill, decode) => {
      decode.engine.setFault({ fault: { kind: "status", code: "UNAVAILABLE", after_tokens: 2 }, times: 1 });
      const request = ask(port(prefill), 6);
      const both = await Promise.all([prefill.client.generate(request), decode.client.generate(request)]);
      expect(both.map(({ status }) => status)).toEqual([0, grpc.status.UNAVAILABLE]);
      prefill.engine.setFault({ fault: { kind: "transfer-slow", ms: 120 }, times: 1 });
      const before = performance.now();
      const again = ask(port(prefill), 8);
      const slow = await Promise.all([prefill.client.generate(again), decode.client.generate(again)]);
      expect(slow.map(({ status }) => status)).toEqual([0, 0]);
      expect(performance.now() - before).toBeGreaterThanOrEqual(110);
    }));

  test("the room decides the rank that prefills", () =>
    withPair(dialect, { dataParallelSize: 3 }, async (prefill, decode) => {
      for (const room of [4, 6]) {
        const request = ask(port(prefill), room);
        await Promise.all([prefill.client.generate(request), decode.client.generate(request)]);
      }
      expect(prefill.engine.requests().map(({ rank }) => rank)).toEqual([1, 0]);
    }));
});

test("SGLang shows its role and where to meet", () =>
  withPair("sglang", {}, async (prefill, decode) => {
    for (const [side, mode] of [
      [prefill, "prefill"],
      [decode, "decode"],
    ] as const) {
      const { server_args } = (await side.client.call("GetServerInfo")) as { server_args: { fields: Plain } };
      expect(JSON.stringify(server_args)).toContain(`"${mode}"`);
    }
    expect(JSON.stringify(await prefill.client.call("GetServerInfo"))).toContain(String(prefill.engine.bootstrapPort));
  }));

describe("vLLM", () => {
  const ask = (sampling: Plain, params?: Plain, rest: Plain = {}): Plain => ({
    request_id: "r",
    tokenized: { input_ids: PROMPT },
    sampling_params: { temperature: 0, ignore_eos: true, ...sampling },
    stream: true,
    ...(params === undefined ? {} : { kv_transfer_params_json: JSON.stringify(params) }),
    ...rest,
  });
  const first = (params?: Plain, rest: Plain = {}) => ask({ max_tokens: 1 }, params, { stream: false, ...rest });
  const GIVE = { do_remote_decode: true, do_remote_prefill: false };
  const handoffOf = (reply: Stream) => JSON.parse(reply.completes[0]!["kv_transfer_params_json"] as string) as Plain;

  test("NIXL: the prefill's last message tells where its blocks are; fetched, they are free and the prompt counts as cached", () =>
    withPair("vllm", { kvConnector: "nixl", engineId: "e1" }, async (prefill, decode) => {
      const info = await Promise.all([prefill, decode].map(({ client }) => client.call("GetServerInfo")));
      expect(info.map((each) => [each["kv_connector"], each["kv_role"], each["kv_engine_id"]])).toEqual([
        ["NixlConnector", "kv_producer", "e1"],
        ["NixlConnector", "kv_consumer", "e1"],
      ]);
      const reply = await prefill.client.generate(first(GIVE));
      const handoff = handoffOf(reply);
      const { bootstrapPort } = prefill.engine;
      expect(handoff).toEqual({
        do_remote_prefill: true,
        do_remote_decode: false,
        remote_block_ids: range(0, 7),
        remote_engine_id: "e1",
        remote_request_id: "r",
        remote_host: "127.0.0.1",
        remote_port: bootstrapPort,
        tp_size: 1,
      });
      expect(reply.completes[0]!["kv_transfer_params"]).toEqual({
        remote_host: "127.0.0.1",
        remote_port: bootstrapPort,
      });
      expect(prefill.engine.stats().engine).toMatchObject({ blocksPinned: 7, blocksInUse: 7, running: 0 });
      const answer = await decode.client.generate(ask({ max_tokens: 5 }, handoff));
      expect(answer.chunks.flatMap((chunk) => chunk["token_ids"] as number[])).toEqual(PROMPT.slice(0, 5));
      expect(answer.completes[0]).toMatchObject({ cached_tokens: 99 });
      await until(() => prefill.engine.stats().engine.blocksPinned === 0, "the blocks are let go");
      expect(prefill.engine.stats().handover).toMatchObject({ given: 1 });
      expect(decode.engine.stats().handover).toMatchObject({ taken: 1, recomputed: 0 });
      // What came over can be found by the next prompt.
      expect(decode.engine.match(Uint32Array.from(PROMPT))).toBe(96);
    }));

  test("NIXL: what ended by itself, or has several samples, hands nothing on", () =>
    withPair("vllm", { kvConnector: "nixl", output: "answer", outputTokens: 3 }, async (prefill) => {
      const ended = await prefill.client.generate(ask({ max_tokens: 50, ignore_eos: false }, GIVE, { stream: false }));
      expect(finishReason(ended)).toBe("stop");
      const samples = await prefill.client.generate(
        ask({ max_tokens: 1, n: 2, temperature: 1 }, GIVE, { stream: false }),
      );
      for (const { completes } of [ended, samples])
        expect(completes.map((each) => each["kv_transfer_params_json"] ?? "")).toEqual(completes.map(() => ""));
      expect(prefill.engine.stats().engine.blocksPinned).toBe(0);
    }));

  test.each([
    ["another prompt", { tokenized: { input_ids: range(0, 50) } }, {}],
    ["an engine of another name", {}, { remote_engine_id: "e9" }],
    ["other blocks", {}, { remote_block_ids: [1] }],
    ["an unknown request", {}, { remote_request_id: "gone" }],
    ["a port where nobody listens", {}, { remote_port: 1 }],
  ] as const)("NIXL: %s fails the decode", (_, rest, changed) =>
    withPair("vllm", { kvConnector: "nixl", kvLeaseSecs: 0.2 }, async (prefill, decode) => {
      const handoff = handoffOf(await prefill.client.generate(first(GIVE)));
      const { status, details } = await decode.client.generate(
        ask({ max_tokens: 5 }, { ...handoff, ...changed }, rest),
      );
      expect({ status, details }).toEqual({
        status: grpc.status.INTERNAL,
        details: expect.stringContaining("KV transfer failed: ") as unknown as string,
      });
      expect(decode.engine.stats()).toMatchObject({ failed: 1, handover: { failed: 1, taken: 0 } });
    }),
  );

  test("NIXL: parameters that lack something are left aside, and the prompt is computed", () =>
    withPair("vllm", { kvConnector: "nixl" }, async (_prefill, decode) => {
      const answer = await decode.client.generate(ask({ max_tokens: 2 }, { do_remote_prefill: true }));
      expect(answer).toMatchObject({ status: 0 });
      expect(answer.completes[0]).toMatchObject({ cached_tokens: 0 });
      expect(decode.engine.stats().handover).toMatchObject({ recomputed: 1, taken: 0 });
    }));

  test("blocks are let go when the decode is refused or aborted, and when nobody comes", () =>
    withPair("vllm", { kvConnector: "nixl", kvLeaseSecs: 1.5 }, async (prefill, decode) => {
      const pinned = () => prefill.engine.stats().engine.blocksPinned;
      const handoff = handoffOf(await prefill.client.generate(first(GIVE)));
      await decode.client.generate(ask({ max_tokens: 5, top_p: 7 }, handoff));
      await until(() => pinned() === 0, "refused");
      expect(prefill.engine.stats().handover).toMatchObject({ dropped: 1, expired: 0 });

      prefill.engine.setFault({ fault: { kind: "transfer-slow", ms: 60_000 }, times: 1 });
      const slow = handoffOf(await prefill.client.generate(first(GIVE)));
      const answer = decode.client.generate(ask({ max_tokens: 5 }, slow));
      await until(() => decode.engine.stats().open === 1, "the decode waits");
      await settle(2);
      await decode.client.call("Abort", { request_ids: ["r"] });
      await answer;
      await until(() => pinned() === 0, "aborted");
      expect(prefill.engine.stats().handover).toMatchObject({ dropped: 2, expired: 0 });

      await prefill.client.generate(first(GIVE));
      expect(pinned()).toBe(7);
      await until(() => pinned() === 0, "the lease has run out");
      expect(prefill.engine.stats().handover).toMatchObject({ dropped: 2, expired: 1, given: 0 });
    }));

  test("Mooncake: both sides know the transfer's id, or else the request's", () =>
    withPair("vllm", { kvConnector: "mooncake", dataParallelSize: 2 }, async (prefill, decode) => {
      const info = await prefill.client.call("GetServerInfo");
      expect(info).toMatchObject({ kv_connector: "MooncakeConnector", kv_role: "kv_producer" });
      const id = String(info["kv_engine_id"]);
      const { bootstrapPort } = prefill.engine;
      const take = {
        do_remote_decode: false,
        do_remote_prefill: true,
        transfer_id: "xfer-1",
        remote_engine_id: `${id}_dp1`,
        remote_bootstrap_addr: `http://127.0.0.1:${bootstrapPort}`,
      };
      const reply = await prefill.client.generate(first({ ...GIVE, transfer_id: "xfer-1" }, { data_parallel_rank: 1 }));
      expect(reply.completes[0]!["kv_transfer_params_json"] ?? "").toBe("");
      expect(prefill.engine.stats().ranks.map(({ blocksPinned }) => blocksPinned)).toEqual([0, 7]);
      const answer = await decode.client.generate(ask({ max_tokens: 2 }, take));
      expect(answer).toMatchObject({ status: 0 });
      expect(answer.completes[0]).toMatchObject({ cached_tokens: 99 });

      await prefill.client.generate(first({ ...GIVE, transfer_id: "xfer-2" }, { data_parallel_rank: 0 }));
      const wrong = await decode.client.generate(ask({ max_tokens: 2 }, { ...take, transfer_id: "xfer-2" }));
      expect(wrong.details).toContain(`engine ${id}_dp1 was expected, this is ${id}_dp0`);

      await prefill.client.generate(first());
      const typed = { kv_transfer_params: { remote_host: "127.0.0.1", remote_port: bootstrapPort } };
      expect(await decode.client.generate(ask({ max_tokens: 2 }, undefined, typed))).toMatchObject({ status: 0 });
      expect(prefill.engine.stats().handover).toMatchObject({ given: 2 });
      expect(decode.engine.stats().handover).toMatchObject({ taken: 2, failed: 1 });
    }));

  test("without a connector the parameters mean nothing", () =>
    withDialect("vllm", { output: "echo" }, async (client, engine) => {
      const reply = await client.generate(first(GIVE));
      expect(reply.completes[0]!["kv_transfer_params_json"] ?? "").toBe("");
      expect(engine.stats().engine.blocksInUse).toBe(0);
      expect(await client.call("GetServerInfo")).toMatchObject({ kv_connector: "", kv_role: "" });
    }));
});

describe("over HTTP", () => {
  async function post({ port }: Simulator, body: Plain): Promise<{ status: number; reply: Plain }> {
    const response = await fetch(`http://127.0.0.1:${port}/v1/completions`, {
      method: "POST",
      body: JSON.stringify({ prompt: PROMPT, max_tokens: 3, ignore_eos: true, ...body }),
    });
    return { status: response.status, reply: (await response.json()) as Plain };
  }

  async function withHttpPair(
    changed: Partial<SimulatorOptions>,
    body: (prefill: Simulator, decode: Simulator) => Promise<void>,
  ): Promise<void> {
    const engines: Simulator[] = [];
    try {
      for (const role of ["prefill", "decode"] as const)
        engines.push(
          await startSimulator(settings({ dialect: "openai", speed: "instant", ...changed, role }), {
            tokenizerCacheDir: TABLES,
          }),
        );
      await body(engines[0]!, engines[1]!);
      await until(() => engines.every((each) => each.stats().engine.blocksInUse === 0), "all blocks are free");
    } finally {
      for (const engine of engines) await engine.stop();
    }
  }

  test("SGLang's members of the body", () =>
    withHttpPair({ flavor: "sglang" }, async (prefill, decode) => {
      const room = { bootstrap_host: "127.0.0.1", bootstrap_port: prefill.bootstrapPort, bootstrap_room: 11 };
      const both = await Promise.all([post(prefill, room), post(decode, room)]);
      expect(both.map(({ status }) => status)).toEqual([200, 200]);
      expect(both[0]!.reply).toMatchObject({ usage: { completion_tokens: 1 } });
      expect(both[1]!.reply).toMatchObject({ usage: { completion_tokens: 3 } });
      expect(await post(decode, {})).toMatchObject({ status: 400 });
    }));

  test("vLLM's parameters go through the prefill's answer", () =>
    withHttpPair({ flavor: "vllm", kvConnector: "nixl" }, async (prefill, decode) => {
      const give = { kv_transfer_params: { do_remote_decode: true, do_remote_prefill: false }, max_tokens: 1 };
      const { reply } = await post(prefill, give);
      const { kv_transfer_params } = reply;
      expect(kv_transfer_params).toMatchObject({ do_remote_prefill: true, remote_port: prefill.bootstrapPort });
      const answer = await post(decode, { kv_transfer_params });
      expect(answer.reply).toMatchObject({
        usage: { completion_tokens: 3, prompt_tokens_details: { cached_tokens: 99 } },
      });
      expect(prefill.stats().handover).toMatchObject({ given: 1 });
      expect((await post(decode, { kv_transfer_params })).status).toBe(500);
    }));
});

test.each([
  ["vllm", { role: "prefill" }, "role: vLLM needs kv-connector for it"],
  ["mlx", { role: "decode" }, "role: mlx has no pairs"],
  ["sglang", { kvConnector: "nixl" }, "kv-connector: only vLLM has connectors"],
] as const)("%s %j can't be", (dialect, changed, message) => {
  expect(withDialect(dialect, changed, async () => undefined)).rejects.toThrow(message);
});
