import { expect, test } from "bun:test";
import { EngineDriver } from "../../../src/simulator/core/driver.ts";
import { EngineCore } from "../../../src/simulator/core/engine-core.ts";
import { defaultCoreOptions } from "../../../src/simulator/core/options.ts";

function run(speed: number, decodeBaseMs: number, tokens: number): Promise<number[]> {
  const core = new EngineCore({ ...defaultCoreOptions, decodeBaseMs, decodePerRequestMs: 0 });
  const driver = new EngineDriver(core, speed);
  const started = performance.now();
  const times: number[] = [];
  return new Promise((resolve) => {
    driver.submit({
      prompt: Uint32Array.of(1, 2, 3),
      plan: () => ({ length: tokens, idAt: () => 5, finishReason: "length" }),
      onToken: () => times.push(performance.now() - started),
      onFinish: () => resolve(times),
    });
  });
}

/** The times of a run that ends before `mostMs`, or else of the last of many: a busy machine may delay some. */
async function best(speed: number, decodeBaseMs: number, tokens: number, mostMs: number): Promise<number[]> {
  let times: number[] = [];
  for (let i = 0; i < 20 && !(times.at(-1)! < mostMs); i++) {
    times = await run(speed, decodeBaseMs, tokens);
    expect(times).toHaveLength(tokens);
  }
  return times;
}

test("tokens leave at their virtual time, without drift", async () => {
  // A millisecond lost in each step would make it 360.
  const times = await best(1, 5, 60, 345);
  for (const [i, time] of times.entries()) expect(time).toBeGreaterThan((i + 1) * 5 - 1);
  expect(times.at(-1)).toBeLessThan(345);
});

test("speed divides the time, instant takes none", async () => {
  const quick = await best(4, 40, 10, 200);
  expect(quick.at(-1)).toBeGreaterThan(98);
  expect(quick.at(-1)).toBeLessThan(200);
  expect((await best(0, 1000, 1000, 500)).at(-1)).toBeLessThan(500);
});

/** A driver that counts its steps, and a sequence of `tokens` tokens in it. */
function setUp(speed: number, maxRunning = 256) {
  const core = new EngineCore({ ...defaultCoreOptions, decodeBaseMs: 2, decodePerRequestMs: 0, maxRunning });
  const begin = core.beginStep.bind(core);
  const count = { steps: 0 };
  core.beginStep = (now) => {
    count.steps++;
    return begin(now);
  };
  const driver = new EngineDriver(core, speed);
  const submit = (tokens: number, { onToken = (_made: number) => {}, tokenIntervalMs = 0 } = {}) => {
    const seen = { tokens: 0 };
    const { promise, resolve } = Promise.withResolvers<void>();
    const sequence = driver.submit({
      prompt: Uint32Array.of(1, 2, 3),
      plan: () => ({ length: tokens, idAt: () => 5, finishReason: "length" }),
      tokenIntervalMs,
      onToken: () => onToken(++seen.tokens),
      onFinish: () => resolve(),
    });
    return { sequence, seen, done: promise };
  };
  return { driver, submit, count };
}

for (const speed of [1, 0])
  test(`a pause holds everything up, newcomers too, and nothing is lost (speed ${speed})`, async () => {
    const { driver, submit, count } = setUp(speed);
    const paused = Promise.withResolvers<void>();
    const first = submit(20, {
      onToken(made) {
        if (made !== 5) return;
        driver.pause();
        paused.resolve();
      },
    });
    await paused.promise;
    const second = submit(3);
    const { steps } = count;
    await Bun.sleep(30);
    expect([first.seen.tokens, second.seen.tokens, count.steps]).toEqual([5, 0, steps]);
    driver.resume();
    driver.resume();
    await Promise.all([first.done, second.done]);
    expect([first.seen.tokens, second.seen.tokens]).toEqual([20, 3]);
    driver.stop();
  });

for (const speed of [1, 0])
  test(`one that is held keeps its place until it is aborted; the clock does not spin meanwhile (speed ${speed})`, async () => {
    const { driver, submit, count } = setUp(speed, 1);
    const held = Promise.withResolvers<void>();
    const first = submit(20, {
      onToken(made) {
        if (made !== 2) return;
        driver.hold(first.sequence);
        held.resolve();
      },
    });
    await held.promise;
    const second = submit(3);
    await Bun.sleep(20);
    const { steps } = count;
    await Bun.sleep(30);
    expect([first.seen.tokens, second.seen.tokens]).toEqual([2, 0]);
    expect(count.steps - steps).toBeLessThan(3);
    expect(driver.abort(first.sequence)).toBe(true);
    await second.done;
    expect(first.seen.tokens).toBe(2);
    driver.stop();
  });

test("nothing ticks once the last one that waited for its interval is gone", async () => {
  const { driver, submit, count } = setUp(0);
  const slow = submit(20, { tokenIntervalMs: 40 });
  await Bun.sleep(20);
  driver.abort(slow.sequence);
  await Bun.sleep(60);
  const { steps } = count;
  await Bun.sleep(40);
  expect(count.steps).toBe(steps);
  const next = submit(2);
  await next.done;
  expect(next.seen.tokens).toBe(2);
});
