/** Commands that answer lines of JSON, run as a process. */
import { join } from "node:path";

export interface Filtered {
  /** One value for each line of the output. */
  readonly lines: readonly Record<string, unknown>[];
  readonly err: string;
  readonly status: number;
}

/** Runs a command with these lines: text as it is, anything else as JSON. */
export async function filter(
  args: readonly string[],
  lines: readonly (string | object)[] | Uint8Array,
  env: Record<string, string>,
): Promise<Filtered> {
  const input = lines instanceof Uint8Array ? lines : Buffer.from(lines.map(lineOf).join("\n"));
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "run-cli.ts"), ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdin: input,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const answers = out === "" ? [] : out.replace(/\n$/, "").split("\n");
  return { lines: answers.map((line) => JSON.parse(line) as Record<string, unknown>), err, status };
}

const lineOf = (line: string | object): string => (typeof line === "string" ? line : JSON.stringify(line));
