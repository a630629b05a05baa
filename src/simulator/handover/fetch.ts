import type { Socket } from "bun";
import type { Handover } from "./handover.ts";
import { LineReader, LineWriter, type ToGiver, type ToTaker } from "./lines.ts";

type Take = Extract<Handover, { kind: "take" }>;

export interface FetchEvents {
  /** Everything is there; so many of its tokens were cached where it comes from. */
  onArrived(cachedTokens: number): void;
  onFailed(why: string): void;
}

/** One prompt's KV on its way from another engine. */
export class Fetch {
  private socket: Socket | undefined;
  private over = false;
  private readonly reader = new LineReader<ToTaker>();
  private readonly writer = new LineWriter<ToGiver>((bytes) => this.socket?.write(bytes) ?? 0);
  private readonly timer: ReturnType<typeof setTimeout>;

  constructor(
    private readonly take: Take,
    prompt: string,
    timeoutMs: number,
    private readonly events: FetchEvents,
  ) {
    const { key, engineId, blockIds, waits } = take;
    // The other side keeps the time as well, and says what is missing.
    this.timer = setTimeout(() => this.fail(`${key} did not come in time`), 2 * timeoutMs);
    this.writer.send({
      ask: key,
      prompt,
      waits,
      ...(engineId === undefined ? {} : { engineId }),
      ...(blockIds === undefined ? {} : { blockIds }),
    });
    this.connect();
  }

  /** All has come and is wanted: the other side may free it. */
  accept(): void {
    this.writer.send({ got: true });
    this.close();
  }

  /** It is not wanted any more. `frees`: tells the other side, which would keep it otherwise. */
  leave(frees: boolean): void {
    if (this.over) return;
    if (frees) this.writer.send({ drop: this.take.key });
    this.close();
  }

  private connect(): void {
    const { host, port } = this.take;
    Bun.connect({
      hostname: host,
      port,
      socket: {
        open: (socket) => {
          this.socket = socket;
          this.writer.flush();
          if (this.over) socket.end();
        },
        data: (_socket, chunk) => {
          for (const line of this.reader.push(chunk)) this.hear(line);
        },
        drain: () => this.writer.flush(),
        close: () => this.fail("the connection to the other engine was lost"),
        error: () => this.fail("the connection to the other engine was lost"),
      },
    }).catch(() => this.fail(`no engine listens at ${host}:${port}`));
  }

  private hear(line: ToTaker): void {
    if (this.over) return;
    if ("error" in line) this.fail(line.error);
    else if ("cachedTokens" in line) {
      clearTimeout(this.timer);
      this.events.onArrived(line.cachedTokens);
    }
  }

  private fail(why: string): void {
    if (this.over) return;
    this.close();
    this.events.onFailed(why);
  }

  private close(): void {
    this.over = true;
    clearTimeout(this.timer);
    this.socket?.end();
  }
}

/** Tells another engine that what it keeps for a request is not needed. */
export function dropAt({ host, port, key }: Pick<Take, "host" | "port" | "key">): void {
  Bun.connect({
    hostname: host,
    port,
    socket: {
      open(socket) {
        socket.end(`${JSON.stringify({ drop: key } satisfies ToGiver)}\n`);
      },
      data() {},
    },
  }).catch(() => undefined);
}
