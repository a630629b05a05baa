import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-tokenize-"));
const QWEN3 = join(folder, "qwen3");
mkdirSync(QWEN3);
for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(QWEN3, name), bytes);
const BERT = join(folder, "bert");
mkdirSync(BERT);
copyFileSync(join(import.meta.dir, "../../golden/tokenizer/small/wordpiece.json"), join(BERT, "tokenizer.json"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = { PATH: process.env["PATH"] ?? "", XDG_CACHE_HOME: join(folder, "cache") };
const command = (args: readonly string[], model = QWEN3) => [
  process.execPath,
  join(import.meta.dir, "run-cli.ts"),
  "tokenize",
  "--model-path",
  model,
  ...args,
];

async function tokenize(args: readonly string[], input: string | Uint8Array = "", model = QWEN3) {
  const child = Bun.spawn(command(args, model), {
    env,
    stdin: Buffer.from(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, status };
}
const good = (out: string) => ({ out, err: "", status: 0 });

describe("text", () => {
  const hello = '{"tokens":[9707,1052],"pieces":["Hello"," there"],"count":2}\n';
  test("from arguments, as JSON where no terminal is there", async () => {
    expect(await tokenize(["Hello there"])).toEqual(good(hello));
    expect(await tokenize(["Hello", "there"])).toEqual(good(hello));
    expect(await tokenize(["--", "--jsonl"])).toEqual(
      good('{"tokens":[313,2236,75],"pieces":["--","json","l"],"count":3}\n'),
    );
  });

  test("from standard input, all of it", async () => {
    expect(await tokenize([], "Hello there")).toEqual(good(hello));
    expect(await tokenize([], "a\n")).toEqual(good('{"tokens":[64,198],"pieces":["a","\\n"],"count":2}\n'));
    expect(await tokenize([])).toEqual(good('{"tokens":[],"pieces":[],"count":0}\n'));
    expect(await tokenize([], Uint8Array.of(97, 0xff))).toEqual({
      out: "",
      err: "collie: standard input is not valid UTF-8\n",
      status: 1,
    });
  });

  test("ids as arguments or as JSON, special tokens kept or skipped", async () => {
    const both = '{"text":"Hello there<|im_end|>","count":3}\n';
    expect(await tokenize(["--decode", "9707", "1052,151645"])).toEqual(good(both));
    expect(await tokenize(["--decode"], "[9707, 1052, 151645]\n")).toEqual(good(both));
    expect((await tokenize(["--decode", "--skip-special-tokens", "9707 1052 151645"])).out).toContain('"Hello there"');
    for (const wrong of ["x", "-1", "[1.5]", "[1", '["1"]', "4294967296", '[{"a":1}]'])
      expect(await tokenize(["--decode"], wrong)).toMatchObject({ out: "", status: 1 });
  });
});

describe("lines", () => {
  test("strings in, ids out; the last one may lack its end", async () => {
    const input = '"Hello there"\n "" \r\n"a\\nb"\n"\\ud800"\n"\ufffd"\n"a\u2028b"';
    expect(await tokenize(["--jsonl"], input)).toEqual(
      good("[9707,1052]\n[]\n[64,198,65]\n[5691]\n[5691]\n[64,378,101,65]\n"),
    );
    expect(await tokenize(["--jsonl"])).toEqual(good(""));
  });

  test("ids in, strings out, however they are written", async () => {
    const input = "[9707,1052]\n[ 9707 ,\t1052 ]\r\n[]\n[9.707e3, 151645]\n[123893]\n[4294967295]";
    expect(await tokenize(["--jsonl", "--decode"], input)).toEqual(
      good('"Hello there"\n"Hello there"\n""\n"Hello<|im_end|>"\n"\ufffd"\n""\n'),
    );
    expect((await tokenize(["--jsonl", "--decode", "--skip-special-tokens"], "[9707,151645]")).out).toBe('"Hello"\n');
  });

  test("special tokens around a text on demand", async () => {
    const file = join(BERT, "tokenizer.json");
    const json = (await Bun.file(file).json()) as Record<string, unknown>;
    json["post_processor"] = { type: "BertProcessing", sep: ["[SEP]", 3], cls: ["[CLS]", 2] };
    writeFileSync(file, JSON.stringify(json));
    const plain = JSON.parse((await tokenize(["--jsonl"], '"the"', BERT)).out) as number[];
    expect(await tokenize(["--jsonl", "--add-special-tokens"], '"the"', BERT)).toEqual(
      good(`[2,${plain.join(",")},3]\n`),
    );
  });

  test.each<[string, string[], string | Uint8Array, number, string]>([
    ["empty", [], '"a"\n\n"b"\n', 2, "is empty"],
    ["no string", [], '"a"\n"b"\n["c"]\n"d"', 3, "is not a JSON string"],
    ["two strings", [], '"a","b"\n', 1, "is not JSON"],
    ["a string over two lines", [], '"a"\n"b\nc"\n"d","e"\n', 2, "is not JSON"],
    ["a list over two lines", [], '["a"\n"b"]\n"c","d"\n', 1, "is not JSON"],
    ["no JSON", [], "hello\n", 1, "is not JSON"],
    ["no UTF-8", [], Buffer.from('"a"\n"\xff"\n', "latin1"), 2, "is not valid UTF-8"],
    ["a string", ["--decode"], '[1]\n"a"\n', 2, "is not a JSON array of token ids"],
    ["a negative id", ["--decode"], "[1]\n[2]\n[1,-1]\n", 3, "is not a JSON array of token ids"],
    ["a fraction", ["--decode"], "[1.5]", 1, "is not a JSON array of token ids"],
    ["33 bits", ["--decode"], "[4294967296]", 1, "is not a JSON array of token ids"],
    ["a leading zero", ["--decode"], "[01]", 1, "is not JSON"],
    ["an array over two lines", ["--decode"], "[1,\n2]\n[1],[2]\n", 1, "is not JSON"],
    ["more behind it", ["--decode"], "[1] 2\n", 1, "is not JSON"],
    ["a comma at the end", ["--decode"], "[1,]\n", 1, "is not JSON"],
  ])(
    "%s: the line's number on stderr, status 1, the lines before it answered",
    async (_, flags, input, line, reason) => {
      const { out, err, status } = await tokenize(["--jsonl", ...flags], input);
      expect(err).toStartWith(`collie: line ${line}: ${reason}`);
      expect(err.split("\n")).toHaveLength(2);
      expect(status).toBe(1);
      expect(out.split("\n")).toHaveLength(line);
    },
  );

  test("lines that reach over blocks, and lines longer than one", async () => {
    const words = "some words of a line that is not the same as others ";
    const texts = Array.from({ length: 4000 }, (_, i) => `${i} ${words.repeat(i % 40)}`);
    texts.splice(2000, 0, words.repeat(60_000), "你好".repeat(500_000), '"\\'.repeat(300_000));
    const { out, err, status } = await tokenize(["--jsonl"], texts.map((text) => JSON.stringify(text)).join("\n"));
    expect([status, err]).toEqual([0, ""]);
    const back = await tokenize(["--jsonl", "--decode"], out);
    expect(
      back.out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as string),
    ).toEqual(texts);
  }, 60_000);

  test("answers come as soon as their lines have come", async () => {
    const child = Bun.spawn(command(["--jsonl"]), { env, stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    const reader = child.stdout.getReader();
    for (const [text, ids] of [
      ["a", "[64]\n"],
      ["Hello there", "[9707,1052]\n"],
    ] as const) {
      child.stdin.write(`${JSON.stringify(text)}\n"un`);
      child.stdin.flush();
      let out = "";
      while (!out.endsWith("\n")) out += Buffer.from((await reader.read()).value ?? []).toString();
      expect(out).toBe(ids);
      child.stdin.write('finished"\n');
      child.stdin.flush();
      out = "";
      while (!out.endsWith("\n")) out += Buffer.from((await reader.read()).value ?? []).toString();
      expect(out).toMatch(/^\[[\d,]+\]\n$/);
    }
    child.stdin.end();
    expect(await child.exited).toBe(0);
  });

  test("a reader that leaves ends it quietly", async () => {
    const lines = join(folder, "lines.jsonl");
    writeFileSync(lines, '"Hello there"\n'.repeat(500_000));
    const script = `exec 3>&1; { ${command(["--jsonl"]).join(" ")} < ${lines}; echo "status $?" >&3; } | head -n 2`;
    const child = Bun.spawn(["sh", "-c", script], { env, stdout: "pipe", stderr: "pipe" });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect(err).toBe("");
    expect(out.split("\n").sort()).toEqual(["", "[9707,1052]", "[9707,1052]", "status 0"]);
  });

  test("a slow reader gets all, and the memory that it takes has a bound", async () => {
    const child = Bun.spawn(command(["--jsonl"]), { env, stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    const block = `${JSON.stringify("some words of a line ".repeat(20))}\n`.repeat(2000);
    const BLOCKS = 150; // 128 MB
    const writing = (async () => {
      for (let i = 0; i < BLOCKS; i++) {
        child.stdin.write(block);
        await child.stdin.flush();
      }
      child.stdin.end();
    })();
    let count = 0;
    let peak = 0;
    for await (const chunk of child.stdout) {
      for (const byte of chunk) if (byte === 10) count++;
      // not resourceUsage(): its peak begins with the size of the process that started this one
      peak = Math.max(peak, peakMemory(child.pid));
    }
    await writing;
    expect(await child.exited).toBe(0);
    expect(count).toBe(BLOCKS * 2000);
    expect(peak).toBeGreaterThan(50 << 20);
    expect(peak).toBeLessThan(400 << 20);
  }, 60_000);
});

/** Most memory that a process has taken so far, bytes; 0 when it is gone. */
function peakMemory(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

describe("on a terminal", () => {
  async function shown(args: readonly string[], more: Record<string, string> = {}): Promise<string> {
    let out = "";
    const terminal = new Bun.Terminal({
      cols: 100,
      rows: 30,
      data: (_, bytes) => (out += Buffer.from(bytes).toString()),
    });
    const child = Bun.spawn(command(args), { env: { ...env, TERM: "xterm", ...more }, terminal });
    expect(await child.exited).toBe(0);
    while (!out.endsWith("\n")) await Bun.sleep(5);
    terminal.close();
    return out.replaceAll("\r\n", "\n");
  }

  test("pieces are coloured, with the ids below; special tokens stand out", async () => {
    expect(await shown(["Hello there<|im_end|>"])).toBe(
      "\u001b[48;5;153;38;5;16mHello\u001b[0m\u001b[48;5;157;38;5;16m there\u001b[0m\u001b[48;5;210;38;5;16m<|im_end|>\u001b[0m\n9707 1052 151645\n3 tokens\n",
    );
  });

  test("without colours a bar parts them, and nothing in a text steers the terminal", async () => {
    const out = await shown(["a\u001b[31mb\n𝒳\u202e"], { NO_COLOR: "1" });
    expect(out).not.toContain("\u001b");
    expect(out).not.toContain("\u202e");
    expect(out).toStartWith("a|\\u{1b}[");
    expect(out).toContain("\\xf0\\x9d\\x92|\\xb3");
    expect(out).toMatch(/\n\d+ tokens\n$/);
  });

  test("decoded text is shown as it is", async () => {
    expect(await shown(["--decode", "9707", "1052"])).toBe("Hello there\n");
  });
});

describe("what is wrong is said", () => {
  test("no model, a wrong one, arguments beside --jsonl", async () => {
    const missing = Bun.spawnSync([process.execPath, join(import.meta.dir, "run-cli.ts"), "tokenize", "a"], { env });
    expect(missing.exitCode).toBe(2);
    expect(missing.stderr.toString()).toStartWith("collie: --model-path: is needed");
    expect(await tokenize(["a"], "", join(folder, "no such"))).toMatchObject({ out: "", status: 1 });
    expect((await tokenize(["a"], "", join(folder, "no such"))).err).toContain("does not exist");
    expect(await tokenize(["--jsonl", "a"])).toMatchObject({ status: 2 });
    expect(await tokenize(["--jsnol", "a"])).toMatchObject({ status: 2 });
  });

  test("a folder whose tokenizer can't be used", async () => {
    const broken = join(folder, "broken");
    mkdirSync(broken);
    writeFileSync(join(broken, "tokenizer.json"), '{"model":{"type":"Nothing"}}');
    const { err, status } = await tokenize(["a"], "", broken);
    expect(status).toBe(1);
    expect(err).toMatch(/^collie: .+\n$/);
  });
});
