import { EngineDriver } from "./core/driver.ts";
import { EngineCore } from "./core/engine-core.ts";
import { defaultCoreOptions } from "./core/options.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { createKvPublisher } from "./dialects/kv-publisher.ts";
import { mlx } from "./dialects/mlx/index.ts";
import { sglang } from "./dialects/sglang/index.ts";
import { tokenspeed } from "./dialects/tokenspeed/index.ts";
import { trtllm } from "./dialects/trtllm/index.ts";
import { vllm } from "./dialects/vllm/index.ts";
import { engineMethods } from "./grpc/engine-methods.ts";
import { serveGrpc } from "./grpc/server.ts";
import type { SimulatorHost } from "./host.ts";
import type { EngineServer } from "./net/engine-server.ts";
import { serveOpenAi } from "./openai/server.ts";
import { parseSpeed, type SimulatorOptions } from "./options.ts";
import type { StatsReport } from "./stats.ts";

const DEFAULT_ECHO_TOKENS = 128;

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
  private readonly server: EngineServer;
  private thaw: ReturnType<typeof setTimeout> | undefined;
  private stopping: Promise<void> | undefined;

  /** Throws when the port is taken. */
  constructor(
    private readonly options: SimulatorOptions,
    shared: SharedParts,
  ) {
    const core = new EngineCore({
      ...defaultCoreOptions,
      prefillTokensPerSecond: options.prefillTps,
      decodeBaseMs: options.decodeBaseMs,
      decodePerRequestMs: options.decodePerReqMs,
      prefillChunk: options.prefillChunk,
      kvTokens: options.kvTokens,
      blockSize: options.blockSize,
      maxRunning: options.maxRunning,
      prefixCaching: !options.noPrefixCache,
    });
    const driver = new EngineDriver(core, parseSpeed(options.speed));
    this.host = {
      ...shared,
      driver,
      open: new Map(),
      protocol: options.protocol,
      noTokenizer: options.noTokenizer,
      waitsForReasoning: options.waitsForReasoning,
      grammarBackend: options.grammarBackend,
      dataParallelSize: options.dataParallelSize,
      echo: options.output === "echo",
      echoTokens: options.outputTokens ?? DEFAULT_ECHO_TOKENS,
      tokensPerMessage: options.tokensPerMessage,
      mergeLagging: options.mergeLagging,
      kvPublisher: options.noKvEvents ? undefined : createKvPublisher(driver, options.protocol),
      alive: true,
      startedAt: performance.now(),
      freeze: (ms) => this.freeze(ms),
    };
    this.server = this.serve();
  }

  get port(): number {
    return this.server.port;
  }

  /** Stands still for `ms`: 0 thaws at once, Infinity never by itself. */
  freeze(ms: number): void {
    const { driver } = this.host;
    clearTimeout(this.thaw);
    if (ms > 0) {
      driver.pause();
      this.server.freeze(true);
      if (Number.isFinite(ms)) this.thaw = setTimeout(() => this.freeze(0), ms);
    } else {
      this.server.freeze(false);
      driver.resume();
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
      engine: host.driver.core.load(),
    };
  }

  /** Ends at once, as by SIGKILL. */
  kill(): void {
    clearTimeout(this.thaw);
    this.stopping = Promise.resolve();
    this.server.kill();
    this.host.kvPublisher?.stop();
    this.host.driver.stop();
  }

  /** Refuses new calls, lets the running ones finish within `graceMs`, closes. Safe to call twice. */
  stop(graceMs: number): Promise<void> {
    this.stopping ??= (async () => {
      clearTimeout(this.thaw);
      this.host.driver.resume();
      this.host.kvPublisher?.stop();
      await this.server.stop(graceMs);
      this.host.driver.stop();
    })();
    return this.stopping;
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
