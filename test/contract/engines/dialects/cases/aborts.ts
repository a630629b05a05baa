/** Ways to end a generation before its end. */
import { expect } from "bun:test";
import { settle } from "../../../simulator/harness.ts";
import { until } from "../../channels.ts";
import type { Case } from "../case.ts";

export const abortCases: readonly Case[] = [
  {
    id: "cancel",
    feature: "a generation that is cancelled ends at the engine at once",
    async run(peer) {
      const seen = await peer.run("SLOWLY", {}, { afterChunks: 3, during: (call) => call.cancel() });
      expect([seen.error?.kind, seen.finishes]).toEqual(["cancelled", []]);
      await until(() => peer.simulator.stats().open === 0);
      expect(peer.simulator.stats().engine).toMatchObject({ running: 0, blocksInUse: 0 });
      return "works";
    },
  },
  {
    id: "cancel-n",
    feature: "all choices of a cancelled generation end",
    async run(peer) {
      const seen = await peer.run(
        "SLOWLY",
        { n: 2, temperature: 1 },
        { afterChunks: 4, during: (call) => call.cancel() },
      );
      if (seen.error?.kind === "invalid") return { refused: seen.error.message };
      expect(seen.error?.kind).toBe("cancelled");
      await until(() => peer.simulator.stats().open === 0);
      expect(peer.simulator.stats().engine).toMatchObject({ running: 0, blocksInUse: 0 });
      return "works";
    },
  },
  {
    id: "abort",
    feature: "an Abort by request id: never a successful end",
    async run(peer) {
      let silent = false;
      const seen = await peer.run(
        "SLOWLY",
        { maxTokens: 400 },
        {
          afterChunks: 3,
          during(call, requestId) {
            void peer.engine.abort([requestId]).then(async () => {
              await settle(15);
              silent = true;
              call.cancel();
            });
          },
        },
      );
      await until(() => peer.simulator.stats().open === 0);
      expect(seen.ids().length).toBeLessThan(400);
      if (silent && seen.error?.kind === "cancelled")
        return { differs: "the stream stays open and silent; the gateway cancels it too" };
      if (seen.error === undefined) {
        expect(seen.finishes).toMatchObject([{ reason: "abort" }]);
        return "works";
      }
      expect([seen.error.kind, seen.finishes]).toEqual(["failed", []]);
      return { differs: `the stream ends with an error: ${seen.error.message}` };
    },
  },
  {
    id: "abort-unknown",
    feature: "an Abort of an id that is not open is no error",
    async run(peer) {
      await peer.engine.abort(["nobody", "nobody-else"]);
      return "works";
    },
  },
];
