/** A request that one worker prefills and another decodes. */
import { describe, expect, test } from "bun:test";
import { dialectByName, unknownFacts } from "../../../../src/engines/dialects.ts";
import {
  type ChoiceFinish,
  EngineError,
  type GenerateRequest,
  type TokenLogprobs,
} from "../../../../src/engines/engine.ts";
import { UnsupportedError } from "../../../../src/errors.ts";
import type { WorkerEntry } from "../../../../src/fleet/snapshot.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { MODEL } from "../../server/gateway.ts";
import { type WorldOptions, world } from "./world.ts";

const UNAVAILABLE = new EngineError("unavailable", "gone");
const BREAKER = { failures: 1, rate: 0, successes: 1, timeoutMs: 60_000, windowMs: 60_000 };
const NIXL = { kv_connector: "NixlConnector" };
const TOLD = { kind: "transfer", json: '{"do_remote_prefill":true,"remote_block_ids":[1]}' } as const;

/** Workers that prefill, then as many that decode. */
function pairs(dialect: string, count: number, more: Partial<WorkerEntry> = {}, options: WorldOptions = {}) {
  const roles = ["prefill", "decode"].flatMap((role) => Array.from({ length: count }, () => role));
  const workers = roles.map((role) => ({ dialect, role, ...more }) as Partial<WorkerEntry>);
  const its = world(2 * count, { breaker: BREAKER, ...options, workers });
  const states = () => its.workers.map(({ slot }) => its.board.breaker.state(slot));
  const queued = () => its.workers.map(({ slot }) => its.board.queuedTokens(slot));
  const aborted = () => its.engines.map((engine) => engine.aborted);
  return { ...its, states, queued, aborted };
}

/** What a client gets of a generation. */
function answered(w: ReturnType<typeof pairs>, request: Partial<GenerateRequest> = {}) {
  const chunks: { ids: number[]; cached: number; prompt: TokenLogprobs | undefined }[] = [];
  const finishes: ChoiceFinish[] = [];
  const ends: (EngineError | undefined)[] = [];
  const order: string[] = [];
  const call = w.dispatch.generate(
    { requestId: "r", tokenIds: new Uint32Array(10), sampling: {}, stream: true, ...request },
    {
      onChunk({ tokenIds, count, cachedTokens: cached, promptLogprobs: prompt }) {
        chunks.push({ ids: [...tokenIds.subarray(0, count)], cached, prompt });
        order.push("chunk");
      },
      onFinish(finish) {
        finishes.push(finish);
        order.push("finish");
      },
      onIdle: () => order.push("idle"),
      onEnd(error) {
        ends.push(error);
        order.push("end");
      },
    },
  );
  return { call, chunks, finishes, ends, order };
}

describe("engines that get a request at once", () => {
  const meeting = (more?: Partial<WorkerEntry>, options?: WorldOptions) => pairs("sglang", 1, more, options);

  test("are told one place and one room, and the answer is that of the one that decodes", () => {
    const w = meeting({ bootstrapPort: 9001 });
    const { chunks, finishes, ends } = answered(w);
    const [prefill, decode] = w.asked;
    expect(w.asked.map(w.workerOf)).toEqual([0, 1]);
    expect(prefill!.request.handover).toMatchObject({ kind: "bootstrap", host: "engine", port: 9001 });
    expect(decode!.request).toEqual(prefill!.request);
    expect([w.running(), w.queued()]).toEqual([
      [1, 1],
      [10, 0],
    ]);
    prefill!.chunk([7], { cachedTokens: 4 }).finish({ completionTokens: 1, cachedTokens: 4 });
    expect(w.queued()).toEqual([0, 0]);
    prefill!.end();
    expect(w.running()).toEqual([0, 1]);
    decode!.chunk([7], { cachedTokens: 10 }).chunk([8], { cachedTokens: 10 });
    decode!.finish({ completionTokens: 2, cachedTokens: 10 }).end();
    expect(chunks).toEqual([
      { ids: [7], cached: 4, prompt: undefined },
      { ids: [8], cached: 4, prompt: undefined },
    ]);
    expect(finishes).toMatchObject([{ completionTokens: 2, cachedTokens: 4 }]);
    expect([ends, w.running(), w.board.bookings()]).toEqual([[undefined], [0, 0], 0]);
    expect(w.asked.map(({ cancelled }) => cancelled)).toEqual([0, 0]);
  });

  test("meet in rooms of their own, of the size that the dialect has for them", () => {
    for (const [dialect, rooms] of [
      ["sglang", 2n ** 31n - 1n],
      ["tokenspeed", 2n ** 63n],
    ] as const) {
      const w = pairs(dialect, 1);
      for (let i = 0; i < 50; i++) w.generate();
      const seen = w.asked.map(({ request }) => (request.handover as { room: bigint }).room);
      expect(new Set(seen).size).toBe(50);
      expect(seen.every((room) => room >= 0n && room < rooms)).toBe(true);
      expect(seen.some((room) => room > rooms / 4n)).toBe(true);
    }
  });

  test("the port is the worker's, a label's, the engine's own, or that of SGLang; an address is without its brackets", () => {
    const meet = (more: Partial<WorkerEntry>) => {
      const w = meeting(more);
      w.generate();
      const { host, port } = w.asked[0]!.request.handover as { host: string; port: number };
      return `${host} ${port}`;
    };
    expect(meet({})).toBe("engine 8998");
    expect(meet({ labels: { bootstrap_port: "9000" } })).toBe("engine 9000");
    expect(meet({ labels: { disaggregation_bootstrap_port: "9002" } })).toBe("engine 9002");
    expect(meet({ labels: { bootstrap_port: "many" } })).toBe("engine 8998");
    expect(meet({ bootstrapPort: 9003, labels: { bootstrap_port: "9000" } })).toBe("engine 9003");
    expect(meet({ url: "grpc://[2001:db8::7]:30000" })).toBe("2001:db8::7 8998");
  });

  test("a rank that prefills is chosen by the room, where the engine goes by it", () => {
    const facts = { ...unknownFacts(dialectByName("sglang")!), dataParallelSize: 4 };
    for (const rank of [0, 3]) {
      const w = meeting({ facts, rank });
      for (let i = 0; i < 20; i++) w.generate();
      for (const { request } of w.asked) {
        expect((request.handover as { room: bigint }).room % 4n).toBe(BigInt(rank));
        expect(request.dataParallelRank).toBeUndefined(); // its servicer does not read it
      }
    }
  });

  test("the logprobs of the prompt come from the one that prefills, with the first tokens, even if these are faster", async () => {
    const prompt: TokenLogprobs = { tokenIds: [1], logprobs: [-1], top: [] };
    const wrong: TokenLogprobs = { tokenIds: [2], logprobs: [-2], top: [] };
    for (const first of ["prefill", "decode"]) {
      const w = meeting();
      const { chunks, ends, order } = answered(w, { sampling: { promptLogprobs: 0 } });
      const [prefill, decode] = w.asked;
      const prefilled = () => prefill!.chunk([7], { cachedTokens: 3, promptLogprobs: prompt });
      if (first === "prefill") prefilled();
      decode!.chunk([7], { promptLogprobs: wrong }).chunk([8]).idle();
      if (first === "decode") {
        expect(order).toEqual([]);
        prefilled();
      }
      expect(chunks).toEqual([
        { ids: [7], cached: 3, prompt },
        { ids: [8], cached: 3, prompt: undefined },
      ]);
      prefill!.finish({ completionTokens: 1, cachedTokens: 3 }).end();
      decode!.finish({ completionTokens: 2 }).end();
      expect([ends, order]).toEqual([[undefined], ["chunk", "chunk", "idle", "finish", "end"]]);
    }
  });

  test("an answer that is over waits for the count of cached tokens, but not for long", async () => {
    const w = meeting();
    const soon = answered(w);
    w.asked[1]!.chunk([7]).finish({ completionTokens: 1, cachedTokens: 10 }).end();
    expect(soon.order).toEqual(["chunk"]);
    w.asked[0]!.finish({ completionTokens: 1, cachedTokens: 6 }).end();
    expect(soon.order).toEqual(["chunk", "finish", "end"]);
    expect(soon.finishes).toMatchObject([{ cachedTokens: 6 }]);
    const never = answered(w);
    w.asked[3]!.chunk([7]).finish({ completionTokens: 1, cachedTokens: 10 }).end();
    await w.clock.pass(1000);
    expect(never.order).toEqual(["chunk", "finish", "end"]);
    expect(never.finishes).toMatchObject([{ cachedTokens: 0 }]);
    expect([w.asked[2]!.cancelled, w.board.bookings()]).toEqual([1, 0]);
  });

  test("without the word of the one that prefills its place is given back when the answer begins", () => {
    const w = meeting();
    const { ends } = answered(w);
    const [prefill, decode] = w.asked;
    decode!.chunk([7]);
    expect([w.running(), w.queued()]).toEqual([
      [0, 1],
      [0, 0],
    ]);
    prefill!.end(UNAVAILABLE);
    decode!.chunk([8]).finish({ completionTokens: 2 }).end();
    expect([ends, w.states()]).toEqual([[undefined], ["closed", "closed"]]);
  });
});

describe.each(["sglang", "tokenspeed", "vllm"])("a failure of one half, %s", (dialect) => {
  const started = (count: number) => {
    const w = pairs(dialect, count, { labels: NIXL }, { rules: { initialBackoffMs: 0 } });
    return { w, ...answered(w) };
  };
  const isRelay = dialect === "vllm";

  test("that prefills is its worker's only, and the next pair is without it", () => {
    const { w, ends } = started(2);
    const failing = w.workerOf(w.asked[0]!);
    w.asked[0]!.end(UNAVAILABLE);
    expect(w.states().filter((state) => state !== "closed")).toHaveLength(1);
    expect(w.states()[failing]).not.toBe("closed");
    const again = w.asked.slice(isRelay ? 1 : 2);
    expect(again.map(({ request }) => request.requestId)).toEqual(isRelay ? ["r-2"] : ["r-2", "r-2"]);
    expect(w.workerOf(again[0]!)).toBe(1 - failing);
    if (!isRelay) expect(w.asked[1]!.cancelled).toBe(1);
    again[0]!.finish({ completionTokens: 1 }).end();
    w.asked.at(-1)!.chunk([7]).finish({ completionTokens: 1 }).end();
    expect([ends, w.board.bookings(), w.told]).toEqual([[undefined], 0, ["retried generate"]]);
  });

  test("that decodes is its worker's only, and the next pair may prefill where this one did", () => {
    const w = pairs(dialect, 1, { labels: NIXL });
    const { ends } = answered(w);
    if (isRelay) w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
    w.asked[1]!.end(UNAVAILABLE);
    expect(w.states()).toEqual(["closed", "open"]);
    expect([ends, w.board.bookings()]).toEqual([[UNAVAILABLE], 0]);
    if (!isRelay) expect(w.asked[0]!.cancelled).toBe(1);
    const two = started(2);
    if (isRelay) two.w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
    const failing = two.w.workerOf(two.w.asked[1]!);
    two.w.asked[1]!.end(UNAVAILABLE);
    if (isRelay) two.w.asked[2]!.finish({ completionTokens: 1, handover: TOLD }).end();
    expect(two.w.workerOf(two.w.asked[3]!)).toBe(5 - failing);
    two.w.asked[3]!.chunk([7]).finish({ completionTokens: 1 }).end();
    if (!isRelay) two.w.asked[2]!.finish({ completionTokens: 1 }).end();
    expect([two.ends, two.w.board.bookings()]).toEqual([[undefined], 0]);
  });

  test("once the answer has begun is told", () => {
    const { w, ends, chunks } = started(2);
    w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
    w.asked[1]!.chunk([7]).end(UNAVAILABLE);
    expect([ends, chunks.length, w.asked.length, w.board.bookings()]).toEqual([[UNAVAILABLE], 1, 2, 0]);
  });

  test("is also to end a request that is not over, prefilled or not", () => {
    for (const begins of [false, true]) {
      const { w, ends, finishes } = started(1);
      if (begins) w.asked[0]!.chunk([7]);
      w.asked[0]!.finish({ reason: "abort", completionTokens: 0 }).end();
      expect(w.states()).toEqual(["open", "closed"]);
      expect(ends.map((error) => error?.kind)).toEqual(["failed"]);
      expect([finishes.length, w.board.bookings()]).toEqual([0, 0]);
    }
  });

  test("a worker that is found not to move is replaced", () => {
    const { w } = started(2);
    const first = w.asked.length;
    w.fleet.lost.lost(w.workers[w.workerOf(w.asked[0]!)]!.slot);
    expect([w.asked[0]!.cancelled, w.asked.length]).toEqual([1, 2 * first]);
    expect(w.workerOf(w.asked[first]!)).not.toBe(w.workerOf(w.asked[0]!));
  });
});

describe("engines that get a request one after the other", () => {
  const relay = (labels: Record<string, string> = NIXL, more: Partial<WorkerEntry> = {}, options?: WorldOptions) =>
    pairs("vllm", 1, { labels, ...more }, options);
  const SAMPLING = { temperature: 0.7, maxTokens: 50, minTokens: 3, stop: ["x"], stopTokenIds: [5], seed: 1 };

  test("NIXL: one token first, for nobody, and what its engine says goes to the other as it is", () => {
    const w = relay();
    const { chunks, finishes, ends } = answered(w, { sampling: SAMPLING });
    expect(w.asked).toHaveLength(1);
    expect([w.running(), w.queued()]).toEqual([
      [1, 1],
      [10, 0],
    ]);
    const { sampling, stream, handover, requestId } = w.asked[0]!.request;
    expect({ sampling, stream, requestId }).toEqual({
      sampling: { temperature: 0, maxTokens: 1, ignoreEos: true },
      stream: false,
      requestId: "r",
    });
    expect(handover).toEqual({ kind: "transfer", json: '{"do_remote_decode":true,"do_remote_prefill":false}' });
    w.asked[0]!.chunk([9], { cachedTokens: 4 }).finish({ completionTokens: 1, cachedTokens: 4, handover: TOLD }).end();
    expect(w.running()).toEqual([0, 1]);
    expect(w.asked[1]!.request).toMatchObject({ requestId: "r", sampling: SAMPLING, stream: true, handover: TOLD });
    w.asked[1]!.chunk([7], { cachedTokens: 9 }).finish({ completionTokens: 1, cachedTokens: 9 }).end();
    expect(chunks).toEqual([{ ids: [7], cached: 4, prompt: undefined }]);
    expect(finishes).toMatchObject([{ cachedTokens: 4, completionTokens: 1 }]);
    expect([ends, w.board.bookings()]).toEqual([[undefined], 0]);
  });

  test("an engine that says nothing of its cache is done without: the other prefills again", () => {
    const w = relay();
    const { ends } = answered(w);
    w.asked[0]!.finish({ completionTokens: 1 }).end();
    expect(w.asked[1]!.request.handover).toBeUndefined();
    w.asked[1]!.chunk([7]).finish({ completionTokens: 1 }).end();
    expect(ends).toEqual([undefined]);
    expect(w.timed).toEqual(["nixl", "0: prefill 0", "0: first token 0"]);
  });

  test("the logprobs of the prompt are those of the prefill, of which the other is not asked", () => {
    const prompt: TokenLogprobs = { tokenIds: [1], logprobs: [-1], top: [] };
    const w = relay();
    const { chunks } = answered(w, { sampling: { promptLogprobs: 2 } });
    expect(w.asked[0]!.request.sampling.promptLogprobs).toBe(2);
    w.asked[0]!.chunk([9], { promptLogprobs: prompt }).finish({ completionTokens: 1, handover: TOLD }).end();
    expect(w.asked[1]!.request.sampling).toEqual({});
    w.asked[1]!.chunk([7]).chunk([8]);
    expect(chunks.map((chunk) => chunk.prompt)).toEqual([prompt, undefined]);
  });

  test.each(["NixlConnector", "MooncakeConnector"])("%s: several choices are left to the one that decodes", (name) => {
    const w = relay({ kv_connector: name, kv_engine_id: "abc" });
    const { chunks, finishes } = answered(w, { sampling: { n: 2 } });
    expect(w.asked.map(w.workerOf)).toEqual([1]);
    expect([w.asked[0]!.request.handover, w.asked[0]!.request.sampling.n]).toEqual([undefined, 2]);
    expect(w.running()).toEqual([0, 1]);
    w.asked[0]!.chunk([7], { cachedTokens: 2 }).finish({ completionTokens: 1, cachedTokens: 2 });
    w.asked[0]!.chunk([8], { index: 1 }).finish({ index: 1, completionTokens: 1 }).end();
    expect([chunks.length, finishes[0]!.cachedTokens, w.board.bookings()]).toEqual([2, 2, 0]);
  });

  const MOONCAKE = { kv_connector: "MooncakeConnector", kv_engine_id: "abc" };
  const handovers = (labels: Record<string, string>, more: Partial<WorkerEntry>, request: Partial<GenerateRequest>) => {
    const w = relay(labels, more);
    answered(w, request);
    w.asked[0]!.finish({ completionTokens: 1, handover: TOLD });
    return w.asked.map(({ request: { handover } }) =>
      handover?.kind === "transfer" ? JSON.parse(handover.json) : handover,
    );
  };

  test("Mooncake: both are told of a transfer, and the other where its engine is", () => {
    const [prefill, decode] = handovers(MOONCAKE, { bootstrapPort: 9000 }, {});
    expect(prefill).toEqual({
      do_remote_decode: true,
      do_remote_prefill: false,
      transfer_id: expect.stringMatching(/^xfer-[0-9a-f]{8}-[0-9a-f]{4}-7/),
    });
    expect(decode).toEqual({
      do_remote_decode: false,
      do_remote_prefill: true,
      transfer_id: prefill.transfer_id,
      remote_engine_id: "abc",
      remote_bootstrap_addr: "http://engine:9000",
    });
    const [, sixth] = handovers(MOONCAKE, { url: "grpc://[2001:db8::7]:30000" }, {});
    expect(sixth.remote_bootstrap_addr).toBe("http://[2001:db8::7]:8998");
  });

  test("Mooncake with an engine that is not known: the other is told where to ask", () => {
    const place = { kind: "remote", host: "engine", port: 8998 };
    expect(handovers({ kv_connector: "MooncakeConnector" }, {}, {})).toEqual([undefined, place]);
    const facts = { ...unknownFacts(dialectByName("vllm")!), dataParallelSize: 2 };
    expect(handovers(MOONCAKE, { facts }, {})).toEqual([undefined, place]);
  });

  test("Mooncake: the engine of a rank has the rank in its name, whoever chose it", () => {
    const facts = { ...unknownFacts(dialectByName("vllm")!), dataParallelSize: 4 };
    expect(handovers(MOONCAKE, { facts, rank: 3 }, {})[1].remote_engine_id).toBe("abc_dp3");
    expect(handovers(MOONCAKE, { facts }, { dataParallelRank: 2 })[1].remote_engine_id).toBe("abc_dp2");
  });

  test("another connector, or none: the other is told what the first says, if anything", () => {
    expect(handovers({}, {}, {})).toEqual([undefined, JSON.parse(TOLD.json)]);
    expect(handovers({ kv_connector: "LMCacheConnectorV1" }, {}, { sampling: { n: 2 } })).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("ranks that were chosen are told, each half its own", () => {
    const w = pairs("vllm", 1, { labels: NIXL, rank: 1 });
    answered(w);
    w.asked[0]!.finish({ completionTokens: 1, handover: TOLD });
    expect(w.asked.map(({ request }) => request.dataParallelRank)).toEqual([1, 1]);
  });

  test("take their times: of the prefill, of the cache's way, and to the first token", async () => {
    const w = pairs("vllm", 1, { labels: NIXL });
    answered(w);
    await w.clock.pass(300);
    w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
    await w.clock.pass(50);
    w.asked[1]!.chunk([7]).chunk([8]);
    expect(w.timed).toEqual(["nixl", "0: prefill 0.3", "0: transfer 0.05", "0: first token 0.35"]);
    answered(w, { sampling: { n: 2 } }); // nobody prefills for it
    w.asked[2]!.chunk([7]);
    expect(w.timed).toHaveLength(4);

    const meeting = pairs("sglang", 1);
    answered(meeting);
    await meeting.clock.pass(100);
    meeting.asked[1]!.chunk([7]);
    await meeting.clock.pass(100);
    meeting.asked[0]!.finish({ completionTokens: 1 }).end();
    expect(meeting.timed).toEqual(["0: first token 0.1", "0: prefill 0.2"]);
  });

  test.each([
    ["vllm", "transfer failed"],
    ["sglang", "meeting failed"],
  ])("a cache that did not get over is counted: %s", (dialect, failed) => {
    const w = pairs(dialect, 2, { labels: NIXL });
    answered(w);
    if (dialect === "vllm") w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
    w.asked[1]!.end(new EngineError("failed", "the cache did not come"));
    expect(w.timed).toContain(failed);
    const other = pairs(dialect, 2, { labels: NIXL });
    answered(other);
    other.asked[0]!.end(UNAVAILABLE);
    expect(other.timed.filter((line) => line.endsWith("failed"))).toEqual([]);
  });

  test("the time to the first token is that of both together", async () => {
    const w = pairs("vllm", 1, { labels: NIXL }, { limits: { firstTokenMs: 2000 } });
    const { ends } = answered(w);
    await w.clock.pass(1500);
    w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
    await w.clock.pass(800);
    expect(ends.map((error) => error?.kind)).toEqual(["timeout"]);
    expect([w.states(), w.board.bookings()]).toEqual([["closed", "open"], 0]);
    const slow = pairs("vllm", 1, { labels: NIXL }, { limits: { firstTokenMs: 2000 } });
    answered(slow);
    await slow.clock.pass(2300);
    expect([slow.states(), slow.asked.length]).toEqual([["open", "closed"], 1]);
  });

  describe("given up", () => {
    test("while one prefills: it is told, and the place at the other is given back with its word", () => {
      const w = relay();
      const { call, ends } = answered(w);
      call.cancel();
      expect(ends.map((error) => error?.kind)).toEqual(["cancelled"]);
      expect(w.aborted()).toEqual([["r"], []]);
      expect(w.running()).toEqual([1, 1]);
      w.asked[0]!.finish({ reason: "abort", completionTokens: 0 }).end();
      expect([w.asked.length, w.board.bookings(), w.states()]).toEqual([1, 0, ["closed", "closed"]]);
    });

    test("when the prefill has just ended: the other is asked and called off, so that the blocks are freed", () => {
      const w = relay();
      const { call, chunks, ends } = answered(w);
      call.cancel();
      w.asked[0]!.chunk([9]).finish({ completionTokens: 1, handover: TOLD }).end();
      expect(w.asked[1]!.request.handover).toEqual(TOLD);
      expect(w.aborted()).toEqual([["r"], ["r"]]);
      w.asked[1]!.finish({ reason: "abort", completionTokens: 0 }).end();
      expect([chunks.length, ends.length, w.board.bookings()]).toEqual([0, 1, 0]);
      expect(w.states()).toEqual(["closed", "closed"]);
    });

    test("before the other has begun: it is told, and cut off when it begins all the same", () => {
      const w = relay();
      const { call, chunks } = answered(w);
      w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
      call.cancel();
      expect([w.aborted()[1], w.asked[1]!.cancelled]).toEqual([["r"], 0]);
      w.asked[1]!.chunk([7]);
      expect([w.asked[1]!.cancelled, chunks.length, w.board.bookings()]).toEqual([1, 0, 0]);
    });

    test("at engines that do not say a word: they are cut off after a second", async () => {
      const w = relay();
      answered(w).call.cancel();
      await w.clock.pass(900);
      expect(w.asked[0]!.cancelled).toBe(0);
      await w.clock.pass(200);
      expect([w.asked[0]!.cancelled, w.board.bookings(), w.clock.waits]).toEqual([1, 0, 0]);
    });

    test("in the middle of the answer", () => {
      const w = relay();
      const { call } = answered(w);
      w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
      w.asked[1]!.chunk([7]);
      call.cancel();
      expect([w.asked[1]!.cancelled, w.board.bookings()]).toEqual([1, 0]);
    });
  });
});

describe.each(["sglang", "tokenspeed"])("a client that leaves ends both halves at once, %s", (dialect) => {
  test.each(["queued", "prefill", "transfer", "decode"])("%s", (phase) => {
    const w = pairs(dialect, 1);
    const { call, ends } = answered(w);
    const [prefill, decode] = w.asked;
    if (phase !== "queued") prefill!.chunk([7]);
    if (phase === "transfer") prefill!.finish({ completionTokens: 1 }).end();
    if (phase === "decode") decode!.chunk([7]);
    call.cancel();
    expect(ends.map((error) => error?.kind)).toEqual(["cancelled"]);
    expect([prefill!.cancelled, decode!.cancelled]).toEqual([phase === "transfer" ? 0 : 1, 1]);
    expect([w.board.bookings(), w.states()]).toEqual([0, ["closed", "closed"]]);
  });
});

test("the first token that does not come is charged to who is known to be late, and else to nobody", async () => {
  const limits = { firstTokenMs: 1000 };
  const silent = pairs("sglang", 1, {}, { limits });
  const { ends } = answered(silent);
  await silent.clock.pass(1300);
  expect(ends.map((error) => error?.kind)).toEqual(["timeout"]);
  expect([silent.states(), silent.board.bookings()]).toEqual([["closed", "closed"], 0]);
  expect(silent.asked.map(({ cancelled }) => cancelled)).toEqual([1, 1]);
  const late = pairs("sglang", 1, {}, { limits });
  answered(late);
  late.asked[0]!.finish({ completionTokens: 1 }).end();
  await late.clock.pass(1300);
  expect(late.states()).toEqual(["closed", "open"]);
});

test("tokens that do not come while the client reads are charged to the half that decodes", async () => {
  const w = pairs("sglang", 1, {}, { limits: { interTokenMs: 1000 } });
  const { call, ends } = answered(w);
  w.asked[0]!.finish({ completionTokens: 1 }).end();
  w.asked[1]!.chunk([7]);
  call.pause();
  await w.clock.pass(5000);
  call.resume();
  expect(ends).toEqual([]);
  await w.clock.pass(1600);
  expect([ends[0]?.kind, w.states()]).toEqual(["timeout", ["closed", "open"]]);
});

test("only the half that decodes is slowed, also when it comes later", () => {
  const w = pairs("vllm", 1, { labels: NIXL });
  const { call } = answered(w);
  call.pause();
  w.asked[0]!.finish({ completionTokens: 1, handover: TOLD }).end();
  expect(w.asked.map(({ paused }) => paused)).toEqual([0, 1]);
  call.resume();
  expect(w.asked.map(({ resumed }) => resumed)).toEqual([0, 1]);
});

test("there is no hedge beside a pair", async () => {
  const w = pairs("sglang", 2, {}, { limits: { hedgeAfterMs: 100 } });
  answered(w);
  await w.clock.pass(1000);
  expect(w.asked).toHaveLength(2);
});

test("what had all that was wanted counts as good for both", () => {
  const w = pairs("sglang", 1);
  const { call } = answered(w);
  w.asked[1]!.chunk(encode("a"));
  call.cancel(true);
  expect([w.board.bookings(), w.states()]).toEqual([0, ["closed", "closed"]]);
});

test("engines that cannot share a request refuse it, and nothing is booked", () => {
  const roles = ["prefill", "decode"] as const;
  const w = world(2, { workers: roles.map((role) => ({ dialect: "mlx", role })) });
  expect(() => w.generate()).toThrow(UnsupportedError);
  expect([w.asked.length, w.board.bookings(), w.fleet.isSplit(w.fleet.model(MODEL))]).toEqual([0, 0, true]);
});
