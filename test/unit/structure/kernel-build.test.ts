import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildKernel, KERNELS, wasmOf } from "../../../scripts/build-kernel.ts";

test.each(KERNELS.map((kernel) => [kernel.folder.slice(kernel.folder.indexOf("src/")), kernel] as const))(
  "the committed module in %s is what its source compiles to",
  async (_, kernel) => {
    const folder = mkdtempSync(join(tmpdir(), "kernel-"));
    try {
      const fresh = join(folder, "kernel.wasm");
      await buildKernel(kernel, fresh);
      expect(readFileSync(fresh).equals(readFileSync(wasmOf(kernel)))).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  60_000,
);
