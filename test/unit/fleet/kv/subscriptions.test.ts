/** How the index is tended. */
import { expect, test } from "bun:test";
import { watchKvEvents } from "../../../../src/fleet/kv/subscriptions.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { MetricRegistry } from "../../../../src/telemetry/registry.ts";
import { PrefixBoard } from "../../../../src/threads/prefix-board.ts";
import { FakeClock } from "../../../support/fake-clock.ts";

test("what nobody believes any more goes by and by, though there is room: never does it come back", async () => {
  const clock = new FakeClock();
  const board = PrefixBoard.create(1, 1);
  const index = board.writer();
  const reader = board.reader(0);
  const member = index.claim(0, 0);
  const watch = watchKvEvents({
    workers: () => [],
    useful: () => [],
    index,
    board: { lastProgress: () => 0, running: () => 0, setLoad() {} },
    clock,
    log: createLogger({ level: "warn", json: false, write() {} }),
    metrics: new MetricRegistry(),
    publish() {},
    work: {
      add(work) {
        for (const _ of work);
      },
      mayDoNow: () => false,
      close() {},
    },
  });
  const chain = { keys: new Int32Array(200).map((_, i) => i + 1), count: 100, blockSize: 16 };
  reader.promise(chain, 0, member, clock.now());
  expect(reader.match(chain, clock.now()).depth(member)).toBe(100);
  await clock.pass(6 * 3_600_000);
  expect(index.stats()).toMatchObject({ blocks: 0, evicted: 0 });
  // times have sixteen bits
  expect(reader.match(chain, clock.now() + (65_536 - 6 * 3600) * 1000).depth(member)).toBe(0);
  watch.close();
}, 30_000);
