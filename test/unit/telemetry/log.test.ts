import { describe, expect, test } from "bun:test";
import { createLogger, type LogLevel, type LogOptions } from "../../../src/telemetry/log.ts";

function logger(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const now = () => Date.UTC(2026, 0, 2, 3, 4, 5, 6);
  const log = createLogger({ level: "info", json: false, now, write: (line) => lines.push(line), ...options });
  return { log, lines };
}
const time = "2026-01-02T03:04:05.006Z";

test.each<[LogLevel, string[]]>([
  ["debug", ["debug", "info", "warn", "error"]],
  ["info", ["info", "warn", "error"]],
  ["warn", ["warn", "error"]],
  ["error", ["error"]],
])("level %s writes %j", (level, expected) => {
  const { log, lines } = logger({ level, json: true });
  for (const name of ["debug", "info", "warn", "error"] as const) log[name]("x");
  expect(lines.map((line) => JSON.parse(line).level)).toEqual(expected);
});

test("a level that is off never looks at the fields", () => {
  const { log } = logger();
  let looked = false;
  log.debug("x", {
    get field() {
      looked = true;
      return 1;
    },
  });
  expect(looked).toBe(false);
});

describe("text", () => {
  test("fields as key=value, quoted where needed", () => {
    const { log, lines } = logger({ fields: { thread: 2 } });
    log.warn("worker is down", {
      worker: "grpc://a:1",
      n: 3,
      ok: false,
      why: "no route",
      list: [1, "b"],
      none: undefined,
      empty: "",
    });
    expect(lines).toEqual([
      `${time} WARN  worker is down thread=2 worker=grpc://a:1 n=3 ok=false why="no route" list="[1,\\"b\\"]" empty=""\n`,
    ]);
  });

  test("one line each, whatever a client sends", () => {
    const { log, lines } = logger();
    log.info("a\nb\u001b[31m", { "k\n=": "x\r\n2026 ERROR forged", bell: "\u0007\u009b" });
    expect(lines).toHaveLength(1);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that none is left is what is tested
    expect(lines[0]?.slice(0, -1)).not.toMatch(/[\x00-\x1f\x7f-\x9f]/);
    expect(lines[0]).toStartWith(`${time} INFO  a\\nb\\u001b[31m k`);
  });
});

describe("JSON", () => {
  test("one object a line; fields can't replace the three fixed ones", () => {
    const { log, lines } = logger({ json: true });
    log.error("a\nb", { level: "x", time: 1, message: "m", big: 12n, nested: { at: [1n] } });
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      time,
      level: "error",
      message: "a\nb",
      level_: "x",
      time_: 1,
      message_: "m",
      big: 12,
      nested: { at: [1] },
    });
    expect(lines[0]?.indexOf("\n")).toBe((lines[0]?.length ?? 0) - 1);
  });
});

describe("errors", () => {
  const error = new TypeError("bad", { cause: new RangeError("deep") });

  test("name and message, with the cause", () => {
    const { log, lines } = logger({ json: true });
    log.info("x", { error, list: [error] });
    const text = "TypeError: bad (because of RangeError: deep)";
    expect(JSON.parse(lines[0] ?? "")).toEqual({ time, level: "info", message: "x", error: text, list: [text] });
  });

  test("the stack at level debug only", () => {
    const { log, lines } = logger({ json: true, level: "debug" });
    log.info("x", { error });
    expect(JSON.parse(lines[0] ?? "").error_stack).toContain("log.test.ts");
  });
});

describe("nothing throws", () => {
  test("cyclic, throwing and odd fields", () => {
    const { log, lines } = logger({ json: true });
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    log.info("cyclic", { cyclic, nan: Number.NaN, symbol: Symbol("s"), fn: () => 1, map: new Map([[1, 2]]) });
    log.info("throwing", {
      get x(): number {
        throw new Error("no");
      },
    });
    log.info("after");
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(["cyclic", "after"]);
    expect(JSON.parse(lines[1] ?? "").dropped_lines).toBe(1);
  });

  test("a failing descriptor: later lines tell how many were lost", () => {
    const lines: string[] = [];
    let broken = true;
    const write = (line: string) => {
      if (broken) throw new Error("EAGAIN");
      lines.push(line);
    };
    const { log } = logger({ write });
    log.info("one");
    log.info("two");
    broken = false;
    log.info("three");
    log.info("four");
    expect(lines).toEqual([`${time} INFO  three dropped_lines=2\n`, `${time} INFO  four\n`]);
  });

  test("a reader of stderr that has gone does not end the process", async () => {
    const module = new URL("../../../src/telemetry/log.ts", import.meta.url).href;
    const script = `const { createLogger } = await import(${JSON.stringify(module)});
      const log = createLogger({ level: "info", json: false });
      for (let i = 0; i < 100; i++) { log.info("x".repeat(1000)); await Bun.sleep(1); }
      console.log("alive");`;
    const child = Bun.spawn(
      ["sh", "-c", `{ "$0" -e "$1" 2>&1 >&3 | head -n 1 >&4; } 3>&1 4>/dev/null`, process.execPath, script],
      {
        stdout: "pipe",
        stderr: "inherit",
      },
    );
    expect(await new Response(child.stdout).text()).toBe("alive\n");
  });
});
