/** Compute threads: long texts and tables, on real threads, asked directly and over a thread's link to control. */
import { afterEach, describe, expect, test } from "bun:test";
import { OverloadedError } from "../../../src/errors.ts";
import { answerer, type Control, controlOver } from "../../../src/fleet/control-link.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { type ComputePool, createComputePool } from "../../../src/threads/compute-pool.ts";
import { openTokenizer } from "../../../src/tokenizer/load.ts";
import { TokenizerError } from "../../../src/tokenizer/tokenizer.ts";
import { testControl } from "../../support/control.ts";
import { smallFiles, smallHandle } from "../../unit/tokenizer/fixtures.ts";

const log = createLogger({ level: "error", json: true, write: () => {} });
const never = new AbortController().signal;
const LONG = "The quick brown fox, 12345 完全な ".repeat(20_000);
const handle = await smallHandle("cl100k");
const expected = Array.from(openTokenizer(handle).encode(LONG));

let pool: ComputePool;
afterEach(() => pool.close());

describe("the pool", () => {
  test("encodes as the tokenizer itself does, on as many threads as it may have", async () => {
    pool = createComputePool(2, log);
    const all = await Promise.all(Array.from({ length: 5 }, () => pool.encode(handle, LONG, {}, never)));
    for (const ids of all) expect(Array.from(ids)).toEqual(expected);
    const special = await pool.encode(handle, "<|begin|> x", { specialAsText: true }, never);
    expect(Array.from(special)).toEqual(
      Array.from(openTokenizer(handle).encode("<|begin|> x", { specialAsText: true })),
    );
  });

  test("builds tables that the calling thread can open", async () => {
    pool = createComputePool(1, log);
    const built = await pool.build(smallFiles("gemma"), undefined);
    const own = openTokenizer(await smallHandle("gemma"));
    expect(openTokenizer(built).encode(LONG)).toEqual(own.encode(LONG));
  });

  test("gives the errors of the work", async () => {
    pool = createComputePool(1, log);
    await expect(pool.build(new Map([["tokenizer.json", Buffer.from("{")]]), undefined)).rejects.toThrow(
      TokenizerError,
    );
    expect((await pool.encode(handle, "a", {}, never)).length).toBe(1); // and goes on
  });

  test("what waits and is given up never begins; what runs is not waited for", async () => {
    pool = createComputePool(1, log);
    const [running, queued] = [new AbortController(), new AbortController()];
    const first = pool.encode(handle, LONG, {}, running.signal);
    const second = pool.encode(handle, LONG, {}, queued.signal);
    const third = pool.encode(handle, "abc", {}, never);
    const given = Promise.allSettled([first, second]);
    queued.abort(new Error("gone"));
    running.abort(new Error("gone too"));
    expect((await given).map((r) => r.status === "rejected" && r.reason.message)).toEqual(["gone too", "gone"]);
    expect((await third).length).toBeGreaterThan(0);
    await expect(pool.encode(handle, "a", {}, AbortSignal.abort(new Error("before")))).rejects.toThrow("before");
  });

  test("refuses what it has no room for", async () => {
    pool = createComputePool(1, log);
    const many = Array.from({ length: 1100 }, () => pool.encode(handle, "abc", {}, never));
    const results = await Promise.allSettled(many);
    const refused = results.filter((r) => r.status === "rejected");
    expect(refused.length).toBeGreaterThanOrEqual(99);
    for (const { reason } of refused) expect(reason).toBeInstanceOf(OverloadedError);
    expect((await pool.encode(handle, "abc", {}, never)).length).toBeGreaterThan(0);
  });

  test("a thread that dies takes its job with it, not those that wait", async () => {
    pool = createComputePool(1, log, new URL("../../support/mortal-compute-thread.ts", import.meta.url));
    const doomed = pool.encode(handle, "die", {}, never);
    const next = pool.encode(handle, "abc", {}, never);
    await expect(doomed).rejects.toThrow("ended");
    expect((await next).length).toBeGreaterThan(0);
  });

  test("an idle thread is ended, and another one is started when there is work", async () => {
    pool = createComputePool(1, log, undefined, 20);
    await pool.encode(handle, "abc", {}, never);
    await Bun.sleep(200);
    expect(Array.from(await pool.encode(handle, LONG, {}, never))).toEqual(expected);
  });

  test("closing rejects what waits", async () => {
    pool = createComputePool(1, log);
    const work = [1, 2, 3].map(() => pool.encode(handle, LONG, {}, never));
    const settled = Promise.allSettled(work);
    pool.close();
    for (const { status } of await settled) expect(status).toBe("rejected");
    await expect(pool.encode(handle, "a", {}, never)).rejects.toBeInstanceOf(OverloadedError);
  });
});

describe("over a link", () => {
  /** A link whose messages are cloned as between threads. */
  function linked(control: Control) {
    const answers = answerer(control, (id, answer) => queueMicrotask(() => link.answered(id, structuredClone(answer))));
    const link = controlOver({
      ask: (id, question) => answers.asked(id, structuredClone(question)),
      forget: (id) => answers.forgotten(id),
    });
    return { control: link.control, close: () => answers.close() };
  }
  const world = () => {
    pool = createComputePool(1, log);
    return linked({
      ...pool,
      addTokenizer: () => Promise.reject(new OverloadedError("full")),
      removeTokenizer: async (id) => id === "known",
      admin: testControl.admin,
    });
  };

  test("ids, values and errors come through", async () => {
    const { control } = world();
    expect(Array.from(await control.encode(handle, LONG, {}, never))).toEqual(expected);
    expect(await control.removeTokenizer("known")).toBe(true);
    expect(await control.removeTokenizer("other")).toBe(false);
    await expect(control.addTokenizer({ name: "a", source: "b" })).rejects.toBeInstanceOf(OverloadedError);
  });

  test("a request that ends gives up its question, and so does a thread that ends", async () => {
    const { control, close } = world();
    const client = new AbortController();
    const blocking = control.encode(handle, LONG, {}, never);
    const asked = control.encode(handle, LONG, {}, client.signal);
    client.abort(new Error("left"));
    await expect(asked).rejects.toThrow("left");
    expect((await blocking).length).toBe(expected.length);
    void control.encode(handle, LONG, {}, never);
    close();
    expect((await pool.encode(handle, "abc", {}, never)).length).toBeGreaterThan(0);
  });
});
