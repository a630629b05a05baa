import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildKernel } from "../../../scripts/build-kernel.ts";

test("the committed kernel.wasm is what its source compiles to", async () => {
  const folder = mkdtempSync(join(tmpdir(), "kernel-"));
  try {
    const fresh = join(folder, "kernel.wasm");
    await buildKernel(fresh);
    const committed = readFileSync(join(import.meta.dir, "../../../src/tokenizer/kernel/kernel.wasm"));
    expect(readFileSync(fresh).equals(committed)).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 60_000);
