/** Compiles the tokenizer kernel. Run: node scripts/bun.mjs run scripts/build-kernel.ts */
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const folder = join(root, "src/tokenizer/kernel");
const FLAGS = [
  ..."-O3 --converge --noAssert --runtime stub --importMemory --initialMemory 1".split(" "),
  ..."--enable simd --enable bulk-memory --enable threads --sharedMemory --maximumMemory 16384".split(" "),
];

/** Compiles `kernel.as.ts` to `outFile` (by default the committed `kernel.wasm`). Throws with the compiler's output. */
export async function buildKernel(outFile = join(folder, "kernel.wasm")): Promise<void> {
  const compiler = join(root, "node_modules/assemblyscript/bin/asc.js");
  const args = [process.execPath, compiler, join(folder, "kernel.as.ts"), ...FLAGS, "-o", outFile];
  const run = Bun.spawn(args, { cwd: root, stdout: "pipe", stderr: "pipe", env: { ...process.env, BUN_BE_BUN: "1" } });
  const [code, out, error] = await Promise.all([
    run.exited,
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
  ]);
  if (code !== 0) throw new Error(`the kernel does not compile:\n${out}${error}`);
}

if (import.meta.main) await buildKernel();
