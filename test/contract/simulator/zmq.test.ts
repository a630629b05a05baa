/** KV events over ZeroMQ, as a peer sees them that knows ZMTP 3.0 and nothing of the simulated engine. */
import { expect, test } from "bun:test";
import { ask, settle, until, withEngine } from "./harness.ts";

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);
const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
};

interface ZmqPeer {
  readonly messages: Buffer[][];
  /** Numbers of the messages: their last frame but one. */
  readonly numbers: () => bigint[];
  readonly isClosed: () => boolean;
  send(frames: readonly Uint8Array[]): void;
  end(): void;
}

const frame = (body: Uint8Array, flags: number) => Buffer.concat([Uint8Array.of(flags, body.length), body]);

/** Connects with a socket of a type, and greets. */
async function dial(port: number, type: "SUB" | "DEALER"): Promise<ZmqPeer> {
  const messages: Buffer[][] = [];
  let input = Buffer.alloc(0);
  let isGreeted = false;
  let isReady = false;
  let isClosed = false;
  const frames: Buffer[] = [];
  const take = (count: number): Buffer => {
    const taken = input.subarray(0, count);
    input = input.subarray(count);
    return taken;
  };
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_socket, chunk) {
        input = Buffer.concat([input, chunk]);
        if (!isGreeted) {
          if (input.length < 64) return;
          const theirs = take(64);
          expect(theirs.toString("hex")).toBe(
            `ff00000000000000007f0300${Buffer.from("NULL").toString("hex").padEnd(104, "0")}`,
          );
          isGreeted = true;
        }
        for (;;) {
          const long = (input[0]! & 2) !== 0;
          if (input.length < (long ? 9 : 2)) return;
          const size = long ? Number(input.readBigUInt64BE(1)) : input[1]!;
          if (input.length < (long ? 9 : 2) + size) return;
          const [flags] = take(long ? 9 : 2);
          const body = Buffer.from(take(size));
          if ((flags! & 4) !== 0) {
            expect(body.subarray(0, 18).toString("latin1")).toBe("\x05READY\x0bSocket-Type");
            isReady = true;
            continue;
          }
          frames.push(body);
          if ((flags! & 1) === 0) messages.push(frames.splice(0));
        }
      },
      close() {
        isClosed = true;
      },
    },
  });
  const greeting = Buffer.alloc(64);
  greeting.set([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1]);
  greeting.set(Buffer.from("NULL"), 12);
  // In pieces, as a network may deliver it.
  socket.write(greeting.subarray(0, 11));
  socket.write(greeting.subarray(11));
  const value = Buffer.from(type);
  socket.write(
    frame(Buffer.concat([Buffer.from(`\x05READY\x0bSocket-Type`), Uint8Array.of(0, 0, 0, value.length), value]), 4),
  );
  await until(() => isReady, "the handshake");
  const peer: ZmqPeer = {
    messages,
    numbers: () => messages.map((parts) => parts.at(-2)!.readBigUInt64BE()),
    isClosed: () => isClosed,
    send: (parts) => {
      for (const [i, part] of parts.entries()) socket.write(frame(part, i < parts.length - 1 ? 1 : 0));
    },
    end: () => socket.end(),
  };
  return peer;
}

async function subscriber(port: number, topic = ""): Promise<ZmqPeer> {
  const peer = await dial(port, "SUB");
  peer.send([Buffer.concat([Uint8Array.of(1), Buffer.from(topic)])]);
  // There is no answer to wait for.
  await settle(5);
  return peer;
}

const OPEN = { dialect: "openai", speed: "instant", kvEventsZmq: 0, kvEventsReplay: 0 } as const;

async function say(port: number, prompt: readonly number[], rank?: number): Promise<Record<string, unknown>> {
  const body = JSON.stringify({ prompt, max_tokens: 1, routed_dp_rank: rank });
  const response = await fetch(`http://127.0.0.1:${port}/v1/completions`, { method: "POST", body });
  return (await response.json()) as Record<string, unknown>;
}

test("each rank publishes at its own port, numbered from 0; the usage tells what was cached", () =>
  withEngine({ ...OPEN, dataParallelSize: 2 }, async (_client, engine) => {
    const { port } = engine.kvPorts!;
    expect(engine.stats().kvPorts).toEqual(engine.kvPorts);
    const [first, second, other] = await Promise.all([subscriber(port), subscriber(port + 1), subscriber(port, "kv")]);
    for (const rank of [0, 1, 0]) await say(engine.port, range(rank * 1000, 40), rank);
    await until(() => second.messages.length === 1, "the batch of rank 1");
    // The second time the prompt of rank 0 changed nothing.
    await say(engine.port, range(5000, 40), 0);
    await until(() => first.messages.length === 2, "both batches of rank 0");
    expect(first.numbers()).toEqual([0n, 1n]);
    expect(second.numbers()).toEqual([0n]);
    expect(first.messages.map(([topic]) => topic!.length)).toEqual([0, 0]);
    expect(first.messages[0]![2]!.toString("latin1")).toContain("block_hashes");
    expect(other.messages).toEqual([]);
    expect(await say(engine.port, range(1000, 40), 1)).toMatchObject({
      usage: { prompt_tokens: 40, prompt_tokens_details: { cached_tokens: 32 } },
    });
    expect(await say(engine.port, [1, 2, 3], 2)).toMatchObject({ error: { code: 400 } });
    for (const peer of [first, second, other]) peer.end();
  }));

test("a replay gives what there is from a number on, lost batches too, and then its end", () =>
  withEngine(OPEN, async (_client, engine) => {
    const { port, replayPort } = engine.kvPorts!;
    const live = await subscriber(port);
    for (let i = 0; i < 4; i++) {
      if (i === 2) engine.setFault({ fault: "kv-gap", times: 1 });
      await say(engine.port, range(i * 1000, 20));
    }
    await until(() => live.messages.length === 3, "what came through");
    expect(live.numbers()).toEqual([0n, 1n, 3n]);
    const asker = await dial(replayPort!, "DEALER");
    asker.send([Buffer.alloc(0), number(2)]);
    await until(() => asker.messages.at(-1)?.at(-1)?.length === 0, "the end of the replay");
    expect(asker.numbers()).toEqual([2n, 3n, 2n ** 64n - 1n]);
    expect(asker.messages[1]).toEqual(live.messages[2]!);
    engine.setFault({ fault: "kv-reset", times: 1 });
    await until(live.isClosed, "the connection is cut");
    asker.end();
  }));

test("a restart keeps the ports and begins anew; SGLang tells where its events are", () =>
  withEngine({ ...OPEN, flavor: "sglang", kvEventsReplay: undefined }, async (_client, engine) => {
    const { port } = engine.kvPorts!;
    const before = await subscriber(port);
    await say(engine.port, range(0, 40));
    await until(() => before.messages.length === 1, "a batch");
    await engine.restart({ blockSize: 8 });
    await until(before.isClosed, "the old connection breaks");
    const after = await subscriber(port);
    await say(engine.port, range(0, 40));
    await until(() => after.messages.length === 1, "a batch of the new life");
    expect(after.numbers()).toEqual([0n]);
    const info = (await (await fetch(`http://127.0.0.1:${engine.port}/get_server_info`)).json()) as Record<
      string,
      unknown
    >;
    expect(info).toMatchObject({ page_size: 8, dp_size: 1 });
    expect(JSON.parse(info["kv_events_config"] as string)).toMatchObject({
      publisher: "zmq",
      endpoint: `tcp://*:${port}`,
      replay_endpoint: null,
    });
    after.end();
  }));

test("an engine of a gRPC dialect has the sockets as well", () =>
  withEngine({ output: "echo", speed: "instant", kvEventsZmq: 0 }, async (client, engine) => {
    const feed = await subscriber(engine.kvPorts!.port);
    await client.generate(ask(range(0, 40), { max_tokens: 1 }));
    await until(() => feed.messages.length === 1, "a batch");
    expect(feed.numbers()).toEqual([1n]);
    feed.end();
  }));
