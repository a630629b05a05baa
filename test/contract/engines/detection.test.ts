/** How an engine's dialect, age and role are found where its server has no reflection, and where it tells more than one service. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connectEngine } from "../../../src/engines/connect.ts";
import { DIALECTS } from "../../../src/engines/dialects.ts";
import { Feature } from "../../../src/engines/features.ts";
import { GrpcStatus } from "../../../src/engines/grpc-error.ts";
import { type Script, startDialectServer } from "../../support/dialect-server.ts";
import { type DialectName, dialectPackage } from "../../support/proto-package.ts";

setDefaultTimeout(20_000);

const open: { close(): void }[] = [];
afterEach(() => {
  for (const thing of open.splice(0).reverse()) thing.close();
});

async function connect(
  dialect: DialectName,
  scripts: Record<string, Script>,
  transport: "framing" | "grpc-js" = "framing",
) {
  const server = await startDialectServer(dialect, scripts);
  open.push(server);
  const engine = await connectEngine(`grpc://127.0.0.1:${server.port}`, { transport, keepaliveMs: 0 });
  open.push(engine);
  return { engine, server };
}
const saying =
  (message: Record<string, unknown>): Script =>
  (call) => {
    call.send(message);
    call.end();
  };

describe.each(["framing", "grpc-js"] as const)("without reflection, over %s", (transport) => {
  test.each(DIALECTS.map(({ name, probe }) => [name, probe] as const))("%s is found by %s", async (dialect, probe) => {
    const { engine } = await connect(dialect, { [probe]: saying({}) }, transport);
    expect(engine.dialect).toBe(dialect);
  });
});

describe("TokenSpeed without reflection", () => {
  const info = {
    GetModelInfo: saying({ vocab_size: 7 }),
    GetServerInfo: saying({ server_args: struct({ dp_size: 4 }) }),
  };

  test("one that serves GetTokenizer is new enough for seeds and, with several ranks, not for pins", async () => {
    for (const GetTokenizer of [
      saying({ data: new Uint8Array(3) }),
      ((call) => call.end(GrpcStatus.FAILED_PRECONDITION, "no tokenizer path")) as Script,
    ]) {
      const { engine } = await connect("tokenspeed", { ...info, GetTokenizer });
      const facts = await engine.learn(3000);
      expect(facts).toMatchObject({ protocol: "0.4.15", vocabSize: 7, dataParallelSize: 4 });
      expect(facts.features & Feature.seed).not.toBe(0);
      // The pin came with 0.4.16, which nothing proves.
      expect(facts.features & Feature.dataParallelRank).toBe(0);
    }
  });

  test("one that does not is taken for the oldest", async () => {
    const { engine } = await connect("tokenspeed", info);
    const facts = await engine.learn(3000);
    expect(facts.protocol).toBe("unknown");
    expect(facts.features & (Feature.seed | Feature.dataParallelRank)).toBe(0);
  });

  test("several ranks of a new one can be pinned", async () => {
    const server = { server_args: struct({ dp_size: 4 }), constrained_decoding: "requested" };
    const { engine } = await connect("tokenspeed", { ...info, GetServerInfo: saying(server) });
    const facts = await engine.learn(3000);
    expect(facts.protocol).toBe("0.4.27");
    expect(facts.features & Feature.dataParallelRank).not.toBe(0);
    expect(facts.labels["constrained_decoding"]).toBe("requested");
  });
});

describe("what SGLang's launch arguments say", () => {
  const learn = async (given: Record<string, unknown>) => {
    const { engine } = await connect("sglang", {
      GetModelInfo: saying({ max_context_length: 400_000, vocab_size: 9, is_generation: true, served_model_name: "m" }),
      GetServerInfo: saying({ server_args: struct(given), sglang_version: "0.5.9" }),
    });
    return { info: await engine.modelInfo(3000), facts: await engine.learn(3000) };
  };

  test("the context is theirs, not the capacity of the KV cache", async () => {
    expect((await learn({ context_length: 32_768 })).info.contextLength).toBe(32_768);
    expect((await learn({ context_length: null })).info.contextLength).toBe(0);
  });

  test("the backend of grammars narrows what can be enforced", async () => {
    const constraints = Feature.jsonSchema | Feature.regex | Feature.grammar | Feature.structuralTag | Feature.choice;
    const of = async (grammar_backend: string) => (await learn({ grammar_backend })).facts.features & constraints;
    expect(await of("xgrammar")).toBe(constraints);
    expect(await of("outlines")).toBe(Feature.jsonSchema | Feature.regex | Feature.choice);
    expect(await of("none")).toBe(0);
  });

  test("role, ranks, block size, seats, labels", async () => {
    const { facts } = await learn({
      disaggregation_mode: "prefill",
      dp_size: 2,
      page_size: 64,
      max_running_requests: 48,
      weight_version: "w1",
      api_key: "secret",
    });
    expect(facts).toMatchObject({ role: "prefill", dataParallelSize: 2, blockSize: 64, maxRunningRequests: 48 });
    expect(facts.labels).toMatchObject({
      weight_version: "w1",
      page_size: "64",
      version: "0.5.9",
      served_model_name: "m",
    });
    expect(JSON.stringify(facts)).not.toContain("secret");
  });
});

test("a server without server info is known by its model info alone", async () => {
  const { engine } = await connect("vllm", {
    HealthCheck: saying({}),
    GetModelInfo: saying({ vocab_size: 5, is_generation: true }),
  });
  expect(await engine.learn(3000)).toMatchObject({ dialect: "vllm", vocabSize: 5, blockSize: 0, role: "regular" });
});

test("what is answered is read by the text of its own dialect", () => {
  // The same names have other numbers: a mistake in the table of dialects would garble them.
  for (const { name, service, proto } of DIALECTS) {
    expect(proto.service().fullName).toBe(service);
    expect(dialectPackage(name).packageName).toBe(proto.packageName);
  }
});

/** A google.protobuf.Struct as protobufjs takes it. */
function struct(object: Record<string, unknown>): Record<string, unknown> {
  const value = (given: unknown) =>
    given === null
      ? { nullValue: 0 }
      : typeof given === "number"
        ? { numberValue: given }
        : { stringValue: String(given) };
  return { fields: Object.fromEntries(Object.entries(object).map(([key, given]) => [key, value(given)])) };
}

test("a server whose info is late is asked again later, not registered without it", async () => {
  const { engine } = await connect("vllm", {
    HealthCheck: saying({}),
    GetModelInfo: saying({ is_generation: true }),
    GetServerInfo: () => {},
  });
  await expect(engine.learn(150)).rejects.toMatchObject({ kind: "timeout" });
});
