import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OptionTable } from "../../../src/config/option.ts";
import { ConfigError, type Environment, resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";

const table = {
  host: { flag: "host", type: "string", default: "0.0.0.0", group: "A", help: "h" },
  port: { flag: "port", type: "integer", default: 30000, min: 0, max: 65535, group: "A", help: "h" },
  ratio: { flag: "ratio", type: "number", min: 0, max: 1, group: "A", help: "h" },
  logJson: { flag: "log-json", type: "boolean", group: "A", help: "h" },
  logLevel: { flag: "log-level", type: "enum", values: ["debug", "info"], default: "info", group: "A", help: "h" },
  urls: {
    flag: "urls",
    type: "strings",
    default: ["a"],
    group: "A",
    help: "h",
    check: (v) => (v === "bad" ? "is bad" : undefined),
  },
  modelPath: { flag: "model-path", aliases: ["model"], type: "string", group: "A", help: "h" },
  apiKey: { flag: "api-key", type: "string", secret: true, group: "A", help: "h" },
} as const satisfies OptionTable;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "collie-config-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function written(text: string, name = `${++files}.yaml`): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const resolve = (args: readonly string[] = [], env: Environment = {}) => resolveOptions(table, { args, env });

function problems(args: readonly string[], env: Environment = {}): readonly string[] {
  try {
    resolve(args, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
/** The problems that a settings file has, without the file's path. */
const fileProblems = (text: string) => {
  const path = written(text);
  return problems(["--config", path]).map((problem) => problem.replace(path, "F"));
};

describe("precedence", () => {
  const file = () => written("host: file\nport: 1\nlog-level: debug\nurls: [f1, f2]\n");

  test("defaults", () => {
    const { values, sources, warnings, file } = resolve();
    expect(values).toEqual({
      host: "0.0.0.0",
      port: 30000,
      ratio: undefined,
      logJson: false,
      logLevel: "info",
      urls: ["a"],
      modelPath: undefined,
      apiKey: undefined,
    });
    expect(sources.port).toEqual({ kind: "default", name: "" });
    expect(warnings).toEqual([]);
    expect(file).toBeUndefined();
  });

  test("flag over environment over file over default", () => {
    const path = file();
    const { values, sources } = resolve(["--host", "flag", "--config", path], { COLLIE_HOST: "env", COLLIE_PORT: "2" });
    expect(values).toMatchObject({ host: "flag", port: 2, logLevel: "debug", urls: ["f1", "f2"], logJson: false });
    expect(sources.host).toEqual({ kind: "flag", name: "--host" });
    expect(sources.port).toEqual({ kind: "environment", name: "COLLIE_PORT" });
    expect(sources.logLevel).toEqual({ kind: "file", name: `${path}:3: log-level` });
  });

  test("a list of a stronger source replaces the weaker one", () => {
    expect(resolve(["--config", file(), "--urls", "x"]).values.urls).toEqual(["x"]);
  });

  test("the file is named by --config, else COLLIE_CONFIG, else the caller", () => {
    const [one, two, three] = [written("port: 1"), written("port: 2"), written("port: 3")];
    const from = (args: string[], env: Environment) => resolveOptions(table, { args, env, file: three });
    expect(from(["--config", one], { COLLIE_CONFIG: two }).values.port).toBe(1);
    expect(from([], { COLLIE_CONFIG: two }).values.port).toBe(2);
    expect(from([], { COLLIE_CONFIG: "" })).toMatchObject({ values: { port: 3 }, file: three });
  });

  test("an overridden value is checked all the same", () => {
    expect(problems(["--port", "1"], { COLLIE_PORT: "x" })).toEqual(['COLLIE_PORT: "x" is not an integer']);
  });

  test("the result is frozen, lists and defaults too", () => {
    const { values, sources } = resolve(["--urls", "x"]);
    for (const part of [values, values.urls, resolve().values.urls, sources]) expect(Object.isFrozen(part)).toBe(true);
  });
});

describe("flags", () => {
  test("spellings of a value", () => {
    expect(resolve(["--port", "5"]).values.port).toBe(5);
    expect(resolve(["--port=5"]).values.port).toBe(5);
    expect(resolve(["--host=a=b"]).values.host).toBe("a=b");
    expect(resolve(["--host=--x"]).values.host).toBe("--x");
    expect(resolve(["--model", "m"]).values.modelPath).toBe("m");
    expect(resolve(["--model", "m"]).sources.modelPath.name).toBe("--model");
    expect(resolve(["--ratio", ".5"]).values.ratio).toBe(0.5);
  });

  test.each([
    [["--log-json"], true],
    [["--log-json=true"], true],
    [["--log-json=false"], false],
    [["--log-json=off"], false],
    [["--no-log-json"], false],
  ])("boolean %p", (args, expected) => {
    expect(resolve(args, { COLLIE_LOG_JSON: String(!expected) }).values.logJson).toBe(expected);
  });

  test("lists take several values and may be repeated", () => {
    expect(resolve(["--urls", "a", "b", "--port", "1", "--urls", "c", "--urls=d,e"]).values.urls).toEqual([
      "a",
      "b",
      "c",
      "d,e",
    ]);
  });

  test.each<[string[], string[]]>([
    [["--prot", "7"], ["--prot: there is no such flag; did you mean --port?"]],
    [["--log_json"], ["--log_json: there is no such flag; did you mean --log-json?"]],
    [["--zzzzzzzz"], ["--zzzzzzzz: there is no such flag"]],
    [["--constructor"], ["--constructor: there is no such flag"]],
    [["--port", "1", "--port", "1"], ["--port: is given twice"]],
    [["--model", "a", "--model-path", "b"], ["--model-path: is given twice (also as --model)"]],
    [["--log-json", "--no-log-json"], ["--no-log-json: is given twice (also as --log-json)"]],
    [["--no-log-json=true"], ["--no-log-json: takes no value"]],
    [["--port"], ["--port: needs a value"]],
    [["--host", "--port", "1"], ["--host: needs a value (a value that starts with dashes is written --host=VALUE)"]],
    [["--urls"], ["--urls: needs a value"]],
    [["--host="], ["--host: is empty"]],
    [["--config="], ["--config: is empty"]],
    [["x"], ['"x" is not expected here']],
    [["--port", "1", "x"], ['"x" is not expected here']],
    [["--log-json", "true"], ['"true" is not expected here; write --log-json=true']],
    [["--port", "70000"], ["--port: 70000 is above 65535"]],
    [["--port", "-1"], ["--port: -1 is below 0"]],
    [["--port", "1.5"], ['--port: "1.5" is not an integer']],
    [["--port", "0x10"], ['--port: "0x10" is not an integer']],
    [["--port", "99999999999999999999"], ["--port: 100000000000000000000 is above 65535"]],
    [["--ratio", "Infinity"], ['--ratio: "Infinity" is not a number']],
    [["--log-json=maybe"], ['--log-json: "maybe" is neither true nor false']],
    [["--log-level", "loud"], ['--log-level: "loud" is not one of debug, info']],
    [["--urls", "bad", "ok", "bad"], ['--urls: "bad" is bad; "bad" is bad']],
    [["--config", "/nowhere/c.yaml"], ["/nowhere/c.yaml: no such file"]],
  ])("%j is refused", (args, expected) => {
    expect(problems(args)).toEqual(expected);
  });

  test("all problems of all sources come in one error", () => {
    const path = written("prot: 1\n");
    expect(problems(["--config", path, "--hots", "x", "--port", "abc"], { COLLIE_LOG_LEVEL: "loud" })).toEqual([
      "--hots: there is no such flag; did you mean --host?",
      `${path}:1: prot: there is no such setting; did you mean port?`,
      '--port: "abc" is not an integer',
      'COLLIE_LOG_LEVEL: "loud" is not one of debug, info',
    ]);
  });
});

describe("environment", () => {
  test("every kind of value", () => {
    const { values } = resolve([], {
      COLLIE_PORT: " 7 ",
      COLLIE_LOG_JSON: "1",
      COLLIE_URLS: "a, b\n c",
      COLLIE_MODEL_PATH: "/m x",
    });
    expect(values).toMatchObject({ port: 7, logJson: true, urls: ["a", "b", "c"], modelPath: "/m x" });
  });

  test("an empty variable is not set, but an empty secret stops the start", () => {
    expect(resolve([], { COLLIE_PORT: "", COLLIE_URLS: " " }).values).toMatchObject({ port: 30000, urls: ["a"] });
    expect(problems([], { COLLIE_API_KEY: "" })).toEqual(["COLLIE_API_KEY: is empty; unset it, or give the secret"]);
  });

  test("an unknown variable is a warning", () => {
    expect(resolve([], { COLLIE_PROT: "1", COLLIE_ZZZZZZZZZZ: "1", PORT: "x" }).warnings).toEqual([
      "COLLIE_PROT: names no setting, ignored; did you mean COLLIE_PORT?",
      "COLLIE_ZZZZZZZZZZ: names no setting, ignored",
    ]);
  });

  test("variables that Kubernetes sets for a Service called collie do no harm", () => {
    const links = {
      COLLIE_SERVICE_HOST: "10.0.0.1",
      COLLIE_SERVICE_PORT: "30000",
      COLLIE_SERVICE_PORT_HTTP: "30000",
      COLLIE_PORT: "tcp://10.0.0.1:30000",
      COLLIE_PORT_30000_TCP: "tcp://10.0.0.1:30000",
      COLLIE_PORT_30000_TCP_PROTO: "tcp",
      COLLIE_PORT_30000_TCP_PORT: "30000",
      COLLIE_PORT_30000_TCP_ADDR: "10.0.0.1",
    };
    const { values, warnings } = resolve([], links);
    expect(values.port).toBe(30000);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toStartWith("COLLIE_PORT: ignored");
  });
});

describe("file", () => {
  test("every kind of value", () => {
    const path = written(
      "# settings\nhost: h\n'port': 8\n\"ratio\": 0.25\nlog-json: yes\nurls:\n  - a\n  - b\nmodel-path: >\n  /m\nlog-level: debug\n",
    );
    expect(resolve(["--config", path]).values).toMatchObject({
      host: "h",
      port: 8,
      ratio: 0.25,
      logJson: true,
      urls: ["a", "b"],
      logLevel: "debug",
    });
    expect(resolve(["--config", written("urls: one")]).values.urls).toEqual(["one"]);
    expect(resolve(["--config", written("urls: []")]).values.urls).toEqual([]);
    for (const empty of ["", "# nothing\n"]) expect(resolve(["--config", written(empty)]).values.port).toBe(30000);
  });

  test.each<[string, string[]]>([
    ["host: a\nprot: 1\n", ["F:2: prot: there is no such setting; did you mean port?"]],
    ["model: m\n", ["F:1: model: there is no such setting; did you mean model-path?"]],
    ["model_path: m\n", ["F:1: model_path: there is no such setting; did you mean model-path?"]],
    ["__proto__: {port: 1}\n", ["F:1: __proto__: there is no such setting"]],
    ["port: 1\nhost: a\nport: 2\n", ["F:3: port: is given twice (also on line 1)"]],
    ["port:\n", ["F:1: port: has no value; delete the line to use the default"]],
    ["port: 70000\n", ["F:1: port: 70000 is above 65535"]],
    ["port: 1.5\n", ["F:1: port: 1.5 is not an integer"]],
    ["port: [1]\n", ["F:1: port: a list or a group is not an integer"]],
    ["host: 1\n", ["F:1: host: 1 is not text; put it in quotes"]],
    ["urls: [a, 1]\n", ["F:1: urls: 1 is not text; put it in quotes"]],
    ["host: {a: 1}\n", ["F:1: host: a list or a group is not text"]],
    ["api-key: 123\n", ["F:1: api-key: the value is not text; put it in quotes"]],
    ["- a\n", ['F: must hold one setting a line, such as "port: 30000"']],
    ["just text\n", ['F: must hold one setting a line, such as "port: 30000"']],
    ["port: 1\n---\nport: 2\n", ['F: must hold one setting a line, such as "port: 30000"']],
    ["urls: [a\n", ["F: is not YAML: Unexpected token"]],
  ])("%j is refused", (text, expected) => {
    expect(fileProblems(text)).toEqual(expected);
  });
});

describe("secrets", () => {
  test("may stand in a file, without its last line end", () => {
    const path = written("s3cret \n\n", "key");
    for (const [args, env] of [
      [["--api-key", `@${path}`], {}],
      [[], { COLLIE_API_KEY: `@${path}` }],
      [["--config", written(`api-key: "@${path}"\n`)], {}],
    ] as const)
      expect(resolve(args, env).values.apiKey).toBe("s3cret \n");
    expect(resolve(["--api-key", "@@x"]).values.apiKey).toBe("@x");
    expect(resolve(["--host", "@x"]).values.host).toBe("@x");
  });

  test("an unreadable or empty file stops the start", () => {
    const empty = written("\n", "empty");
    expect(problems(["--api-key", "@/nowhere/key"])).toEqual(['--api-key: the file "/nowhere/key": no such file']);
    expect(problems(["--api-key", `@${empty}`])).toEqual([`--api-key: the file "${empty}" is empty`]);
    expect(problems(["--api-key", `@${folder}`])).toEqual([`--api-key: the file "${folder}": is a folder`]);
    expect(problems(["--api-key="])).toEqual(["--api-key: is empty"]);
  });

  test.each([
    [["--api-key", "s3cret", "--api-key", "s3cret"]],
    [["--api-kye", "s3cret"]],
    [["--api-key", "a", "s3cret"]],
    [["--api-key=a", "s3cret"]],
    [["--api-key", "s3cret\0"]],
  ])("are never shown in a problem: %j", (args) => {
    const found = problems(args);
    expect(found.length).toBeGreaterThan(0);
    expect(found.join("\n")).not.toContain("s3cret");
  });

  test("a password in a URL is never shown", () => {
    const error = () => resolveOptions(serveOptions, { args: ["--worker-urls", "grpc://user:s3cret@host:1"], env: {} });
    expect(error).toThrow(
      '"grpc://...@host:1" must be an address such as grpc://10.0.0.5:50051, http://10.0.0.5:8000 or 10.0.0.5:8000',
    );
  });
});

test("SMG's flags for a small start are understood", () => {
  const args = "--host 127.0.0.1 --port 30001 --worker-urls grpc://a:1 grpc://b:2 --model /m --log-level warn".split(
    " ",
  );
  expect(resolveOptions(serveOptions, { args, env: {} }).values).toMatchObject({
    host: "127.0.0.1",
    port: 30001,
    workerUrls: ["grpc://a:1", "grpc://b:2"],
    modelPath: "/m",
    logLevel: "warn",
  });
});
