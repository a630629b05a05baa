import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { constantPages, mappingsOf, sectionOf } from "../../../src/threads/start-pages.ts";

const mapping = (head: string, copied: number): string => `${head}
Size:                 64 kB
KernelPageSize:        4 kB
Rss:                  32 kB
Private_Clean:         0 kB
Private_Dirty:        32 kB
Anonymous:            ${copied} kB
VmFlags: rd ex mr mw me
`;

test("only what nobody can write to and nobody has changed of the program's own file is given back whole", () => {
  const smaps = [
    mapping("00200000-01a38000 r--p 00000000 fe:00 77                         /usr/bin/collie", 0),
    mapping("01a40000-0684a000 r-xp 01838000 fe:00 77                         /usr/bin/collie", 0),
    mapping("0684a000-0684b000 r-xp 01838000 fe:00 77                         /usr/bin/collie", 4),
    mapping("0685a000-08a4a000 rw-p 06642000 fe:00 77                         /usr/bin/collie", 0),
    mapping("7f0000000000-7f0000100000 r-xp 00000000 fe:00 9                  /usr/lib/libc.so.6", 0),
    mapping("7f1000000000-7f1000100000 rwxp 00000000 00:00 0 ", 0),
  ].join("");
  const mappings = mappingsOf(smaps, "/usr/bin/collie");
  expect(mappings).toHaveLength(4);
  expect(mappings[3]).toEqual({
    start: 0x0685a000,
    end: 0x08a4a000,
    mode: "rw-p",
    offset: 0x06642000,
    pageBytes: 4096,
    isChanged: false,
  });
  expect(constantPages(mappings)).toEqual(mappings.slice(0, 2));
});

test.skipIf(process.platform !== "linux")("sections of a program are found by name", () => {
  const program = readFileSync(process.execPath);
  const names = sectionOf(process.execPath, ".shstrtab")!;
  const text = program.subarray(names.offset, names.offset + names.size).toString("latin1");
  expect(text.split("\0")).toContain(".text");
  const code = sectionOf(process.execPath, ".text")!;
  expect(code.offset + code.size).toBeLessThan(program.length);
  expect(sectionOf(process.execPath, ".tex")).toBeUndefined();
  expect(sectionOf(import.meta.path, ".text")).toBeUndefined();
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
