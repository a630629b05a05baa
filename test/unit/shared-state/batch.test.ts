import { describe, expect, test } from "bun:test";
import { BatchWriter, MOST_BLOCKS, readBatch } from "../../../src/shared-state/batch.ts";

const KEYS = 5;
const keysOf = (blocks: number, first = 1): Int32Array =>
  Int32Array.from({ length: 2 * blocks }, (_, i) => Math.imul(first + i, 0x9e3779b1));

interface Told {
  readonly worker: bigint;
  readonly keys: readonly number[];
}

function read(bytes: Uint8Array): { readonly told: Told[]; readonly isWhole: boolean } {
  const told: Told[] = [];
  const isWhole = readBatch(bytes, KEYS, (worker, keys, count) =>
    told.push({ worker, keys: [...keys.subarray(0, 2 * count)] }),
  );
  return { told, isWhole };
}

describe("a batch", () => {
  test("holds what was added, in order, wherever it lies in memory", () => {
    const writer = new BatchWriter(KEYS);
    writer.add(0xffff_ffff_ffff_fffen, keysOf(3), 3);
    writer.add(7n, keysOf(9, 50), 1);
    expect(writer.blocks).toBe(4);
    const bytes = writer.take();
    expect(bytes.length).toBe(2 + 12 + 24 + 12 + 8);
    const elsewhere = new Uint8Array(bytes.length + 5).subarray(5);
    elsewhere.set(bytes);
    expect(read(elsewhere)).toEqual({
      told: [
        { worker: 0xffff_ffff_ffff_fffen, keys: [...keysOf(3)] },
        { worker: 7n, keys: [...keysOf(1, 50)] },
      ],
      isWhole: true,
    });
  });

  test("has a form that does not change under one version", () => {
    const writer = new BatchWriter(KEYS);
    writer.add(0x0102_0304_0506_0708n, Int32Array.of(-2, 0x11223344), 1);
    expect(Buffer.from(writer.take()).toString("hex")).toBe("01050807060504030201" + "01000000" + "feffffff44332211");
  });

  test("begins anew when it was taken", () => {
    const writer = new BatchWriter(KEYS);
    writer.add(1n, keysOf(2), 2);
    writer.take();
    expect(writer.blocks).toBe(0);
    writer.add(2n, keysOf(1), 1);
    expect(read(writer.take()).told.map(({ worker }) => worker)).toEqual([2n]);
  });

  test("grows for a long prompt, which is cut where it is too long", () => {
    const writer = new BatchWriter(KEYS);
    expect(writer.isFull).toBe(false);
    writer.add(1n, keysOf(MOST_BLOCKS + 1), MOST_BLOCKS + 1);
    writer.add(2n, keysOf(1), 1);
    expect(writer.isFull).toBe(true);
    const { told, isWhole } = read(writer.take());
    expect([told.length, isWhole]).toEqual([2, true]);
    expect(told[0]!.keys).toEqual([...keysOf(MOST_BLOCKS)]);
  });

  test("of another version, or cut anywhere, gives what is whole and says so", () => {
    const writer = new BatchWriter(KEYS);
    writer.add(1n, keysOf(2), 2);
    writer.add(2n, keysOf(3), 3);
    const bytes = writer.take().slice();
    for (const version of [0, 1]) {
      const other = bytes.slice();
      other[version]!++;
      expect(read(other)).toEqual({ told: [], isWhole: false });
    }
    expect(read(new Uint8Array(0))).toEqual({ told: [], isWhole: false });
    const first = 2 + 12 + 16;
    for (let end = 1; end < bytes.length; end++) {
      const { told, isWhole } = read(bytes.subarray(0, end));
      expect(isWhole).toBe(end === 2 || end === first);
      expect(told).toHaveLength(end < first ? 0 : 1);
    }
    new DataView(bytes.buffer).setUint32(10, 0xffff_ffff, true);
    expect(read(bytes)).toEqual({ told: [], isWhole: false });
  });
});
