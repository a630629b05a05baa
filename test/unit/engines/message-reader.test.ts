import { expect, test } from "bun:test";
import { MessageReader } from "../../../src/engines/message-reader.ts";

const framed = (bytes: Uint8Array, flag = 0): Buffer => {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
};
const MESSAGES = [Buffer.from("one"), Buffer.alloc(0), Buffer.alloc(300, 7), Buffer.from("last")];
const STREAM = Buffer.concat(MESSAGES.map((bytes) => framed(bytes)));

test("messages are the same, however they are split, also when the sink stops after each", () => {
  for (let step = 1; step <= STREAM.length; step++)
    for (const goOn of [true, false]) {
      const seen: Buffer[] = [];
      const reader = new MessageReader(1000, {
        takeMessage(bytes, start, end) {
          seen.push(Buffer.from(bytes.subarray(start, end)));
          return goOn;
        },
      });
      // With other bytes before and behind, which are not to be read.
      const padded = Buffer.concat([Buffer.alloc(2, 255), STREAM, Buffer.alloc(9, 255)]);
      for (let at = 2; at < 2 + STREAM.length; ) {
        const end = Math.min(at + step, 2 + STREAM.length);
        while (at < end) at = reader.read(padded, at, end);
      }
      expect(seen).toEqual(MESSAGES);
      expect(reader.insideMessage).toBe(false);
      expect(reader.problem).toBeUndefined();
    }
});

test("a compressed message, and one over the limit, is a problem before its bytes come", () => {
  for (const [bytes, text] of [
    [framed(Buffer.of(1), 1), "compressed"],
    [Buffer.of(0, 0, 0, 3, 233), "over the limit"],
  ] as const) {
    const reader = new MessageReader(1000, { takeMessage: () => true });
    expect(reader.read(bytes, 0, bytes.length)).toBe(5);
    expect(reader.problem?.message).toContain(text);
  }
});
