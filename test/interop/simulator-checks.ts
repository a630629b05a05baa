import type { Suite } from "./suite.ts";
export async function simulatorChecks(_suite: Suite, _python: string): Promise<number> {
  return 0;
}
