/** The bytes of KV events for ZeroMQ. They were read back with msgpack for Python. */
import { expect, test } from "bun:test";
import type { KvBatch } from "../../../src/simulator/kv/feed.ts";
import { MsgpackWriter } from "../../../src/simulator/kv/msgpack.ts";
import { kvPayload } from "../../../src/simulator/kv/payload.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const batch: KvBatch = {
  rank: 1,
  sequence: 7,
  at: 1.5,
  events: [
    { kind: "cleared" },
    {
      kind: "stored",
      parent: undefined,
      blocks: [
        { hash: 1, tokenIds: Uint32Array.of(5, 300) },
        { hash: 3, tokenIds: Uint32Array.of(70_000, 127) },
      ],
    },
    { kind: "removed", hashes: [3, 1] },
  ],
  load: {} as KvBatch["load"],
};
const form = { blockSize: 2, unsignedHashes: false, eventPerBlock: false, events: "arrays" } as const;

test("arrays, an event for each block, signed hashes", () => {
  expect(hex(kvPayload(batch, { ...form, eventPerBlock: true }))).toBe(
    "93cb3ff80000000000009591b0416c6c426c6f636b73436c6561726564" +
      "97ab426c6f636b53746f72656491d39e3779b97f4a7c15c09205cd012c02c0a3475055" +
      "97ab426c6f636b53746f72656491d3daa66d2c7ddf743fd39e3779b97f4a7c1592ce000111707f02c0a3475055" +
      "93ac426c6f636b52656d6f76656491d3daa66d2c7ddf743fa3475055" +
      "93ac426c6f636b52656d6f76656491d39e3779b97f4a7c15a3475055" +
      "01",
  );
});

test("maps, whole chains, hashes without sign", () => {
  const bytes = kvPayload(batch, { ...form, events: "maps", unsignedHashes: true });
  expect(hex(bytes)).toBe(
    "93cb3ff80000000000009381a474797065b0416c6c426c6f636b73436c6561726564" +
      "87a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf9e3779b97f4a7c15cfdaa66d2c7ddf743f" +
      "b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f6964739405cd012cce000111707f" +
      "aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da3475055" +
      "83a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657392cfdaa66d2c7ddf743fcf9e3779b97f4a7c15" +
      "a66d656469756da3475055" +
      "01",
  );
});

test("heads grow with what they count", () => {
  const w = new MsgpackWriter();
  w.array(15);
  w.array(16);
  w.array(70_000);
  w.map(16);
  w.uint(127);
  w.uint(255);
  w.big(-1n);
  w.text("x".repeat(32));
  expect(hex(w.take())).toBe(`9fdc0010dd00011170de00107fccffd3${"ff".repeat(8)}db00000020${"78".repeat(32)}`);
  expect(w.take()).toHaveLength(0);
});
