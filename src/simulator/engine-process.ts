import { EngineDriver } from "./core/driver.ts";
import { EngineCore } from "./core/engine-core.ts";
import { type CoreOptions, defaultCoreOptions } from "./core/options.ts";
import { Ranks } from "./core/ranks.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { mlx } from "./dialects/mlx/index.ts";
import { sglang } from "./dialects/sglang/index.ts";
import { tokenspeed } from "./dialects/tokenspeed/index.ts";
import { trtllm } from "./dialects/trtllm/index.ts";
import { vllm } from "./dialects/vllm/index.ts";
import { engineMethods } from "./grpc/engine-methods.ts";
import { serveGrpc } from "./grpc/server.ts";
import { Depot } from "./handover/depot.ts";
import type { Pairing } from "./handover/handover.ts";
import type { SimulatorHost } from "./host.ts";
import { KvFeed } from "./kv/feed.ts";
import { createKvRelay, type KvRelay } from "./kv/grpc-relay.ts";
import { type KvPorts, publishOverZmq, type ZmqPublisher } from "./kv/zmq-publisher.ts";
import type { EngineServer } from "./net/engine-server.ts";
import { serveOpenAi } from "./openai/server.ts";
import { parseSpeed, type SimulatorOptions } from "./options.ts";
import type { RuleBook } from "./script/book.ts";
import type { StatsReport } from "./stats.ts";

const DEFAULT_ECHO_TOKENS = 128;
const REPLAYED_BATCHES = 10_000;

const DIALECTS: Readonly<Record<Exclude<SimulatorOptions["dialect"], "openai">, Dialect>> = {
  vllm,
  sglang,
  trtllm,
  tokenspeed,
  mlx,
};

/** What outlives a restart of the engine. */
export type SharedParts = Pick<SimulatorHost, "model" | "counts" | "log" | "rules" | "answer" | "exit">;

/** One life of a simulated engine, from its start to its end or the next restart: a core, its clock and a server. */
export class EngineProcess {
  readonly host: SimulatorHost;
  readonly feed: KvFeed;
  private readonly rules: RuleBook;
  private readonly server: EngineServer;
  private readonly zmq: ZmqPublisher | undefined;
  private thaw: ReturnType<typeof setTimeout> | undefined;
  private stopping: Promise<void> | undefined;

  /** Throws when the port is taken. */
  constructor(
    private readonly options: SimulatorOptions,
    shared: SharedParts,
  ) {
    const settings = coreOptions(options);
    const speed = parseSpeed(options.speed);
    const ranks = new Ranks(
      Array.from({ length: options.dataParallelSize }, () => new EngineDriver(new EngineCore(settings), speed)),
    );
    this.rules = shared.rules;
    this.feed = new KvFeed(ranks, shared.rules, {
      // A servicer's relay begins with 1, the engines' own publishers with 0.
      first: options.dialect === "openai" ? 0 : 1,
      history: options.kvHistory || (options.kvEventsReplay === undefined ? 0 : REPLAYED_BATCHES),
    });
    this.host = {
      ...shared,
      ranks,
      open: new Map(),
      protocol: options.protocol,
      noTokenizer: options.noTokenizer,
      waitsForReasoning: options.waitsForReasoning,
      grammarBackend: options.grammarBackend,
      echo: options.output === "echo",
      echoTokens: options.outputTokens ?? DEFAULT_ECHO_TOKENS,
      tokensPerMessage: options.tokensPerMessage,
      mergeLagging: options.mergeLagging,
      kvRelay: options.noKvEvents ? undefined : this.relay(),
      pairing: this.pair(),
      kvPorts: () => this.kvPorts,
      alive: true,
      startedAt: performance.now(),
      freeze: (ms) => this.freeze(ms),
    };
    try {
      this.zmq = this.publish();
      this.server = this.serve();
    } catch (error) {
      for (const server of this.sideServers) server.kill();
      throw error;
    }
  }

  get port(): number {
    return this.server.port;
  }

  /** Ports of rank 0's KV events and of their replay, where there are any. */
  get kvPorts(): KvPorts | undefined {
    return this.zmq && { port: this.zmq.port, replayPort: this.zmq.replayPort };
  }

  private get sideServers(): readonly EngineServer[] {
    const depot = this.host.pairing?.depot;
    return [...(this.zmq?.servers ?? []), ...(depot ? [depot.server] : [])];
  }

  private get servers(): readonly EngineServer[] {
    return [this.server, ...this.sideServers];
  }

  /** Stands still for `ms`: 0 thaws at once, Infinity never by itself. */
  freeze(ms: number): void {
    const { ranks } = this.host;
    clearTimeout(this.thaw);
    if (ms > 0) {
      ranks.pause();
      for (const server of this.servers) server.freeze(true);
      if (Number.isFinite(ms)) this.thaw = setTimeout(() => this.freeze(0), ms);
    } else {
      for (const server of this.servers) server.freeze(false);
      ranks.resume();
    }
  }

  report(): StatsReport {
    const { host, server } = this;
    return {
      dialect: this.options.dialect,
      alive: host.alive,
      uptimeSeconds: (performance.now() - host.startedAt) / 1000,
      connections: server.connections.size,
      open: [...host.open.values()].reduce((sum, twins) => sum + twins.size, 0),
      ...host.counts,
      ...(host.pairing && {
        pairing: {
          role: host.pairing.role,
          engineId: host.pairing.engineId,
          bootstrapPort: host.pairing.depot?.port,
          offers: host.pairing.depot?.open ?? 0,
        },
      }),
      ...(this.zmq && { kvPorts: this.kvPorts }),
      engine: host.ranks.load(),
      ranks: host.ranks.loads(),
    };
  }

  /** Ends at once, as by SIGKILL. */
  kill(): void {
    clearTimeout(this.thaw);
    this.stopping = Promise.resolve();
    for (const server of this.servers) server.kill();
    this.host.pairing?.depot?.stop();
    this.host.kvRelay?.stop();
    this.feed.stop();
    this.host.ranks.stop();
  }

  /** Refuses new calls, lets the running ones finish within `graceMs`, closes. Safe to call twice. */
  stop(graceMs: number): Promise<void> {
    this.stopping ??= (async () => {
      clearTimeout(this.thaw);
      this.host.ranks.resume();
      this.host.kvRelay?.stop();
      this.feed.stop();
      for (const server of this.zmq?.servers ?? []) server.kill();
      await this.server.stop(graceMs);
      this.host.pairing?.depot?.server.kill();
      this.host.pairing?.depot?.stop();
      this.host.ranks.stop();
    })();
    return this.stopping;
  }

  private pair(): Pairing | undefined {
    const { role, kvConnector, engineId, host, bootstrapPort, speed, transferTps, ...options } = this.options;
    const isVllm = playsVllm(this.options);
    const connector = isVllm ? kvConnector : undefined;
    if (isVllm ? connector === undefined : role === "regular") return undefined;
    const timeoutMs = options.handoverTimeoutSecs * 1000;
    const factor = parseSpeed(speed);
    return {
      role,
      connector,
      engineId: engineId ?? crypto.randomUUID(),
      depot: role === "decode" ? undefined : new Depot(host, bootstrapPort, timeoutMs),
      host,
      timeoutMs,
      leaseMs: options.kvLeaseSecs * 1000,
      transferMs: (tokens) => (factor === 0 ? 0 : (tokens * 1000) / transferTps / factor),
    };
  }

  private publish(): ZmqPublisher | undefined {
    const { kvEventsZmq: port, kvEventsReplay: replayPort, kvEventsForm, host, blockSize } = this.options;
    if (port === undefined) return undefined;
    const isVllm = playsVllm(this.options);
    const form = {
      events: kvEventsForm ?? (isVllm ? "maps" : "arrays"),
      unsignedHashes: isVllm,
      eventPerBlock: playsSglang(this.options),
      blockSize,
    };
    return publishOverZmq(this.feed, { host, port, replayPort, form });
  }

  private relay(): KvRelay {
    const { protocol, kvHistory } = this.options;
    return createKvRelay(this.feed, {
      age: protocol,
      eventPerBlock: playsSglang(this.options),
      servesHistory: kvHistory > 0,
      rules: this.rules,
    });
  }

  private serve(): EngineServer {
    const { host, options } = this;
    const at = { host: options.host, port: options.port };
    if (options.dialect === "openai") return serveOpenAi(host, options, at);
    const dialect = DIALECTS[options.dialect];
    const serving = () => this.stopping === undefined;
    return serveGrpc({ ...at, methods: engineMethods(dialect, host, options, serving) });
  }
}

function playsVllm({ dialect, flavor }: SimulatorOptions): boolean {
  return (dialect === "openai" ? flavor : dialect) === "vllm";
}

function playsSglang({ dialect, flavor }: SimulatorOptions): boolean {
  return (dialect === "openai" ? flavor : dialect) === "sglang";
}

function coreOptions(options: SimulatorOptions): CoreOptions {
  return {
    ...defaultCoreOptions,
    prefillTokensPerSecond: options.prefillTps,
    decodeBaseMs: options.decodeBaseMs,
    decodePerRequestMs: options.decodePerReqMs,
    prefillChunk: options.prefillChunk,
    kvTokens: options.kvTokens,
    blockSize: options.blockSize,
    maxRunning: options.maxRunning,
    // SGLang's and TokenSpeed's decode side looks nothing up: all that it decodes was fetched.
    prefixCaching: !options.noPrefixCache && (options.role !== "decode" || playsVllm(options)),
    duplicates: playsVllm(options) ? "copies" : "shares",
  };
}
