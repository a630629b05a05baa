/**
 * What the only worker of a model was sent. While there is no choice nothing is looked up, as that would cost time for nothing; but when a
 * second worker comes, the first one's cache is what there is to choose by.
 */
import type { RouteAsk } from "../routing/ask.ts";
import type { PrefixIndex } from "../routing/policy.ts";
import { type Crew, NO_MEMBER, type Seat } from "./crew.ts";

/** Tokens of prompts that are kept, of all models of a thread: about what a cache holds, and 4 MB. */
const MOST_TOKENS = 1 << 20;
/** As long as a guess is believed. */
const OLDEST_MS = 1_800_000;
/** Time that is spent on it in one piece. */
const BURST_MS = 2;

interface Kept {
  readonly key: string;
  readonly id: string;
  readonly member: number;
  readonly route: RouteAsk & { readonly tokenIds: Uint32Array };
  readonly at: number;
}

export class LonePrompts {
  /** The oldest first. */
  private readonly kept: Kept[] = [];
  private tokens = 0;
  /** Crews of which some are kept. */
  private readonly keys = new Map<string, number>();

  /** The only worker of a crew gets a prompt. */
  keep({ model, leg, policy }: Crew, { id, member }: Seat, route: RouteAsk | undefined, now: number): void {
    const { tokenIds } = route ?? {};
    if (policy.name !== "cache_aware" || tokenIds === undefined || member === NO_MEMBER) return;
    if (tokenIds.length > MOST_TOKENS) return;
    const { lora, cacheSalt, media, tokens } = route!;
    // a part of other memory would hold on to the whole of it
    const own = tokenIds.byteLength === tokenIds.buffer.byteLength ? tokenIds : tokenIds.slice();
    const key = keyOf(model, leg);
    this.kept.push({ key, id, member, at: now, route: { tokenIds: own, tokens, lora, cacheSalt, media } });
    this.tokens += own.length;
    this.keys.set(key, (this.keys.get(key) ?? 0) + 1);
    while (this.tokens > MOST_TOKENS) this.forget(this.kept.shift()!);
  }

  /** Writes into the index what the workers of a crew that is one no more were sent, the last first; little by little. */
  pour(crew: Crew, index: PrefixIndex, now: () => number): void {
    const key = keyOf(crew.model, crew.leg);
    if (!this.keys.has(key)) return;
    const mine = this.kept.filter((one) => one.key === key);
    const others = this.kept.filter((one) => one.key !== key);
    this.kept.splice(0, this.kept.length, ...others);
    for (const one of mine) this.forget(one);
    const seats = new Map(crew.seats.map((seat) => [`${seat.id} ${seat.member}`, seat]));
    const write = (): void => {
      const until = performance.now() + BURST_MS;
      for (let one = mine.pop(); one !== undefined; one = mine.pop()) {
        const { id, member, at, route } = one;
        const seat = seats.get(`${id} ${member}`);
        if (seat === undefined || now() - at > OLDEST_MS) continue;
        const { tokenIds, lora, cacheSalt, media } = route;
        const { blockSize, cacheModel, cacheLora } = seat;
        const root = index.root(cacheModel, blockSize, lora ?? cacheLora, cacheSalt);
        const chain = index.chain(root, tokenIds, blockSize, media);
        index.promise(chain, index.match(chain, now()).depth(member), member, now());
        if (performance.now() > until) break;
      }
      if (mine.length > 0) setImmediate(write);
    };
    write();
  }

  private forget({ key, route }: Kept): void {
    this.tokens -= route.tokenIds.length;
    const left = this.keys.get(key)! - 1;
    if (left > 0) this.keys.set(key, left);
    else this.keys.delete(key);
  }
}

const keyOf = (model: string, leg: string): string => `${leg} ${model}`;
