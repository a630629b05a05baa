import { createSealer } from "../../src/apis/shared/seal.ts";
import { localHistory } from "../../src/history/host.ts";
import { createMemory } from "../../src/history/memory.ts";
import type { HistoryStore } from "../../src/history/store.ts";
import { UseFlag } from "../../src/history/use-flag.ts";
import { RunRegistry } from "../../src/server/runs.ts";
import type { KeptForThreads } from "../../src/threads/supervisor.ts";

const sealingKey = new TextEncoder().encode("the sealing key of the tests");

/** A memory of its own. */
export const testHistory = (): HistoryStore => localHistory(createMemory({ maxEntries: 1000, maxBytes: 1 << 26 }));

/** What a serving thread keeps, for tests that look at it in one thread. */
export const testKept = (history: HistoryStore | null = testHistory()) => ({
  history,
  sealer: createSealer(sealingKey),
  runs: new RunRegistry(),
  used: new UseFlag(),
});

/** For threads that keep nothing. */
export const keptNowhere: KeptForThreads = {
  history: { url: "none" },
  sealingKey,
  used: new SharedArrayBuffer(4),
  connect: () => undefined,
};
