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

test("tokens leave at their virtual time, without drift", async () => {
  const times = await run(1, 8, 25);
  for (const [i, time] of times.entries()) expect(time).toBeGreaterThan((i + 1) * 8 - 1);
  expect(times.at(-1)).toBeLessThan(25 * 8 + 60);
});

test("speed divides the time, instant takes none", async () => {
  const double = await run(4, 40, 10);
  expect(double.at(-1)).toBeGreaterThan(98);
  expect(double.at(-1)).toBeLessThan(180);
  expect((await run(0, 1000, 1000)).at(-1)).toBeLessThan(500);
});
