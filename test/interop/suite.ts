const SLOW_MS = 1000;

/** Runs checks one after the other, keeps a line for each, counts them. */
export class Suite {
  passed = 0;
  failed = 0;
  skipped = 0;
  readonly lines: string[] = [];

  /** Everything is named under the prefix. */
  constructor(private readonly prefix = "") {}

  async check(name: string, work: () => void | Promise<void>): Promise<void> {
    const label = `${this.prefix}${name}`;
    const started = performance.now();
    try {
      await work();
      this.passed++;
      const ms = performance.now() - started;
      this.lines.push(`ok    ${label}${ms < SLOW_MS ? "" : ` (${(ms / 1000).toFixed(1)} s)`}`);
    } catch (error) {
      this.fail(name, error as Error);
    }
  }

  /** Something outside of the checks went wrong. */
  fail(name: string, error: Error): void {
    this.failed++;
    this.lines.push(`FAIL  ${this.prefix}${name}\n      ${error.message.replaceAll("\n", "\n      ")}`);
  }
}

/** A part of the run. */
export interface Part {
  readonly name: string;
  run(suite: Suite): Promise<void>;
}

/** Runs the parts, a few at once, for they mostly wait; prints each when it is done. Gives the counts. */
export async function runParts(
  parts: readonly Part[],
  atOnce: number,
): Promise<{ passed: number; failed: number; skipped: number }> {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const left = [...parts];
  const worker = async (): Promise<void> => {
    for (let part = left.shift(); part !== undefined; part = left.shift()) {
      const suite = new Suite(`[${part.name}] `);
      try {
        await part.run(suite);
      } catch (error) {
        suite.fail("it breaks off", error as Error);
      }
      counts.passed += suite.passed;
      counts.failed += suite.failed;
      counts.skipped += suite.skipped;
      for (const line of suite.lines) console.log(line);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return counts;
}
