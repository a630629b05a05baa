/** Gateways that share what they guess, over a real Redis. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/fleet/clock.ts";
import { type Share, startShare } from "../../../src/fleet/share.ts";
import { policyOf } from "../../../src/routing/policies/index.ts";
import { prefixIndex } from "../../../src/routing/prefix-index.ts";
import type { Logger } from "../../../src/telemetry/log.ts";
import { MetricRegistry } from "../../../src/telemetry/registry.ts";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import { StickyBoard } from "../../../src/threads/sticky-board.ts";
import { worker as candidate, SETTINGS, Surroundings } from "../../unit/routing/policies/support.ts";
import { hasRedis, ownRedis, type Server, startRedis } from "../history/servers.ts";

const WAIT_MS = 10_000;
const timing = { connectMs: 1000, beatMs: 100, pauseMs: 20, mostPauseMs: 200 };
const ids = (blocks: number, seed = 0) => Uint32Array.from({ length: blocks * 16 }, (_, i) => seed * 100_000 + i);

/** Where workers are that all gateways have, and the numbers of their members, which differ. */
const PLACES = ["10.0.0.5:50051", "10.0.0.6:50051"];

class Gateway {
  private readonly board = PrefixBoard.create(1, 4);
  private readonly clock = systemClock();
  private readonly metrics = new MetricRegistry();
  private readonly writer = this.board.writer();
  readonly index = prefixIndex(this.board, 0);
  readonly log: string[] = [];
  private readonly sticky = StickyBoard.create();
  private readonly policy = policyOf("manual");
  readonly members: Record<string, number[]>;
  readonly share: Share;

  constructor(url: string, places: readonly string[], more: Partial<Parameters<typeof startShare>[0]> = {}) {
    this.members = Object.fromEntries(
      places.map((place, slot) => [place, [this.writer.claim(slot, 0), this.writer.claim(slot, 1)]]),
    );
    const line =
      (level: string) =>
      (message: string, fields?: object): void =>
        void this.log.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
    const log: Logger = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
    this.share = startShare({
      url,
      outbox: this.writer,
      index: this.board.others(),
      workers: () => Object.entries(this.members).map(([place, members]) => ({ place, members })),
      clock: this.clock,
      log,
      metrics: this.metrics,
      timing,
      ...more,
    });
  }

  get isUp(): boolean {
    return this.share.counted()["collie_routing_share_up"]?.[0]?.value === 1;
  }

  counts(): Record<string, number> {
    const series = this.metrics.counted()["collie_routing_shared_blocks_total"] ?? [];
    return Object.fromEntries(series.map(({ labels, value }) => [labels[0]!, value]));
  }

  chain(prompt: Uint32Array) {
    return this.index.chain(this.index.root("m", 16), prompt, 16);
  }

  sends(prompt: Uint32Array, place: string, rank = 0): void {
    const chain = this.chain(prompt);
    const member = this.members[place]![rank]!;
    const from = this.index.match(chain).depth(member);
    this.index.promise(chain, from, member, Date.now());
  }

  knows(prompt: Uint32Array, place: string, rank = 0): number {
    return this.index.match(this.chain(prompt)).depth(this.members[place]![rank]!);
  }

  /** The worker that the policy `manual` sends a key to. */
  gives(routingKey: string, explains = false): string {
    const candidates = Object.entries(this.members).map(([place, [member]], i) =>
      candidate(i, { url: `grpc://${place}`, member: member! }),
    );
    const around = new Surroundings(candidates, Number.parseInt(crypto.randomUUID(), 16));
    const context = { ...around.context, index: this.index, sticky: this.sticky, now: Date.now() };
    const settings = { ...SETTINGS, sharesKeys: true };
    const ask = { tokens: 1, routingKey };
    return this.policy.choose(candidates, ask, { ...context, settings }, explains).worker.url;
  }

  tellsEvents(place: string): void {
    this.writer.setExact(this.members[place]![0]!, true);
  }

  close(): void {
    this.share.close();
    this.clock.close();
  }
}

async function until(what: string, is: () => boolean, ms = WAIT_MS): Promise<void> {
  const deadline = performance.now() + ms;
  while (!is()) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${ms} ms`);
    await Bun.sleep(5);
  }
}

(hasRedis ? describe : describe.skip)("what gateways share (needs redis-server or valkey-server)", () => {
  let redis: Server;
  const open: Gateway[] = [];
  const gateway = (...[places = PLACES, more, url = redis.url]: [(readonly string[])?, object?, string?]): Gateway => {
    const one = new Gateway(url, places, more);
    open.push(one);
    return one;
  };
  async function ready(...all: readonly Gateway[]): Promise<void> {
    for (const one of all) await until("the connection", () => one.isUp);
  }
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(() => {
    for (const one of open.splice(0)) one.close();
  });
  afterAll(() => redis.stop());

  test("is what one has sent where, by ranks, and only what is new", async () => {
    const a = gateway();
    const b = gateway([...PLACES].reverse());
    await ready(a, b);
    a.sends(ids(10), PLACES[0]!);
    a.sends(ids(4), PLACES[1]!, 1);
    await until("the prompts", () => b.counts()["received"] === 14);
    expect(PLACES.map((place) => [b.knows(ids(10), place), b.knows(ids(10), place, 1)])).toEqual([
      [10, 0],
      [0, 4],
    ]);
    expect(b.index.match(b.chain(ids(10))).isExact(b.members[PLACES[0]!]![0]!)).toBe(false);
    a.sends(ids(12), PLACES[0]!);
    await until("the longer one", () => b.counts()["received"] === 16);
    expect(b.knows(ids(12), PLACES[0]!)).toBe(12);
  });

  test("is where keys of the policy manual went, so that they stay there whichever gateway they come to", async () => {
    const all = [gateway(), gateway([...PLACES].reverse()), gateway()] as const;
    await ready(...all);
    const keys = Array.from({ length: 40 }, (_, i) => `key ${i}`);
    const first = keys.map((key) => all[0].gives(key));
    expect(new Set(first).size).toBe(2);
    await until("the keys", () => all.slice(1).every((one) => one.counts()["received"]! >= 40));
    for (const one of all) expect(keys.map((key) => one.gives(key))).toEqual(first);
    // explaining gives nobody a key
    await until("each use", () => all[0].counts()["sent"] === 80);
    all[0].gives("a new key", true);
    await Bun.sleep(100);
    expect(all[0].counts()["sent"]).toBe(80);
  });

  test("is never told on: nobody hears his own, or what he has told twice", async () => {
    const all = [gateway(), gateway(), gateway()] as const;
    await ready(...all);
    for (const [i, one] of all.entries()) one.sends(ids(5, i), PLACES[0]!);
    for (const one of all) await until("the others' prompts", () => one.counts()["received"] === 10);
    await Bun.sleep(200);
    for (const one of all) expect(one.counts()).toEqual({ sent: 5, received: 10, dropped: 0 });
  });

  test("is no word of workers that tell of themselves, nor of those that the other does not have", async () => {
    const a = gateway([...PLACES, "elsewhere:1"]);
    const b = gateway();
    await ready(a, b);
    a.tellsEvents(PLACES[1]!);
    a.sends(ids(8), PLACES[1]!);
    a.sends(ids(3), "elsewhere:1");
    a.sends(ids(2), PLACES[0]!);
    await until("the prompt", () => b.counts()["received"] === 2);
    expect(b.counts()).toEqual({ sent: 0, received: 2, dropped: 3 });
    expect(a.counts()).toEqual({ sent: 5, received: 0, dropped: 0 });
  });

  test("stays within so much a second, on both sides", async () => {
    const little = gateway(PLACES, { limits: { sent: 2000, received: 1 << 20 } });
    const deaf = gateway(PLACES, { limits: { sent: 1 << 20, received: 2000 } });
    const open = gateway();
    await ready(little, deaf, open);
    little.sends(ids(1000), PLACES[0]!);
    await until("the prompt", () => little.counts()["dropped"] === 1000);
    open.sends(ids(1000, 1), PLACES[0]!);
    await until("the prompt", () => deaf.counts()["dropped"] === 1000);
    expect(little.counts()).toEqual({ sent: 0, received: 1000, dropped: 1000 });
    open.sends(ids(10, 2), PLACES[0]!);
    await until("the next prompt", () => deaf.counts()["received"] === 10);
  });

  test("keeps to the database in the URL, though publishing knows none", async () => {
    const a = gateway();
    const other = gateway(PLACES, {}, `${redis.url}/3`);
    const same = gateway(PLACES, {}, `${redis.url}/0`);
    await ready(a, other, same);
    a.sends(ids(6), PLACES[0]!);
    await until("the prompt", () => same.counts()["received"] === 6);
    expect(other.counts()["received"]).toBe(0);
  });

  test("is nothing of another version, nor what is no message of a gateway", async () => {
    const a = gateway();
    await ready(a);
    const client = new Bun.RedisClient(redis.url);
    const say = (text: string) => client.publish("collie:routing:0", text);
    for (const text of ["", "short", "x".repeat(2 << 20), "12345678!!!", `12345678${btoa("\x01\x63later")}`])
      await say(text);
    await say(`12345678${btoa("\x64\x01later")}`);
    client.close();
    const b = gateway();
    await ready(b);
    b.sends(ids(1), PLACES[0]!);
    await until("a good one", () => a.counts()["received"] === 1);
    expect(a.counts()).toEqual({ sent: 0, received: 1, dropped: 0 });
    expect(a.log.filter((line) => line.includes("another release"))).toHaveLength(1);
  });

  (ownRedis ? test : test.skip)(
    "goes on after the server was away; nobody waits meanwhile",
    async () => {
      const a = gateway();
      const b = gateway();
      await ready(a, b);
      await redis.kill();
      await until("the loss", () => !a.isUp && !b.isUp);
      a.sends(ids(7), PLACES[0]!);
      await until("the prompt is given up", () => a.counts()["dropped"] === 7);
      await Bun.sleep(500); // some tries in vain
      await redis.start();
      await ready(a, b);
      a.sends(ids(9, 1), PLACES[0]!);
      await until("the next prompt", () => b.counts()["received"] === 9);
      expect(b.knows(ids(7), PLACES[0]!)).toBe(0);
      expect(a.log.map((line) => line.slice(0, 12))).toEqual(["info what is", "warn nothing", "info what is"]);
    },
    60_000,
  );

  test("is nothing where the server refuses: it is told once, without the password", async () => {
    const a = gateway(PLACES, {}, redis.url.replace(redis.password, "wrong-secret"));
    await until("the refusal", () => a.log.length > 0);
    await Bun.sleep(300);
    expect(a.log).toHaveLength(1);
    expect(a.log[0]).toStartWith("warn nothing is shared");
    expect(a.log[0]).toContain("WRONGPASS");
    expect(a.log[0]).not.toContain("wrong-secret");
    expect(a.isUp).toBe(false);
  });
});

test("a server that greets and never answers again is tried anew", async () => {
  let connections = 0;
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: () => void connections++,
      data(socket, bytes) {
        const text = bytes.toString();
        if (text.includes("HELLO")) socket.write("%1\r\n+server\r\n+redis\r\n");
        if (text.includes("PING")) socket.write("+PONG\r\n");
      },
    },
  });
  const a = new Gateway(`redis://127.0.0.1:${server.port}`, PLACES, { timing: { ...timing, connectMs: 100 } });
  try {
    await until("some tries", () => connections >= 6);
    expect(a.isUp).toBe(false);
    expect(a.log).toHaveLength(1);
    expect(a.log[0]).toContain("it does not answer");
  } finally {
    a.close();
    server.stop(true);
  }
});

(ownRedis ? test : test.skip)(
  "a server that hangs is noticed, and holds up nothing (needs redis-server or valkey-server)",
  async () => {
    const redis = await startRedis();
    const a = new Gateway(redis.url, PLACES, { timing: undefined }); // as it is: within seconds
    try {
      await until("the connection", () => a.isUp);
      const client = new Bun.RedisClient(redis.url);
      const pid = Number(/process_id:(\d+)/.exec(String(await client.send("INFO", ["server"])))?.[1]);
      process.kill(pid, "SIGSTOP");
      await until("the silence", () => !a.isUp, 15_000);
      expect(a.log.at(-1)).toContain("it does not answer");
      process.kill(pid, "SIGCONT");
      await until("the return", () => a.isUp, 30_000);
      client.close();
    } finally {
      a.close();
      await redis.stop();
    }
  },
  60_000,
);
