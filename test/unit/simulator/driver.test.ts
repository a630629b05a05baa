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

/** The best of three runs: a busy machine may delay one. */
async function best(speed: number, decodeBaseMs: number, tokens: number): Promise<number[]> {
  const runs: number[][] = [];
  for (let i = 0; i < 3; i++) runs.push(await run(speed, decodeBaseMs, tokens));
  for (const times of runs) expect(times).toHaveLength(tokens);
  return runs.sort((a, b) => a.at(-1)! - b.at(-1)!)[0]!;
}

test("tokens leave at their virtual time, without drift", async () => {
  const times = await best(1, 5, 60);
  for (const [i, time] of times.entries()) expect(time).toBeGreaterThan((i + 1) * 5 - 1);
  // A millisecond lost in each step would make it 360.
  expect(times.at(-1)).toBeLessThan(345);
});

test("speed divides the time, instant takes none", async () => {
  const quick = await best(4, 40, 10);
  expect(quick.at(-1)).toBeGreaterThan(98);
  expect(quick.at(-1)).toBeLessThan(200);
  expect((await best(0, 1000, 1000)).at(-1)).toBeLessThan(500);
});
