/** Random calls, of which the store in memory, made of maps alone, and each other store must give the same answers. */
import { afterAll, describe, expect, test } from "bun:test";
import { checkedHistory } from "../../../src/history/checked.ts";
import { localHistory } from "../../../src/history/host.ts";
import { createMemory } from "../../../src/history/memory.ts";
import type { HistoryStore, NewResponse, PageRequest, StoredItem } from "../../../src/history/store.ts";
import { item, NOW } from "./samples.ts";
import { storeKinds } from "./stores.ts";

const { kinds, stop } = storeKinds();
afterAll(stop);

const CALLS = 3000;
const SEEDS = [1, 20261130];

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Step = (store: HistoryStore) => Promise<unknown>;

/** Steps over few ids, so that they meet. */
function stepsOf(seed: number): () => { readonly name: string; readonly run: Step } {
  const random = randomOf(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)]!;
  const some = <T>(most: number, make: () => T): T[] => Array.from({ length: below(most + 1) }, make);
  const tenant = (): string => pick(["", "a", "a:b"]);
  const responseId = (): string => pick(["r1", "r2", "r3", "r4", "r5", "r:6", "r%7", "r 8", "é9", "r10"]);
  const conversationId = (): string => pick(["c1", "c2", "c:3", "c4"]);
  const itemId = (): string => pick(["i1", "i2", "i3", "i4", "i5", "i6", "i7", "i:8", "i9é", "i10"]);
  let clock = NOW;
  const now = (): number => {
    clock += pick([0, 0, 1, 7]);
    return clock;
  };
  const text = (): string => pick(["", "x", "ü\u{1f415}", '\u0000\n"\\', "long ".repeat(below(30))]);
  // content by id: what happens to two contents of one id has cases of its own
  const contents = new Map<string, StoredItem>();
  const stored = (): StoredItem => {
    const id = itemId();
    const made = contents.get(id) ?? item(id, text());
    contents.set(id, made);
    return made;
  };
  const page = (cursor: () => string): PageRequest => ({
    limit: 1 + below(5),
    order: pick(["asc", "desc"] as const),
    ...(random() < 0.4 && { after: cursor() }),
    ...(random() < 0.3 && { before: cursor() }),
  });
  const status = (): string => pick(["queued", "in_progress", "completed", "failed"]);
  const kind = () => pick(["response", "interaction", "batch"] as const);
  const bodyOf = (of: string, output: readonly StoredItem[]): string =>
    random() < 0.5
      ? `{"a":1.50,"${of === "interaction" ? "steps" : "output"}":[${output.map(({ json }) => json).join(",")}]}`
      : "{ }";
  const result = (of: string) => {
    const output = some(3, stored);
    return { body: bodyOf(of, output), output: output.map(({ json }) => json), itemIds: output.map(({ id }) => id) };
  };
  const toConversation = () => (random() < 0.3 ? { conversationItems: some(4, stored) } : {});

  const newResponse = (): NewResponse => {
    const of = kind();
    const input = some(4, stored);
    const { body, output, itemIds } = result(of);
    return {
      tenant: tenant(),
      id: responseId(),
      kind: of,
      createdAt: now(),
      previousId: random() < 0.7 ? responseId() : null,
      conversationId: random() < 0.5 ? conversationId() : null,
      model: random() < 0.5 ? "m" : null,
      safetyIdentifier: random() < 0.2 ? text().replaceAll("\0", "") : null,
      status: status(),
      body,
      input: input.map(({ json }) => json),
      output,
      itemIds: [...new Set([...input.map(({ id }) => id), ...itemIds])],
      ...toConversation(),
    };
  };

  const makers: readonly [number, string, () => Step][] = [
    [
      12,
      "putResponse",
      () => {
        const made = newResponse();
        return (s) => s.putResponse(made);
      },
    ],
    [
      6,
      "getResponse",
      () => {
        const a = [tenant(), responseId()] as const;
        return (s) => s.getResponse(...a);
      },
    ],
    [
      6,
      "updateResponse",
      () => {
        const update = {
          tenant: tenant(),
          id: responseId(),
          updatedAt: now(),
          ...(random() < 0.5 && { ifStatus: some(2, status) }),
          ...(random() < 0.7 && { status: status() }),
          ...(random() < 0.5 && { result: result("response") }),
          ...toConversation(),
        };
        return (s) => s.updateResponse(update);
      },
    ],
    [
      4,
      "getState",
      () => {
        const a = [tenant(), responseId()] as const;
        return (s) => s.getState(...a);
      },
    ],
    [
      2,
      "deleteResponse",
      () => {
        const a = [tenant(), responseId()] as const;
        return (s) => s.deleteResponse(...a);
      },
    ],
    [
      5,
      "listResponses",
      () => {
        const a = [tenant(), kind(), page(responseId)] as const;
        return (s) => s.listResponses(...a);
      },
    ],
    [
      8,
      "readChain",
      () => {
        const a = [tenant(), responseId(), { maxTurns: 1 + below(6), maxBytes: pick([1, 300, 800, 1e6]) }] as const;
        return (s) => s.readChain(...a);
      },
    ],
    [
      5,
      "listInputItems",
      () => {
        const a = [tenant(), responseId(), page(itemId)] as const;
        return (s) => s.listInputItems(...a);
      },
    ],
    [
      6,
      "findItems",
      () => {
        const a = [tenant(), some(5, itemId)] as const;
        return async (s) => (await s.findItems(...a)).toSorted((x, y) => (x.id < y.id ? -1 : 1));
      },
    ],
    [
      5,
      "createConversation",
      () => {
        const a = [
          { tenant: tenant(), id: conversationId(), createdAt: now(), metadata: `{"t":"${below(9)}"}` },
          some(4, stored),
        ] as const;
        return (s) => s.createConversation(...a);
      },
    ],
    [
      3,
      "getConversation",
      () => {
        const a = [tenant(), conversationId()] as const;
        return (s) => s.getConversation(...a);
      },
    ],
    [
      3,
      "updateConversation",
      () => {
        const a = [tenant(), conversationId(), `{"u":${below(9)}}`, now()] as const;
        return (s) => s.updateConversation(...a);
      },
    ],
    [
      1,
      "deleteConversation",
      () => {
        const a = [tenant(), conversationId()] as const;
        return (s) => s.deleteConversation(...a);
      },
    ],
    [
      8,
      "addItems",
      () => {
        const a = [tenant(), conversationId(), some(5, stored), now()] as const;
        return (s) => s.addItems(...a);
      },
    ],
    [
      4,
      "getItem",
      () => {
        const a = [tenant(), conversationId(), itemId()] as const;
        return (s) => s.getItem(...a);
      },
    ],
    [
      8,
      "listItems",
      () => {
        const a = [tenant(), conversationId(), page(itemId)] as const;
        return (s) => s.listItems(...a);
      },
    ],
    [
      5,
      "newestItems",
      () => {
        const a = [tenant(), conversationId(), { maxItems: 1 + below(6), maxBytes: pick([1, 200, 500, 1e6]) }] as const;
        return (s) => s.newestItems(...a);
      },
    ],
    [
      4,
      "removeItem",
      () => {
        const a = [tenant(), conversationId(), itemId()] as const;
        return (s) => s.removeItem(...a);
      },
    ],
    [
      8,
      "appendEvents",
      () => {
        const a = [tenant(), responseId(), below(6), some(3, () => JSON.stringify(text()))] as const;
        return (s) => s.appendEvents(...a);
      },
    ],
    [
      5,
      "readEvents",
      () => {
        const a = [
          tenant(),
          responseId(),
          below(8) - 1,
          { maxEvents: 1 + below(6), maxBytes: pick([1e6, 1e6, 1]) },
        ] as const;
        return (s) => s.readEvents(...a);
      },
    ],
    [
      3,
      "listUnfinished",
      () => {
        const a = [clock - below(20), 1 + below(5)] as const;
        return (s) => s.listUnfinished(...a);
      },
    ],
    [
      1,
      "removeExpired",
      () => {
        const before = clock - below(400);
        const limit = 1 + below(4);
        // stores count what they remove in their own way; what is left is the same
        return async (s) => {
          while ((await s.removeExpired(before, limit)) > 0);
        };
      },
    ],
  ];
  const total = makers.reduce((sum, [weight]) => sum + weight, 0);
  return () => {
    let at = below(total);
    const [, name, make] = makers.find(([weight]) => (at -= weight) < 0)!;
    return { name, run: make() };
  };
}

/** The answer, or the error by its name and what it is about. */
const answerOf = async (step: Step, store: HistoryStore): Promise<unknown> => {
  try {
    return { value: (await step(store)) ?? null };
  } catch (error) {
    const { name, message } = error as Error;
    return { name, message };
  }
};

describe("random calls", () => {
  for (const kind of kinds)
    for (const seed of SEEDS)
      (kind.available ? test : test.skip)(`${kind.name} answers as the maps do (seed ${seed})`, async () => {
        const { stores, close } = await kind.open(1);
        const limits = { maxEntries: 1e6, maxBytes: 1e9 };
        const model = checkedHistory(localHistory(createMemory(limits)), 10_000);
        const next = stepsOf(seed);
        const found = new Set<string>();
        for (let n = 0; n < CALLS; n++) {
          const { name, run } = next();
          const expected = await answerOf(run, model);
          const answer = await answerOf(run, stores[0]!);
          if (!Bun.deepEquals(answer, expected))
            expect({ call: n, name, answer }).toEqual({ call: n, name, answer: expected });
          if (JSON.stringify(expected).length > 20) found.add(name);
        }
        // most calls find something
        expect(found.size).toBeGreaterThan(14);
        await close();
      });
});
