import { describe, expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { prefixIndex } from "../../../../src/routing/prefix-index.ts";
import { PrefixBoard } from "../../../../src/threads/prefix-board.ts";
import { TestCaches } from "../../../support/prefix.ts";
import { BLOCK, counts, idle, ids, isFair, NOW, prompt, Surroundings, worker } from "./support.ts";

const PROMPT = ids(1000);

describe("sessions", () => {
  test("turns of one stay together before anything is cached, and many spread", () => {
    const around = new Surroundings(idle(8));
    const policy = policyOf("cache_aware");
    const of = (session: number) => around.choose(policy, { tokens: 2000, sessionKey: `session ${session}` });
    const got = counts(around, (turn) => of(turn).worker, 800);
    expect(isFair(got)).toBe(true);
    for (let session = 0; session < 20; session++) {
      const first = of(session);
      expect([first.branch, of(session).worker.id]).toEqual(["key", first.worker.id]);
    }
  });

  test("never against the cost, but for what a session's worker is likely to hold of a prompt without tokens", () => {
    const around = new Surroundings(idle(4));
    const policy = policyOf("cache_aware");
    const own = around.choose(policy, { tokens: 1000, sessionKey: "one" }).worker;
    own.queued = 400;
    expect(around.choose(policy, { tokens: 1000, sessionKey: "one" }).worker.id).toBe(own.id);
    expect(around.choose(policy, prompt(PROMPT, { sessionKey: "one" })).worker.id).not.toBe(own.id);
    own.queued = 600;
    expect(around.choose(policy, { tokens: 1000, sessionKey: "one" }).worker.id).not.toBe(own.id);
  });

  test("what is cached comes first", () => {
    const around = new Surroundings(idle(4));
    around.hold(around.workers[3]!, PROMPT, 800);
    for (let i = 0; i < 20; i++) {
      const choice = around.choose(policyOf("cache_aware"), prompt(PROMPT, { sessionKey: `${i}` }));
      expect([choice.worker.id, choice.branch]).toEqual(["w3", "hit"]);
    }
  });
});

describe("traffic", () => {
  test("a burst with one new prefix goes to few workers", () => {
    const around = new Surroundings(idle(8));
    const policy = policyOf("cache_aware");
    const head = ids(3000, 1);
    const used = new Set(
      Array.from({ length: 8 }, (_, i) =>
        around.send(policy, prompt(Uint32Array.from([...head, ...ids(100, 100 + i)]))),
      ),
    );
    expect(used.size).toBeLessThanOrEqual(4);
  });

  test("a prefix that comes often gets a second worker before waiting once is dearer than computing it; one that comes rarely does not", () => {
    const firstElsewhere = (gapMs: number): number => {
      const around = new Surroundings(idle(4));
      const policy = policyOf("cache_aware");
      const head = ids(3000, 1);
      around.hold(around.workers[0]!, head, 3000 - (3000 % BLOCK));
      around.workers[0]!.running = 8;
      for (let i = 0; i < 100; i++) {
        const ask = prompt(Uint32Array.from([...head, ...ids(100, 100 + i)]));
        expect(around.choose(policy, ask, true).worker.id).toBe(around.choose(policy, ask, true).worker.id);
        if (around.choose(policy, ask).worker.id !== "w0") return i;
        around.now += gapMs;
      }
      return Number.POSITIVE_INFINITY;
    };
    expect(firstElsewhere(20)).toBeGreaterThan(0);
    expect(firstElsewhere(20)).toBeLessThan(5);
    expect(firstElsewhere(5000)).toBe(Number.POSITIVE_INFINITY);
  });

  test("when it has been computed by another one, what was lost before is forgotten", () => {
    const around = new Surroundings(idle(2));
    const policy = policyOf("cache_aware");
    const head = ids(3000, 1);
    around.hold(around.workers[0]!, head, 2992);
    around.workers[0]!.running = 8;
    const go = (i: number) =>
      around.choose(policy, prompt(Uint32Array.from([...head, ...ids(100, 100 + i)]))).worker.id;
    const went = Array.from({ length: 20 }, (_, i) => go(i));
    const first = went.indexOf("w1");
    expect(first).toBeGreaterThan(0);
    // Its cache has forgotten it since: it is computed there again after as many requests.
    expect(went[first + 1]).toBe("w0");
    expect(went.lastIndexOf("w1")).toBeGreaterThan(first + 1);
  });

  test("a prefix that is asked for without end gets more of them, and all in the end", () => {
    const around = new Surroundings(idle(8));
    const policy = policyOf("cache_aware");
    const head = ids(3000, 1);
    const got = counts(
      around,
      (i) => around.send(policy, prompt(Uint32Array.from([...head, ...ids(100, 100 + i)]))),
      200,
    );
    expect(Math.max(...got)).toBeLessThan(1.3 * 25);
  });

  test("one at a time and nothing shared: all in turn", () => {
    const around = new Surroundings(idle(4));
    const policy = policyOf("cache_aware");
    const got = counts(
      around,
      (i) => {
        const its = around.send(policy, prompt(ids(500, i)));
        its.running = its.queued = 0;
        around.now += 1000;
        return its;
      },
      40,
    );
    expect(got).toEqual([10, 10, 10, 10]);
  });

  test("a worker of twice the cost gets half the load", () => {
    const around = new Surroundings([worker(0), worker(1, { cost: 2 })]);
    const policy = policyOf("cache_aware");
    const got = counts(around, (i) => around.send(policy, prompt(ids(500, i))), 300);
    expect(got[0]! / got[1]!).toBeGreaterThan(1.8);
    expect(got[0]! / got[1]!).toBeLessThan(2.2);
  });

  test("new prefixes go to those that were given least of late, though all are idle again", () => {
    const around = new Surroundings(idle(2));
    const policy = policyOf("cache_aware");
    around.hold(around.workers[0]!, PROMPT, 960);
    for (let i = 0; i < 30; i++) {
      const its = around.send(policy, prompt(PROMPT));
      expect(its.id).toBe("w0");
      its.running = its.queued = 0;
    }
    around.workers[1]!.usedAt = around.now;
    around.workers[0]!.usedAt = 0;
    expect(around.choose(policy, prompt(ids(1000, 5))).worker.id).toBe("w1");
    around.now += 600_000;
    expect(around.choose(policy, prompt(ids(1000, 5))).worker.id).toBe("w0");
  });
});

test("with the index that threads share", () => {
  const board = PrefixBoard.create(1, 4);
  const writer = board.writer();
  const members = [0, 1, 2].map((slot) => writer.claim(slot, 0));
  for (const member of members) writer.setExact(member, true);
  const around = new Surroundings(members.map((member, i) => worker(i, { member })));
  const index = prefixIndex(board, 0);
  const choose = (tokenIds: Uint32Array, model = "model") => {
    const context = { ...around.context, index, model };
    return policyOf("cache_aware").choose(around.workers, prompt(tokenIds), context);
  };
  const chain = index.chain(index.root("model", BLOCK), PROMPT, BLOCK);
  new TestCaches(writer).tell(chain, members[2]!, 0, 50);
  const hit = choose(PROMPT);
  expect([hit.worker.id, hit.matchedTokens, hit.isExact]).toEqual(["w2", 800, true]);
  expect(choose(PROMPT, "other").matchedTokens).toBe(0);

  // a promise makes a new prefix known at once
  const fresh = ids(640, 9);
  const first = choose(fresh);
  index.promise(first.chain!, 0, first.worker.member, NOW);
  const second = choose(Uint32Array.from([...fresh, ...ids(100, 10)]));
  expect([second.worker.id, second.matchedTokens, second.isExact]).toEqual([first.worker.id, 640, false]);
});
