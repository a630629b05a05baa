import { expect, test } from "bun:test";
import { unchangedCode } from "../../../src/threads/start-pages.ts";

const mapping = (head: string, dirty: number): string => `${head}
Size:                 64 kB
Rss:                  32 kB
Private_Clean:        32 kB
Private_Dirty:        ${dirty} kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
`;

test("only code of the program that nobody has changed is given back", () => {
  const smaps = [
    mapping("00200000-01a38000 r--p 00000000 fe:00 77                         /usr/bin/collie", 0),
    mapping("01a40000-0684a000 r-xp 01838000 fe:00 77                         /usr/bin/collie", 0),
    mapping("0684a000-0684b000 r-xp 01838000 fe:00 77                         /usr/bin/collie", 4),
    mapping("0685a000-08a4a000 rw-p 06642000 fe:00 77                         /usr/bin/collie", 0),
    mapping("7f0000000000-7f0000100000 r-xp 00000000 fe:00 9                  /usr/lib/libc.so.6", 0),
    mapping("7f1000000000-7f1000100000 rwxp 00000000 00:00 0 ", 0),
  ].join("");
  expect(unchangedCode(smaps, "/usr/bin/collie")).toEqual([{ start: 0x01a40000n, end: 0x0684a000n }]);
});

test.skipIf(process.platform !== "linux")("a process goes on without the pages, and is smaller", async () => {
  const module = new URL("../../../src/threads/start-pages.ts", import.meta.url).pathname;
  const program = `
    import { readFileSync } from "node:fs";
    import { dropStartPages } from ${JSON.stringify(module)};
    const files = () => Number(/RssFile:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
    const before = files();
    dropStartPages();
    const after = files();
    const text = "x".repeat(100_000).replaceAll("x", "yz");
    console.log(JSON.stringify({ before, after, length: JSON.parse(JSON.stringify({ text })).text.length }));`;
  const run = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "inherit" });
  const { before, after, length } = (await new Response(run.stdout).json()) as Record<string, number>;
  expect(await run.exited).toBe(0);
  expect(length).toBe(200_000);
  expect(after!).toBeLessThan(before! * 0.8);
});
