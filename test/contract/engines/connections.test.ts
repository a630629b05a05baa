/** Several connections of a channel to one engine: how many there are, and which one a call takes. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { resolveOptions } from "../../../src/config/resolve.ts";
import type { Channel } from "../../../src/engines/channel.ts";
import { createEngine } from "../../../src/engines/create.ts";
import type { Engine } from "../../../src/engines/engine.ts";
import { createFramingChannel } from "../../../src/engines/framing-channel.ts";
import { simulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { type FrameServer, type PeerConnection, startFrameServer } from "../../support/frame-server.ts";
import { NOTHING, OPTIONS, read, until } from "./channels.ts";

setDefaultTimeout(20_000);

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close();
});

describe.each(["framing", "grpc-js"] as const)("generations over %s", (transport) => {
  async function engines(connections: number): Promise<{ simulator: Simulator; engine: Engine }> {
    const args = ["--port", "0", "--decode-base-ms", "20"];
    const simulator = await startSimulator(resolveOptions(simulatorOptions, { args, env: {} }).values);
    open.push({ close: () => simulator.stop() });
    const worker = { url: `grpc://127.0.0.1:${simulator.port}`, dialect: "vllm" };
    const engine = createEngine(worker, { transport, keepaliveMs: 0, connections });
    open.push(engine);
    return { simulator, engine };
  }
  const generate = (engine: Engine, requestId: string, maxTokens: number) =>
    new Promise<unknown>((resolve) => {
      engine.generate(
        { requestId, stream: true, tokenIds: Uint32Array.of(5, 6, 7), sampling: { maxTokens, ignoreEos: true } },
        { onChunk() {}, onFinish() {}, onIdle() {}, onEnd: resolve },
      );
    });

  test.each([
    [1, 7, 1],
    [3, 2, 2],
    [3, 7, 3],
  ])("of %i allowed and %i generations at once there are %i", async (allowed, count, expected) => {
    const { simulator, engine } = await engines(allowed);
    const ends = Array.from({ length: count }, (_, i) => generate(engine, `r${i}`, 20));
    await until(() => simulator.stats().open === count);
    expect(simulator.stats().connections).toBe(expected);
    expect(await Promise.all(ends)).toEqual(Array(count).fill(undefined));
    expect(await generate(engine, "later", 2)).toBeUndefined();
    expect(simulator.stats().connections).toBe(expected);
  });
});

describe("a call goes on the connection with the fewest", () => {
  const calls = new Map<PeerConnection, number[]>();
  const counts = (peer: FrameServer) => peer.connections.map((one) => calls.get(one)?.length ?? 0);

  async function world(connections: number, maxStreams?: number): Promise<{ peer: FrameServer; channel: Channel }> {
    calls.clear();
    const peer = await startFrameServer(
      (connection, stream) => {
        calls.set(connection, [...(calls.get(connection) ?? []), stream]);
        connection.respond(stream);
      },
      maxStreams === undefined ? {} : { maxStreams },
    );
    const channel = createFramingChannel(peer.target, { ...OPTIONS, connections });
    open.push(peer, channel);
    return { peer, channel };
  }
  const call = (channel: Channel) => read(channel, "/a/b", NOTHING);
  const came = (peer: FrameServer, count: number) =>
    until(() => counts(peer).reduce((sum, one) => sum + one, 0) === count);
  function end(connection: PeerConnection | undefined): void {
    for (const stream of calls.get(connection!) ?? []) connection!.trailers(stream, "0");
    calls.set(connection!, []);
  }

  test("evenly, and where others have ended", async () => {
    const { peer, channel } = await world(3);
    const first = Array.from({ length: 9 }, () => call(channel));
    await came(peer, 9);
    expect(counts(peer)).toEqual([3, 3, 3]);
    end(peer.connections[1]);
    await until(() => first.filter(({ ends }) => ends === 1).length === 3);
    for (let i = 0; i < 3; i++) call(channel);
    await came(peer, 9);
    expect(counts(peer)).toEqual([3, 3, 3]);
  });

  test("and one that is lost is opened anew", async () => {
    const { peer, channel } = await world(2);
    const first = Array.from({ length: 4 }, () => call(channel));
    await came(peer, 4);
    peer.connections[0]!.socket.destroy();
    await until(() => first.filter(({ ends }) => ends === 1).length === 2);
    call(channel);
    await until(() => peer.connections.length === 3 && counts(peer)[2] === 1);
    expect(counts(peer)).toEqual([2, 2, 1]);
  });

  test("and one that goes away is replaced before its last call has ended", async () => {
    const { peer, channel } = await world(2);
    const [one] = [call(channel), call(channel)];
    await came(peer, 2);
    peer.connections[0]!.goaway(2 ** 31 - 1, 0);
    await until(async () => {
      call(channel);
      await Bun.sleep(20);
      return peer.connections.length === 3;
    });
    expect(one.ends).toBe(0);
    end(peer.connections[0]);
    expect(await one.done).toBeUndefined();
  });

  test("a peer that takes no more gets one more connection, however many there were to be", async () => {
    const { peer, channel } = await world(1, 2);
    call(channel);
    await came(peer, 1); // its limit is known from now on
    for (let i = 0; i < 4; i++) call(channel);
    await came(peer, 5);
    expect(counts(peer)).toEqual([2, 2, 1]);
    call(channel);
    await came(peer, 6);
    expect(counts(peer)).toEqual([2, 2, 2]);
  });
});
