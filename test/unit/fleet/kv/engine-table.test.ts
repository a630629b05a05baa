import { describe, expect, test } from "bun:test";
import { EngineTable, keyPartOf } from "../../../../src/fleet/kv/engine-table.ts";

const never = () => false;
const hash = (i: number): [low: number, high: number] => [Math.imul(i, 0x9e3779b1), Math.imul(i, 0x85ebca77) ^ i];

describe("blocks by the engine's hash", () => {
  test("are found by their owner only, nearly as many as there are rows", () => {
    const table = new EngineTable(4096);
    const [a, b] = [table.open(), table.open()];
    let put = 0;
    for (let i = 0; i < 3600; i++) if (table.put(i % 2 === 0 ? a : b, ...hash(i), i, keyPartOf(i * 77), never)) put++;
    expect(put).toBeGreaterThan(3560);
    let found = 0;
    for (let i = 0; i < 3600; i++) {
      const known = table.find(i % 2 === 0 ? a : b, ...hash(i));
      if (known?.position === i && known.keyPart === keyPartOf(i * 77)) found++;
      expect(table.find(i % 2 === 0 ? b : a, ...hash(i))).toBeUndefined();
    }
    expect(found).toBe(put);
  });

  test("are there as long as a copy is, however many there were", () => {
    const table = new EngineTable(64);
    const owner = table.open();
    for (let i = 0; i < 6; i++) table.put(owner, 1, 2, 3, 4, never);
    for (let i = 0; i < 5; i++) expect(table.take(table.find(owner, 1, 2)!.row)).toBe(false);
    expect(table.take(table.find(owner, 1, 2)!.row)).toBe(true);
    expect(table.find(owner, 1, 2)).toBeUndefined();
  });

  test("that lie elsewhere now begin to be counted anew", () => {
    const table = new EngineTable(64);
    const owner = table.open();
    for (let i = 0; i < 5; i++) table.put(owner, 1, 2, 3, 4, never);
    table.put(owner, 1, 2, 9, 4, never);
    const known = table.find(owner, 1, 2)!;
    expect(known.position).toBe(9);
    expect(table.take(known.row)).toBe(true);
  });

  test("of a closed owner are not found, and give their rows to others", () => {
    const table = new EngineTable(256);
    const first = table.open();
    for (let i = 0; i < 256; i++) table.put(first, ...hash(i), i, 0, never);
    table.close(first);
    const second = table.open();
    expect(second).not.toBe(first);
    for (let i = 0; i < 200; i++) {
      expect(table.find(second, ...hash(i))).toBeUndefined();
      expect(table.put(second, ...hash(i), i, 0, never)).toBe(true);
    }
    while (table.sweep(10));
    for (let i = 0; i < 200; i++) expect(table.find(second, ...hash(i))?.position).toBe(i);
    expect(table.find(first, ...hash(1))).toBeUndefined();
  });

  test("give way where they mean nothing any more, and nowhere else", () => {
    const table = new EngineTable(8);
    const owner = table.open();
    for (let i = 0; i < 8; i++) expect(table.put(owner, ...hash(i), i, 0, never)).toBe(true);
    expect(table.put(owner, ...hash(8), 8, 0, never)).toBe(false);
    expect(table.put(owner, ...hash(8), 8, 0, (position) => position === 3)).toBe(true);
    expect(table.find(owner, ...hash(3))).toBeUndefined();
    expect(table.find(owner, ...hash(8))?.position).toBe(8);
  });

  test("owners' numbers come back, but not while rows of theirs are left", () => {
    const table = new EngineTable(64);
    const kept = table.open();
    table.put(kept, 1, 2, 3, 4, never);
    for (let i = 0; i < 10_000; i++) {
      const owner = table.open();
      expect(owner).not.toBe(kept);
      expect(table.find(owner, 5, 6)).toBeUndefined();
      table.put(owner, 5, 6, 7, 8, never);
      table.close(owner);
    }
    expect(table.find(kept, 1, 2)?.position).toBe(3);
  });

  test("positions may be large", () => {
    const table = new EngineTable(64);
    const owner = table.open();
    const far = 2 ** 30 - 2;
    table.put(owner, -1, -1, far, keyPartOf(-1), never);
    expect(table.find(owner, -1, -1)).toMatchObject({ position: far, keyPart: keyPartOf(-1) });
  });
});
