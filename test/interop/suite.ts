/** Runs checks one after the other, prints each, counts them. */
export class Suite {
  passed = 0;
  failed = 0;

  constructor(private prefix = "") {}

  /** Everything from now on is named under this. */
  under(prefix: string): void {
    this.prefix = prefix;
  }

  async check(name: string, work: () => void | Promise<void>): Promise<void> {
    const label = `${this.prefix}${name}`;
    try {
      await work();
      this.passed++;
      console.log(`ok    ${label}`);
    } catch (error) {
      this.failed++;
      console.log(`FAIL  ${label}\n      ${(error as Error).message.replaceAll("\n", "\n      ")}`);
    }
  }
}
