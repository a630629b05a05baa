/** The engines of the soak, each a process that can be killed and comes back at its place. */

import { workFolder } from "../lab/paths.ts";
import { accepts, freePort, type Running, start, untilTrue } from "../lab/processes.ts";

/** What `/stats` of a simulated engine tells that the soak asks for. */
export interface WorkerStats {
  readonly open: number;
  readonly received: number;
  readonly tokensSent: number;
}

export class SoakWorker {
  readonly url: string;
  private process: Running | undefined;
  private readonly port = freePort();
  private readonly statsPort = freePort();

  constructor(
    readonly dialect: string,
    private readonly binary: string,
    private readonly flags: readonly string[],
  ) {
    this.url = `${this.isHttp ? "http" : "grpc"}://127.0.0.1:${this.port}`;
  }

  get isHttp(): boolean {
    return this.dialect === "openai";
  }

  /** Starts it and waits until it listens. Throws StartError. */
  async start(): Promise<void> {
    const places = ["--port", String(this.port), "--stats-port", String(this.statsPort)];
    const command = [this.binary, "engine", "--dialect", this.dialect, ...places, ...this.flags];
    const running = start(`soak-${this.dialect}`, command, undefined, { XDG_CACHE_HOME: workFolder() });
    this.process = running;
    await untilTrue(running, `the port of ${this.dialect}`, () => accepts(this.port));
    await untilTrue(running, `the statistics of ${this.dialect}`, () => accepts(this.statsPort));
  }

  /** SIGKILL, a while without it, and a new process at the same place. */
  async kill(downMs: number): Promise<void> {
    if (this.process === undefined) return;
    process.kill(this.process.pid, "SIGKILL");
    await this.process.stop();
    await Bun.sleep(downMs);
    await this.start();
  }

  async stats(): Promise<WorkerStats> {
    return (await (await this.ask("GET", "/stats")).json()) as WorkerStats;
  }

  /** Sets a fault for the next request. */
  async fault(fault: object): Promise<void> {
    await this.ask("POST", "/faults", JSON.stringify({ fault, times: 1 }));
  }

  async freeze(ms: number): Promise<void> {
    await this.ask("POST", `/freeze?ms=${ms}`);
  }

  /** Forgets the faults that nobody has met yet, and thaws. */
  async heal(): Promise<void> {
    await this.ask("DELETE", "/faults");
    await this.freeze(0);
  }

  async stop(): Promise<void> {
    await this.process?.stop();
  }

  private async ask(method: string, path: string, body?: string): Promise<Response> {
    const response = await fetch(`http://127.0.0.1:${this.statsPort}${path}`, {
      method,
      signal: AbortSignal.timeout(5000),
      ...(body !== undefined && { body }),
    });
    if (!response.ok) throw new Error(`${method} ${path} of ${this.dialect}: ${await response.text()}`);
    return response;
  }
}
