/** Workers behind TLS: taken in, watched and used with the certificates of the settings. */
import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { createBoards, memoryOf } from "../../../src/fleet/boards.ts";
import { startFleetControl } from "../../../src/fleet/control.ts";
import { workerTlsProblems } from "../../../src/fleet/worker-tls.ts";
import { startServing } from "../../../src/server/serving.ts";
import { simulatorOptions } from "../../../src/simulator/options.ts";
import { startSimulator } from "../../../src/simulator/simulator.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import {
  ca,
  clientCert,
  clientKey,
  elsewhereCert,
  otherCa,
  serverCert,
  serverKey,
} from "../../support/certificates.ts";
import { testCompute, testControl } from "../../support/control.ts";
import { testKept } from "../../support/kept.ts";
import { tlsFront } from "../../support/tls-front.ts";

setDefaultTimeout(30_000);

const folder = mkdtempSync(join(tmpdir(), "collie-tls-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const path = (name: string): string => join(folder, name);
beforeAll(() => {
  const files = { ca, otherCa, clientCert, clientKey, elsewhereCert, serverCert, serverKey, text: "hello" };
  for (const [name, content] of Object.entries(files)) writeFileSync(path(name), content);
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const configOf = (args: readonly string[]) => resolveOptions(serveOptions, { args, env: {} }).values;
const OWN = ["--worker-client-cert", path("clientCert"), "--worker-client-key", path("clientKey")];

/** A gateway of one worker behind TLS that wants a client certificate: chats with it, or says what its log says. */
async function gateway(scheme: "grpcs" | "https", host: string, args: readonly string[]) {
  const dialect = scheme === "grpcs" ? "vllm" : "openai";
  const engine = await startSimulator(
    resolveOptions(simulatorOptions, { args: ["--port", "0", "--speed", "instant", "--dialect", dialect], env: {} })
      .values,
  );
  closing.push(() => engine.stop());
  const front = await tlsFront(engine.port, scheme === "grpcs" ? "h2" : "http/1.1", ca);
  closing.push(() => front.close());
  const url = `${scheme}://${host}:${front.port}`;
  const config = configOf([
    "--host",
    "127.0.0.1",
    "--log-level",
    "error",
    "--warmup=off",
    "--worker-urls",
    url,
    ...args,
  ]);
  expect(workerTlsProblems(config)).toEqual([]);
  const boards = createBoards(config, 1);
  const serving = startServing(
    { config, boards: memoryOf(boards), thread: 0, port: 0, threads: 1 },
    testControl,
    testKept(),
  );
  closing.push(() => serving.stop());
  const lines: string[] = [];
  const control = startFleetControl(
    config,
    boards.fleet,
    createLogger({ level: "debug", json: false, write: (line) => lines.push(line) }),
    { apply: async (snapshot) => serving.apply(snapshot), lost: () => {} },
    { cacheDir: folder, compute: testCompute },
  );
  closing.push(() => control.close());
  return {
    control,
    lines,
    async chat(): Promise<number> {
      const response = await fetch(`http://127.0.0.1:${serving.port}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "collie-demo", messages: [{ role: "user", content: "Hello" }], max_tokens: 5 }),
      });
      await response.text();
      return response.status;
    },
  };
}

describe.each(["grpcs", "https"] as const)("%s", (scheme) => {
  test.each(["127.0.0.1", "localhost"])("a worker at %s", async (host) => {
    const { control, chat } = await gateway(scheme, host, ["--worker-ca-cert", path("ca"), ...OWN]);
    expect((await control.ready).model).toBe("collie-demo");
    expect(await chat()).toBe(200);
  });

  test("several CAs", async () => {
    const files = ["--ca-cert-paths", path("otherCa"), path("ca")];
    const { control, chat } = await gateway(scheme, "127.0.0.1", [...files, ...OWN]);
    await control.ready;
    expect(await chat()).toBe(200);
  });

  test.each([
    ["a CA that is not known", OWN],
    ["another CA", ["--worker-ca-cert", path("otherCa"), ...OWN]],
    ["no certificate of the gateway's own", ["--worker-ca-cert", path("ca")]],
  ])("is not taken in: %s", async (_, args) => {
    const { control, lines, chat } = await gateway(scheme, "127.0.0.1", args);
    const until = Date.now() + 20_000;
    while (!lines.some((line) => line.includes("not ready yet")) && Date.now() < until) await Bun.sleep(20);
    expect(lines.join("\n")).toContain("worker is not ready yet");
    expect((await control.admin.listWorkers()).map(({ status }) => status)).toEqual(["pending"]);
    expect(await chat()).toBe(503);
  });
});

test("grpc-js takes them as well", async () => {
  const args = ["--engine-transport", "grpc-js", "--ca-cert-paths", path("otherCa"), path("ca"), ...OWN];
  const { control, chat } = await gateway("grpcs", "127.0.0.1", args);
  await control.ready;
  expect(await chat()).toBe(200);
});

test.each([
  [[], []],
  [["--worker-ca-cert", path("none")], [`--worker-ca-cert: "${path("none")}" cannot be read (ENOENT)`]],
  [["--worker-ca-cert", path("text")], [`--worker-ca-cert: "${path("text")}" holds no certificate in PEM`]],
  [["--worker-client-cert", path("clientCert")], ["--worker-client-cert and --worker-client-key: need each other"]],
  [
    ["--client-cert-path", path("clientCert"), "--client-key-path", path("text")],
    [`--worker-client-key: "${path("text")}" holds no key in PEM`],
  ],
  [
    ["--client-cert-path", path("clientCert"), "--client-key-path", path("serverKey")],
    ["--worker-client-key: is not the key of --worker-client-cert"],
  ],
])("what is wrong with the files is said at the start: %j", (args, problems) => {
  expect(workerTlsProblems(configOf(args))).toEqual(problems);
});
