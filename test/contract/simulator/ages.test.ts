/** Engines of both protocol ages: what reflection tells of them, and what an old one neither understands nor says. */
import { describe, expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import descriptor from "protobufjs/google/protobuf/descriptor.json";
import old from "../../golden/proto/descriptors-0.4.14.json";
import newest from "../../golden/proto/descriptors-0.4.28.json";
import type { DialectName, PlainMessage } from "../../support/proto-package.ts";
import { type DialectClient, SERVICES, statusOf, withDialect } from "./dialect-client.ts";
import { type Plain, settle, until } from "./harness.ts";

const DIALECTS = Object.keys(SERVICES) as DialectName[];
const AGES = ["0.4.14", "0.4.28"] as const;

interface Descriptors {
  readonly services: Readonly<Record<string, Readonly<Record<string, Plain>>>>;
  readonly messages: Readonly<Record<string, { fields: Readonly<Record<string, Plain>> }>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
}
const GOLDEN: Readonly<Record<(typeof AGES)[number], Descriptors>> = { "0.4.14": old, "0.4.28": newest };

const FILE = protobuf.Root.fromJSON(descriptor).lookupType("google.protobuf.FileDescriptorProto");

interface FieldProto {
  name: string;
  number: number;
  label: string;
  type: string;
  typeName?: string;
  oneofIndex?: number;
  proto3Optional?: boolean;
}
interface MessageProto {
  name: string;
  field?: FieldProto[];
  nestedType?: (MessageProto & { options?: { mapEntry?: boolean } })[];
  enumType?: EnumProto[];
  oneofDecl?: { name: string }[];
}
interface EnumProto {
  name: string;
  value: { name: string; number: number }[];
}
interface FileProto {
  name: string;
  package: string;
  syntax: string;
  dependency?: string[];
  messageType?: MessageProto[];
  enumType?: EnumProto[];
  service?: {
    name: string;
    method: { name: string; inputType: string; outputType: string; serverStreaming?: boolean }[];
  }[];
}

/** Asks by reflection; gives the services, or the files, or an error's code. */
function reflect(
  client: DialectClient,
  field: number,
  text: string,
): Promise<{ names: string[]; files: FileProto[]; code: number }> {
  const ask = Buffer.concat([Buffer.from([(field << 3) | 2, text.length]), Buffer.from(text)]);
  const raw = (bytes: Buffer) => bytes;
  return new Promise((resolve, reject) => {
    const call = client.channel.makeBidiStreamRequest(
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      raw,
      raw,
    );
    call.on("data", (bytes: Buffer) => {
      const names: string[] = [];
      const files: FileProto[] = [];
      let code = 0;
      const reader = protobuf.Reader.create(bytes);
      const within = (body: (tag: number, reader: protobuf.Reader) => void) => {
        const end = reader.uint32() + reader.pos;
        while (reader.pos < end) body(reader.uint32(), reader);
      };
      while (reader.pos < reader.len) {
        const tag = reader.uint32() >>> 3;
        if (tag === 6) within(() => within(() => names.push(reader.string())));
        else if (tag === 4)
          within(() => files.push(FILE.toObject(FILE.decode(reader.bytes()), { enums: String }) as FileProto));
        else if (tag === 7)
          within((inner) => (inner >>> 3 === 1 ? (code = reader.int32()) : reader.skipType(inner & 7)));
        else reader.skipType(2);
      }
      resolve({ names, files, code });
    });
    call.on("error", reject);
    call.write(ask);
    call.end();
  });
}

const typeName = (field: FieldProto): string =>
  field.typeName ? field.typeName.slice(1) : field.type.replace("TYPE_", "").toLowerCase();

/** A message of a descriptor in the form of the golden file. */
function shapeOf(message: MessageProto, fullName: string): Record<string, Plain> {
  const shapes: Record<string, Plain> = {};
  for (const field of message.field ?? []) {
    const entry = message.nestedType?.find(({ name }) => field.typeName === `.${fullName}.${name}`);
    const [key, value] = entry?.field ?? [];
    if (key && value) {
      expect(entry?.options).toMatchObject({ mapEntry: true });
      shapes[field.name] = { number: field.number, type: `map<${typeName(key)}, ${typeName(value)}>`, label: "map" };
      continue;
    }
    const isOptional = field.proto3Optional === true;
    const oneof = field.oneofIndex === undefined ? undefined : message.oneofDecl![field.oneofIndex]!.name;
    if (isOptional) expect(oneof).toBe(`_${field.name}`);
    shapes[field.name] = {
      number: field.number,
      type: typeName(field),
      label: field.label === "LABEL_REPEATED" ? "repeated" : isOptional ? "optional" : "singular",
      ...(oneof !== undefined && !isOptional ? { oneof } : {}),
    };
  }
  return shapes;
}

function enumShape({ value }: EnumProto): Record<string, number> {
  return Object.fromEntries(value.map(({ name, number }) => [name, number]));
}

describe("reflection", () => {
  for (const dialect of DIALECTS)
    for (const protocol of AGES)
      test(`${dialect} ${protocol}: services, and the files as they were`, () =>
        withDialect(dialect, { protocol, output: "echo" }, async (client) => {
          const service = SERVICES[dialect];
          const golden = GOLDEN[protocol];
          const { names } = await reflect(client, 7, "");
          expect(names).toContain(service);
          expect(names.includes("grpc.health.v1.Health")).toBe(dialect !== "trtllm");
          const { files } = await reflect(client, 4, service);
          expect(files.map(({ name }) => name)).toContain("common.proto");
          expect((await reflect(client, 3, files[0]!.name)).files[0]).toEqual(files[0]!);
          const [own, common] = [files[0]!, files.find(({ name }) => name === "common.proto")!];
          for (const name of own.dependency ?? []) expect(files.map((file) => file.name)).toContain(name);
          for (const file of [own, common]) {
            expect(file.syntax).toBe("proto3");
            const messages: Record<string, unknown> = {};
            const enums: Record<string, unknown> = {};
            for (const each of file.enumType ?? []) enums[`${file.package}.${each.name}`] = enumShape(each);
            for (const message of file.messageType ?? []) {
              const fullName = `${file.package}.${message.name}`;
              messages[fullName] = shapeOf(message, fullName);
              for (const each of message.enumType ?? []) enums[`${fullName}.${each.name}`] = enumShape(each);
            }
            const ofFile = (name: string) => name.startsWith(`${file.package}.`);
            const wanted = Object.entries(golden.messages).filter(([name]) => ofFile(name));
            const fields = Object.fromEntries(wanted.map(([name, { fields }]) => [name, structuredClone(fields)]));
            // Only its presence is new: its bytes never changed.
            const rank = fields["sglang.grpc.scheduler.GenerateRequest"]?.["data_parallel_rank"];
            if (rank) (rank as Plain)["label"] = "optional";
            expect(messages).toEqual(fields);
            expect(enums).toEqual(Object.fromEntries(Object.entries(golden.enums).filter(([name]) => ofFile(name))));
          }
          const calls = own.service![0]!.method.map(({ name, inputType, outputType, serverStreaming = false }) => [
            name,
            {
              request: inputType.slice(1),
              response: outputType.slice(1),
              server_stream: serverStreaming,
              client_stream: false,
            },
          ]);
          expect(Object.fromEntries(calls)).toEqual(golden.services[service]!);
        }));

  test("symbols: messages, calls, enums; others are not found", () =>
    withDialect("trtllm", { output: "echo" }, async (client) => {
      for (const symbol of [
        "trtllm.GenerateRequest",
        "trtllm.TrtllmService.Abort",
        "trtllm.GuidedDecodingParams.GuideType",
      ])
        expect((await reflect(client, 4, symbol)).files[0]!.name).toBe("trtllm_service.proto");
      expect((await reflect(client, 4, "smg.grpc.common.Modality")).files.map(({ name }) => name)).toEqual([
        "common.proto",
      ]);
      for (const symbol of ["trtllm.Nothing", "no.such.Thing"])
        expect(await reflect(client, 4, symbol)).toMatchObject({ code: grpc.status.NOT_FOUND, files: [] });
      expect((await reflect(client, 3, "other.proto")).code).toBe(grpc.status.NOT_FOUND);
    }));

  test("left out, and grpc.health.v1 too", () =>
    withDialect("sglang", { noReflection: true, noHealthService: true }, async (client) => {
      const raw = (bytes: Buffer) => bytes;
      expect(await statusOf(reflect(client, 7, ""))).toMatchObject({ code: grpc.status.UNIMPLEMENTED });
      const check = new Promise((_resolve, reject) => {
        client.channel.makeUnaryRequest("/grpc.health.v1.Health/Check", raw, raw, Buffer.alloc(0), (error) =>
          reject(error),
        );
      });
      expect(await statusOf(check)).toMatchObject({ code: grpc.status.UNIMPLEMENTED });
    }));
});

describe("an old engine", () => {
  for (const dialect of DIALECTS)
    test(`${dialect} has only the calls of its time`, () =>
      withDialect(dialect, { protocol: "0.4.14", output: "echo" }, async (client) => {
        const service = SERVICES[dialect];
        const raw = (bytes: Buffer) => bytes;
        for (const [method, { server_stream }] of Object.entries(
          newest.services[service as keyof typeof newest.services],
        )) {
          if (server_stream && method !== "GetTokenizer") continue;
          const details = await new Promise<string>((resolve) => {
            const call = client.channel.makeServerStreamRequest(`/${service}/${method}`, raw, raw, Buffer.alloc(0));
            call.on("data", () => {}).on("error", () => {});
            call.on("status", (status) => resolve(status.details));
          });
          expect([method, details === "Method not found!"]).toEqual([
            method,
            !(method in GOLDEN["0.4.14"].services[service]!),
          ]);
        }
      }));

  test("vLLM: no newer fields in answers; those of requests are skipped, and the log names them", () =>
    withDialect("vllm", { protocol: "0.4.14", output: "echo" }, async (client, engine) => {
      const info = await client.call("GetServerInfo");
      expect(info).toMatchObject({
        data_parallel_size: 1,
        block_size: 0,
        max_num_seqs: 0,
        constrained_decoding_start: "",
      });
      await client.generate({
        request_id: "x",
        tokenized: { input_ids: [1, 2] },
        sampling_params: { max_tokens: 1, grammar_from_first_token: true },
        media_refs: { items: [{ modality: "IMAGE", url: "http://x" }] },
      });
      const { outcome, extra, promptTokens } = engine.requests().at(-1)!;
      expect({ outcome, promptTokens }).toEqual({ outcome: "finished", promptTokens: 2 });
      expect((extra["ignored"] as string[]).sort()).toEqual(["grammar_from_first_token", "media_refs"]);
      await client.generate({ request_id: "x", tokenized: { input_ids: [1, 2] }, sampling_params: { max_tokens: 1 } });
      expect(engine.requests().at(-1)!.extra).not.toHaveProperty("ignored");
      const [load] = (await client.call("GetLoads"))["loads"] as PlainMessage[];
      expect(load).toMatchObject({ max_total_num_tokens: 0, num_waiting_uncached_tokens: 0 });
    }));

  test("TokenSpeed: a seed and a rank are lost without a word", () =>
    withDialect("tokenspeed", { protocol: "0.4.14" }, async (client, engine) => {
      const request = {
        request_id: "x",
        tokenized: { input_ids: [1, 2] },
        sampling_params: { max_new_tokens: 1, sampling_seed: 7 },
        data_parallel_rank: 3,
      };
      expect((await client.generate(request)).status).toBe(0);
      const { sampling, extra } = engine.requests().at(-1)!;
      expect(sampling).not.toHaveProperty("seed");
      expect((extra["ignored"] as string[]).sort()).toEqual(["data_parallel_rank", "sampling_seed"]);
    }));

  test("KV events: any cursor is taken, no load records, no tiers", () =>
    withDialect("vllm", { protocol: "0.4.14", output: "echo" }, async (client) => {
      const batches: PlainMessage[] = [];
      const types = { request: "smg.grpc.common.SubscribeKvEventsRequest", reply: "smg.grpc.common.KvEventBatch" };
      const feed = client.stream("SubscribeKvEvents", { start_sequence_number: 500 }, types, (batch) =>
        batches.push(batch),
      );
      await settle(5);
      const prompt = Array.from({ length: 40 }, (_, i) => i + 1);
      await client.generate({ request_id: "x", tokenized: { input_ids: prompt }, sampling_params: { max_tokens: 2 } });
      await until(() => batches.length > 0, "a batch");
      await Bun.sleep(250);
      expect(batches.every((batch) => batch["load"] === null && (batch["events"] as unknown[]).length > 0)).toBe(true);
      const [event] = batches[0]!["events"] as Plain[];
      const stored = event!["stored"] as PlainMessage;
      expect(stored).not.toHaveProperty("tier");
      expect((stored["blocks"] as Plain[])[0]).toMatchObject({ block_size: 16, token_ids: prompt.slice(0, 16) });
      // The engine ends it when it stops.
      feed.catch(() => undefined);
    }));
});
