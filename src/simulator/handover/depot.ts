import { type EngineServer, engineServer } from "../net/engine-server.ts";
import { listen, type Peer, type Transport } from "../net/listener.ts";
import { type Ask, LineReader, LineWriter, type ToGiver, type ToTaker } from "./lines.ts";

/** A prompt whose KV another engine is to fetch. */
export interface Offer {
  readonly key: string;
  readonly prompt: string;
  readonly engineId: string;
  readonly blockIds: readonly number[];
  /** The other side has asked for it. */
  onAsked(): void;
  /** The other side has everything. */
  onTaken(): void;
  /** It can not be fetched any more. */
  onFailed(why: string): void;
  /** The other side does not need it. */
  onDropped(): void;
}

/** What is ready to be sent. */
export interface Goods {
  readonly cachedTokens: number;
  readonly transferMs: number;
  /** The transfer breaks with this. */
  readonly failure?: string | undefined;
}

interface Entry {
  readonly offer: Offer;
  goods?: Goods;
  taker?: Taker | undefined;
  timer?: ReturnType<typeof setTimeout>;
}

/** Where other engines ask for the KV of prompts: SGLang's bootstrap server, or the side channel of a connector of vLLM. */
export class Depot {
  readonly server: EngineServer;
  private readonly entries = new Map<string, Entry>();
  /** Who asked for what is not here yet. */
  private readonly early = new Map<Taker, Ask>();
  private nextBlock = 0;

  /** Throws when the port is taken. */
  constructor(
    host: string,
    port: number,
    private readonly timeoutMs: number,
  ) {
    this.server = engineServer(
      listen(host, port, (transport) => new Taker(transport, this)),
      (taker) => taker.destroy(),
    );
  }

  get port(): number {
    return this.server.port;
  }

  /** Prompts that are offered now. */
  get open(): number {
    return this.entries.size;
  }

  /** Numbers for the blocks of a prompt, as its hand-over names them. */
  numberBlocks(count: number): number[] {
    return Array.from({ length: count }, () => this.nextBlock++);
  }

  /** Offers a prompt: `ready` when its KV is computed. False: the key is in use. */
  offer(offer: Offer): boolean {
    if (this.entries.has(offer.key)) return false;
    this.entries.set(offer.key, { offer });
    for (const [taker, ask] of [...this.early]) if (ask.ask === offer.key) this.asked(taker, ask);
    return true;
  }

  /** Fails the offer unless somebody has asked for it by then. */
  expectWithin(key: string, ms: number): void {
    const entry = this.entries.get(key);
    if (!entry || entry.taker) return;
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => this.fail(key, `nobody asked for ${key} in time`), ms);
  }

  ready(key: string, goods: Goods): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    entry.goods = goods;
    if (entry.taker) this.send(entry, entry.taker, goods);
  }

  /** Takes an offer back; who waits for it is told why. */
  withdraw(key: string, why: string): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    this.remove(entry);
    entry.taker?.fail(why);
  }

  stop(): void {
    for (const { timer } of this.entries.values()) clearTimeout(timer);
    this.entries.clear();
    for (const taker of [...this.early.keys()]) taker.forget();
    this.early.clear();
  }

  /** A line of a taker. */
  asked(taker: Taker, ask: Ask): void {
    this.early.delete(taker);
    const entry = this.entries.get(ask.ask);
    if (!entry) {
      if (ask.waits) {
        this.early.set(taker, ask);
        taker.within(this.timeoutMs, `${ask.ask} did not come in time`);
      } else taker.fail(`${ask.ask} is not known here`);
      return;
    }
    const { offer } = entry;
    if (entry.taker) {
      taker.fail(`${ask.ask} is being fetched already`);
      return;
    }
    const problem = mismatch(offer, ask);
    if (problem !== undefined) {
      taker.fail(problem);
      this.fail(ask.ask, problem);
      return;
    }
    clearTimeout(entry.timer);
    taker.forget();
    entry.taker = taker;
    taker.entry = ask.ask;
    offer.onAsked();
    if (entry.goods) this.send(entry, taker, entry.goods);
  }

  got(taker: Taker): void {
    const entry = this.entryOf(taker);
    if (!entry) return;
    this.remove(entry);
    entry.offer.onTaken();
  }

  dropped(key: string): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    this.remove(entry);
    entry.offer.onDropped();
  }

  left(taker: Taker): void {
    this.early.delete(taker);
    const entry = this.entryOf(taker);
    if (!entry) return;
    entry.taker = undefined;
    if (taker.isSending) this.fail(entry.offer.key, "the transfer broke off");
    else this.expectWithin(entry.offer.key, this.timeoutMs);
  }

  private send(entry: Entry, taker: Taker, { cachedTokens, transferMs, failure }: Goods): void {
    taker.isSending = true;
    taker.say({ sending: true });
    const done = (): void => {
      if (failure === undefined) taker.say({ cachedTokens });
      else {
        taker.fail(failure);
        this.fail(entry.offer.key, failure);
      }
    };
    if (transferMs > 0) entry.timer = setTimeout(done, transferMs);
    else done();
  }

  private fail(key: string, why: string): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    this.remove(entry);
    entry.offer.onFailed(why);
  }

  private remove(entry: Entry): void {
    clearTimeout(entry.timer);
    this.entries.delete(entry.offer.key);
  }

  private entryOf(taker: Taker): Entry | undefined {
    const entry = taker.entry === undefined ? undefined : this.entries.get(taker.entry);
    return entry?.taker === taker ? entry : undefined;
  }
}

/** What is wrong with what is asked for. */
function mismatch(offer: Offer, ask: Ask): string | undefined {
  if (ask.prompt !== offer.prompt) return `${ask.ask} belongs to another prompt`;
  if (ask.engineId !== undefined && ask.engineId !== offer.engineId)
    return `engine ${ask.engineId} was expected, this is ${offer.engineId}`;
  if (ask.blockIds !== undefined && ask.blockIds.join() !== offer.blockIds.join())
    return `the blocks of ${ask.ask} are others`;
  return undefined;
}

/** A connection of an engine that fetches. */
class Taker implements Peer {
  /** Key of what it fetches. */
  entry: string | undefined;
  isSending = false;
  private closed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly reader = new LineReader<ToGiver>();
  private readonly writer: LineWriter<ToTaker>;

  constructor(
    private readonly transport: Transport,
    private readonly depot: Depot,
  ) {
    this.writer = new LineWriter((bytes) => transport.write(bytes));
  }

  receive(chunk: Uint8Array): void {
    for (const line of this.reader.push(chunk)) {
      if ("ask" in line) this.depot.asked(this, line);
      else if ("got" in line) this.depot.got(this);
      else this.depot.dropped(line.drop);
    }
  }

  drained(): void {
    this.writer.flush();
  }

  lost(): void {
    if (this.closed) return;
    this.closed = true;
    this.forget();
    this.depot.left(this);
  }

  destroy(): void {
    this.transport.destroy();
    this.lost();
  }

  say(line: ToTaker): void {
    if (!this.closed) this.writer.send(line);
  }

  fail(error: string): void {
    this.forget();
    this.say({ error });
    this.transport.end();
  }

  /** Gives up after a while, unless told to `forget` it. */
  within(ms: number, why: string): void {
    this.forget();
    this.timer = setTimeout(() => this.fail(why), ms);
  }

  forget(): void {
    clearTimeout(this.timer);
  }
}
