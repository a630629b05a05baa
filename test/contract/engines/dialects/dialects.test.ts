/**
 * One suite over all engine dialects and both ages of their protocol: what the gateway makes of each, over either channel. The verdicts
 * are kept beside it, so that a change of one is seen, and the page about engines can show them; COLLIE_WRITE_VERDICTS=1 writes them.
 */
import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { DialectName } from "../../../support/proto-package.ts";
import type { Case, Verdict } from "./case.ts";
import { abortCases } from "./cases/aborts.ts";
import { constraintCases } from "./cases/constraints.ts";
import { controlCases } from "./cases/control.ts";
import { generateCases } from "./cases/generate.ts";
import { handoverCases } from "./cases/handover.ts";
import { logprobCases } from "./cases/logprobs.ts";
import { samplingCases } from "./cases/sampling.ts";
import { stopCases } from "./cases/stops.ts";
import { type Peer, type Protocol, withPeer } from "./peer.ts";
import kept from "./verdicts.json";

setDefaultTimeout(30_000);

const DIALECTS: readonly DialectName[] = ["vllm", "sglang", "tokenspeed", "trtllm", "mlx"];
const PROTOCOLS: readonly Protocol[] = ["0.4.14", "0.4.28"];

const CASES: readonly Case[] = [
  ...generateCases,
  ...stopCases,
  ...samplingCases,
  ...constraintCases,
  ...logprobCases,
  ...abortCases,
  ...controlCases,
  ...handoverCases,
];

/** By case and then by dialect and age. */
const verdicts: Record<string, { feature: string; verdicts: Record<string, Verdict> }> = {};
const known: Readonly<Record<string, { feature: string; verdicts: Readonly<Record<string, Verdict>> }>> = kept as never;
const writes = process.env["COLLIE_WRITE_VERDICTS"] === "1";

test("every case has a name of its own", () => {
  expect(new Set(CASES.map(({ id }) => id)).size).toBe(CASES.length);
  expect(new Set(CASES.map(({ feature }) => feature)).size).toBe(CASES.length);
});

describe.each(PROTOCOLS.flatMap((protocol) => DIALECTS.map((dialect) => [dialect, protocol] as const)))(
  "%s %s",
  (dialect, protocol) => {
    // The newest engines are spoken to over our own framing, the old ones over grpc-js: both have to do with every dialect.
    const transport = protocol === "0.4.28" ? "framing" : "grpc-js";
    let peer: Peer | undefined;
    let release: () => void = () => {};
    let closed: Promise<void> | undefined;

    async function opened(): Promise<Peer> {
      if (peer === undefined)
        await new Promise<void>((resolve, reject) => {
          closed = withPeer(dialect, protocol, transport, (made) => {
            peer = made;
            resolve();
            return new Promise((done) => {
              release = done;
            });
          });
          closed.catch(reject);
        });
      return peer!;
    }
    afterAll(async () => {
      release();
      await closed;
    });
    // An engine that is older than a field skips it; nothing that a request asks for may be lost so.
    afterEach(() => {
      for (const { extra } of peer?.simulator.requests() ?? []) expect(extra["ignored"]).toBeUndefined();
    });

    for (const { id, feature, run } of CASES) {
      test(`${id}: ${feature}`, async () => {
        const verdict = await run(await opened());
        const name = `${dialect} ${protocol}`;
        verdicts[id] ??= { feature, verdicts: {} };
        verdicts[id].verdicts[name] = verdict;
        if (!writes) expect(verdict).toEqual(known[id]?.verdicts[name] as Verdict);
      });
    }
  },
);

afterAll(async () => {
  if (writes) await Bun.write(join(import.meta.dir, "verdicts.json"), `${JSON.stringify(verdicts, null, 2)}\n`);
});
