/** Compiles the kernels: the tokenizer's and the prefix index's. Run: node scripts/bun.mjs run scripts/build-kernel.ts */
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const FLAGS = [
  ..."-O3 --converge --noAssert --runtime stub --importMemory --initialMemory 1".split(" "),
  ..."--enable simd --enable bulk-memory --enable threads --sharedMemory".split(" "),
];

/** Where kernels are, and pages that their memory may have. */
export const KERNELS = [
  { folder: join(root, "src/tokenizer/kernel"), maximumMemory: 16_384 },
  { folder: join(root, "src/threads/prefix-kernel"), maximumMemory: 65_536 },
] as const;
export type KernelSource = (typeof KERNELS)[number];

/** The committed module. */
export const wasmOf = ({ folder }: KernelSource): string => join(folder, "kernel.wasm");

/** Compiles a folder's `kernel.as.ts` to `outFile` (by default the committed `kernel.wasm`). Throws with the compiler's output. */
export async function buildKernel(kernel: KernelSource, outFile = wasmOf(kernel)): Promise<void> {
  const compiler = join(root, "node_modules/assemblyscript/bin/asc.js");
  const flags = [...FLAGS, "--maximumMemory", String(kernel.maximumMemory)];
  const args = [process.execPath, compiler, join(kernel.folder, "kernel.as.ts"), ...flags, "-o", outFile];
  const run = Bun.spawn(args, { cwd: root, stdout: "pipe", stderr: "pipe", env: { ...process.env, BUN_BE_BUN: "1" } });
  const [code, out, error] = await Promise.all([
    run.exited,
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
  ]);
  if (code !== 0) throw new Error(`the kernel in ${kernel.folder} does not compile:\n${out}${error}`);
}

if (import.meta.main) for (const kernel of KERNELS) await buildKernel(kernel);
