/** Imports run downwards: this table is the order of the parts. A new arrow in it is a decision, not a formality. */
import { describe, expect, test } from "bun:test";
import { sources } from "./sources.ts";

/**
 * Parts that are not a whole folder. The boards are leaves that the fleet and all threads share; what a request carries is
 * known to the client APIs, while the routes of the server know the APIs.
 */
const PARTS: Readonly<Record<string, string>> = {
  "threads/board-layout.ts": "boards",
  "threads/breaker-cells.ts": "boards",
  "threads/fleet-board.ts": "boards",
  "threads/limit-board.ts": "boards",
  "threads/load-record.ts": "boards",
  "threads/permits.ts": "boards",
  "threads/prefix-types.ts": "boards",
  "threads/prefix-board.ts": "boards",
  "threads/prefix-cache.ts": "boards",
  "threads/prefix-kernel/kernel.ts": "boards",
  "threads/prefix-kernel/kernel.wasm": "boards",
  "threads/prefix-match.ts": "boards",
  "threads/prefix-memory.ts": "boards",
  "threads/prefix-outbox.ts": "boards",
  "threads/prefix-reader.ts": "boards",
  "threads/prefix-writer.ts": "boards",
  "threads/sticky-board.ts": "boards",
  "threads/heap-care.ts": "heap-care",
  "threads/start-pages.ts": "heap-care",
  // Seals are made by the client APIs, from a key that the request's context carries.
  "apis/shared/seal.ts": "seals",
  "server/admission.ts": "request",
  "server/byte-pump.ts": "request",
  "server/direct-response.ts": "request",
  "server/context.ts": "request",
  "server/event-stream.ts": "request",
  "server/runs.ts": "request",
  "server/request-scope.ts": "request",
  "server/request-metrics.ts": "request",
  "server/ticker.ts": "request",
  "server/trial-scope.ts": "request",
  "server/log-failure.ts": "request",
  "server/raw-body.ts": "request",
  // How JSON from outside is read and checked: that of requests, and the lines of commands.
  "server/json-object.ts": "request",
  "server/sliced-json.ts": "request",
  "server/validation.ts": "request",
};

const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "errors.ts": [],
  config: [],
  telemetry: [],
  boards: [],
  protobuf: [],
  "c-library.ts": [],
  "heap-care": ["c-library.ts"],
  "program.ts": [],
  http2: [],
  "steps.ts": [],
  tokenizer: ["errors.ts", "c-library.ts", "protobuf"],
  template: ["steps.ts", "errors.ts"],
  parsers: ["errors.ts"],
  media: ["errors.ts"],
  // the names of the policies are those of the setting
  routing: ["errors.ts", "config", "boards"],
  engines: ["errors.ts", "http2", "protobuf"],
  generation: ["steps.ts", "errors.ts", "tokenizer", "template", "parsers", "media", "routing", "engines"],
  hub: ["errors.ts", "tokenizer", "telemetry"],
  // What several gateways share of their fleet: another program's database, as that of the history.
  "shared-state": ["errors.ts"],
  fleet: [
    "shared-state",
    "errors.ts",
    "program.ts",
    "config",
    "telemetry",
    "boards",
    "hub",
    "tokenizer",
    "template",
    "routing",
    "engines",
    "parsers",
  ],
  history: ["errors.ts"],
  seals: [],
  request: ["steps.ts", "errors.ts", "config", "telemetry", "boards", "fleet", "history", "seals"],
  // what a request says of its way is for the client APIs to read
  apis: [
    "steps.ts",
    "errors.ts",
    "tokenizer",
    "engines",
    "generation",
    "routing",
    "fleet",
    "request",
    "parsers",
    "history",
    "seals",
  ],
  server: [
    "steps.ts",
    "errors.ts",
    "config",
    "telemetry",
    "boards",
    "tokenizer",
    "engines",
    "fleet",
    // of a model with workers of both kinds, the route is found before it is known who answers
    "routing",
    "request",
    "apis",
    "heap-care",
    "history",
    "seals",
  ],
  threads: ["errors.ts", "program.ts", "config", "telemetry", "boards", "tokenizer", "fleet", "server", "history"],
  simulator: ["config", "http2", "protobuf", "tokenizer", "engines"],
  cli: [
    "errors.ts",
    "c-library.ts",
    "program.ts",
    "config",
    "telemetry",
    "boards",
    "hub",
    "tokenizer",
    "fleet",
    "threads",
    "simulator",
    "parsers",
    "history",
    // the commands that render and parse do what a request does, without a server
    "template",
    "generation",
    "request",
    "apis",
  ],
  "main.ts": ["cli"],
};

/** Where a package that stands for a decision may be used. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  elysia: ["server"],
  "@elysiajs/swagger": ["server"],
  "swagger-ui-dist": ["server"],
  "@grpc/grpc-js": ["engines"],
  msgpackr: ["engines"],
  "msgpackr/unpack": ["engines"],
  "@kubernetes/client-node": ["fleet"],
  "node:http2": [],
  "@huggingface/tokenizers": [],
  "bun:sqlite": ["history"],
  "bun:ffi": ["c-library.ts", "heap-care", "tokenizer", "cli"],
};

const partOf = (path: string): string => PARTS[path] ?? path.split("/")[0] ?? path;
/** Protocol files and package.json lie outside src/ and are data. */
const isData = (path: string): boolean => path.startsWith("..");

describe("imports", () => {
  test("the scan finds what there is", () => {
    const byPath = new Map(sources.map((file) => [file.path, file]));
    expect(byPath.size).toBeGreaterThan(100);
    expect(byPath.get("server/app.ts")?.imports).toContain("server/chat-routes.ts");
    expect(byPath.get("server/app.ts")?.packages).toContain("elysia");
    expect(byPath.get("server/context.ts")?.imports).toContain("fleet/view.ts");
    expect(byPath.get("server/context.ts")?.runtimeImports).toEqual([]);
    expect(byPath.get("server/app.ts")?.runtimeImports).toContain("server/chat-routes.ts");
  });

  test("every import is of a file that exists", () => {
    const paths = new Set(sources.map(({ path }) => path));
    const missing = sources.flatMap(({ path, imports }) =>
      imports.filter((to) => to.endsWith(".ts") && !isData(to) && !paths.has(to)).map((to) => `${path} -> ${to}`),
    );
    expect(missing).toEqual([]);
  });

  test("run downwards", () => {
    const wrong: string[] = [];
    for (const { path, imports } of sources) {
      const part = partOf(path);
      const allowed = MAY_IMPORT[part];
      if (allowed === undefined) wrong.push(`${path}: the part ${part} is not in the table`);
      for (const to of imports) {
        if (isData(to) || partOf(to) === part) continue;
        if (allowed !== undefined && !allowed.includes(partOf(to))) wrong.push(`${path} -> ${to}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test("the table itself has no cycle", () => {
    const below = (part: string, seen: readonly string[]): void => {
      if (seen.includes(part)) throw new Error([...seen, part].join(" -> "));
      for (const next of MAY_IMPORT[part] ?? []) below(next, [...seen, part]);
    };
    for (const part of Object.keys(MAY_IMPORT)) below(part, []);
  });

  // Between parts the table leaves no room for cycles of types either; inside a part, two files may describe one thing.
  test("no file needs itself to load, by whatever way round", () => {
    const edges = new Map(sources.map(({ path, runtimeImports }) => [path, runtimeImports]));
    const state = new Map<string, "open" | "done">();
    const cycles: string[] = [];
    const visit = (path: string, way: readonly string[]): void => {
      if (state.get(path) === "done") return;
      if (state.get(path) === "open") {
        cycles.push([...way.slice(way.indexOf(path)), path].join(" -> "));
        return;
      }
      state.set(path, "open");
      for (const to of edges.get(path) ?? []) visit(to, [...way, path]);
      state.set(path, "done");
    };
    for (const path of edges.keys()) visit(path, []);
    expect(cycles).toEqual([]);
  });

  test("packages stay where they were let in", () => {
    const wrong = sources.flatMap(({ path, packages }) =>
      packages
        .filter((name) => PACKAGES[name] !== undefined && !PACKAGES[name].includes(partOf(path)))
        .map((name) => `${path} -> ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  test("databases are spoken to in the history, and where gateways share what they know", () => {
    const wrong = sources.filter(
      ({ path, text }) =>
        !["history", "shared-state"].includes(partOf(path)) && /Bun\.(?:SQL|sql|RedisClient|redis)\b/.test(text),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test("leaves do no network I/O", () => {
    const leaves = [
      "http2",
      "protobuf",
      "tokenizer",
      "template",
      "parsers",
      "routing",
      "generation",
      "config",
      "boards",
    ];
    const network = /\bfetch\(|Bun\.(?:serve|connect|listen|udpSocket)\b|"node:(?:net|http2?|https|tls|dgram|dns)"/;
    const wrong = sources.filter(({ path, text }) => leaves.includes(partOf(path)) && network.test(text));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

describe("files", () => {
  test("have less than 400 lines", () => {
    expect(sources.filter(({ lines }) => lines >= 400).map(({ path, lines }) => `${path}: ${lines}`)).toEqual([]);
  });

  test("have no default exports", () => {
    const wrong = sources.filter(
      ({ path, text }) =>
        !path.endsWith(".d.ts") && /^\s*export\s+default\b|^export\s*\{[^}]*\bas default\b/m.test(text),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test("hold no explicit any", () => {
    const wrong = sources.filter(({ text }) =>
      /(?::|<|\bas|\|) any\b|\bany\[\]/.test(
        text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "").replaceAll(/"[^"\n]*"|`[^`]*`/g, ""),
      ),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});
