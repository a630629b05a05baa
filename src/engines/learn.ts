/** What can be known of an engine before it gets a request. */
import type { PlainMessage } from "../protobuf/codec.ts";
import type { ProtoText } from "../protobuf/proto-text.ts";
import type { Channel } from "./channel.ts";
import type { ControlCalls } from "./control.ts";
import type { Dialect } from "./dialects.ts";
import type { ModelInfo } from "./engine.ts";
import type { EngineFacts } from "./facts.ts";
import { Feature, type FeatureName } from "./features.ts";
import { type GrpcError, GrpcStatus } from "./grpc-error.ts";
import { labelsOf, struct } from "./info.ts";
import { commonProto } from "./protos.ts";
import { type Description, describe, isNotOffered } from "./reflection.ts";

/** The oldest release that is served; what no mark says more of is as old. */
const OLDEST = "0.4.14";
/** A symbol of the messages that the dialects share. */
const COMMON_SYMBOL = "smg.grpc.common.KvEventBatch";

const CALLS: Partial<Record<FeatureName, string>> = {
  loads: "GetLoads",
  flushCache: "FlushCache",
  profile: "StartProfile",
  tokenizer: "GetTokenizer",
  kvEvents: "SubscribeKvEvents",
};
const CONSTRAINTS = Feature.jsonSchema | Feature.regex | Feature.grammar | Feature.structuralTag | Feature.choice;

export interface Acquaintance {
  readonly channel: Channel;
  readonly dialect: Dialect;
  readonly calls: ControlCalls;
  /** Names of the server's services, where it tells them. */
  readonly services: readonly string[];
}

/**
 * The facts of an engine, from its model and server info, and from the descriptors of its messages where its server has reflection.
 * Without them a field counts as missing unless something else proves its age. Rejects with EngineErrors.
 */
export async function learnFacts(of: Acquaintance, deadlineMs: number): Promise<EngineFacts> {
  const { dialect, calls } = of;
  const [modelReply, serverReply, description] = await Promise.all([
    calls.modelReply(deadlineMs),
    calls.serverReply(deadlineMs),
    describe(of.channel, [dialect.service, COMMON_SYMBOL], deadlineMs).catch((error: unknown) => {
      if (isNotOffered(error)) return undefined;
      throw error;
    }),
  ]);
  const model = dialect.control.model(modelReply, serverReply);
  const server = dialect.control.server(serverReply);
  const labels = { ...labelsOf(modelReply), ...labelsOf(serverReply), ...server.labels };
  const isDescribed = description?.has(dialect.service, "Generate") !== undefined;
  const protocol = isDescribed
    ? newest([describedAge(dialect.proto, description!), describedAge(commonProto, description!)])
    : await provenAge(
        of,
        [
          ["GetModelInfoResponse", modelReply],
          ["GetServerInfoResponse", serverReply],
        ],
        deadlineMs,
      );
  const has = (owner: string, member: string): boolean | undefined =>
    isDescribed ? description!.has(owner, member) : undefined;
  return {
    dialect: dialect.name,
    protocol: protocol ?? (isDescribed ? OLDEST : "unknown"),
    features: featuresOf(dialect, model, server.dataParallelSize, labels, has, protocol),
    vocabSize: model.vocabSize,
    contextLength: model.contextLength,
    maxLogprobs: dialect.maxLogprobs,
    dataParallelSize: server.dataParallelSize,
    maxRunningRequests: server.maxRunningRequests,
    blockSize: server.blockSize,
    role: roleOf(of.services, labels, struct(serverReply["server_args"])),
    waitsForReasoning: dialect.control.waitsForReasoning(labels),
    labels,
  };
}

function featuresOf(
  dialect: Dialect,
  { isGeneration }: ModelInfo,
  dataParallelSize: number,
  labels: EngineFacts["labels"],
  has: (owner: string, member: string) => boolean | undefined,
  protocol: string | undefined,
): number {
  let bits = dialect.features & ~(isGeneration ? Feature.embed : Feature.generate);
  for (const [feature, rpc] of Object.entries(CALLS))
    if (has(dialect.service, rpc) === false) bits &= ~Feature[feature as FeatureName];
  for (const [feature, [message, field]] of Object.entries(dialect.needsFields ?? {})) {
    const since = sinceOf(dialect.proto, message, field);
    const isThere =
      has(`${dialect.proto.packageName}.${message}`, field) ?? (protocol !== undefined && !isOlder(protocol, since));
    if (!isThere) bits &= ~Feature[feature as FeatureName];
  }
  if (dialect.pinsOnlyAmongRanks === true && dataParallelSize < 2) bits &= ~Feature.dataParallelRank;
  if (labels["grammar_backend"] === "none") bits &= ~CONSTRAINTS;
  if (labels["grammar_backend"] === "outlines") bits &= ~(Feature.grammar | Feature.structuralTag);
  return bits;
}

function roleOf(services: readonly string[], labels: EngineFacts["labels"], given: PlainMessage): EngineFacts["role"] {
  if (services.some((name) => name.endsWith("Encoder"))) return "encode";
  const mode = given["disaggregation_mode"] ?? KV_ROLES[labels["kv_role"] ?? ""];
  return mode === "prefill" || mode === "decode" ? mode : "regular";
}
const KV_ROLES: Readonly<Record<string, string>> = { kv_producer: "prefill", kv_consumer: "decode" };

/** Release of the newest message, field or call that a server was built with. */
function describedAge(proto: ProtoText, description: Description): string | undefined {
  const ages: (string | undefined)[] = [];
  for (const name of proto.messageNames()) {
    const { fullName, fields, since } = proto.message(name);
    for (const field of fields.values())
      if (description.has(fullName, field.name) === true) ages.push(field.since ?? since);
  }
  if (proto !== commonProto) {
    const { fullName, rpcs } = proto.service();
    for (const { name, since } of rpcs) if (description.has(fullName, name) === true) ages.push(since);
  }
  return newest(ages);
}

/** The same, as far as what was answered proves it: fields that say something, and calls that are served. */
async function provenAge(
  { dialect, channel }: Acquaintance,
  replies: readonly (readonly [string, PlainMessage])[],
  deadlineMs: number,
): Promise<string | undefined> {
  const ages: (string | undefined)[] = [];
  for (const [message, reply] of replies)
    for (const { name, since } of dialect.proto.message(message).fields.values()) if (reply[name]) ages.push(since);
  const call = dialect.proto.service().rpcs.find(({ name }) => name === "GetTokenizer");
  if (call?.since !== undefined && (await isServed(channel, `/${dialect.service}/GetTokenizer`, deadlineMs)))
    ages.push(call.since);
  return newest(ages);
}

/** Whether a streaming call is there at all; what it sends is not waited for. */
function isServed(channel: Channel, path: string, deadlineMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const call = channel.serverStream(
      path,
      new Uint8Array(0),
      {
        onMessage() {
          resolve(true);
          call.cancel();
        },
        onEnd: (error) => resolve(isNotOffered(error) && (error as GrpcError).code !== GrpcStatus.UNIMPLEMENTED),
      },
      { deadlineMs },
    );
  });
}

function sinceOf(proto: ProtoText, message: string, name: string): string {
  for (const field of proto.message(message).fields.values()) if (field.name === name) return field.since ?? OLDEST;
  return OLDEST;
}

const isOlder = (a: string, b: string): boolean => a.localeCompare(b, "en", { numeric: true }) < 0;

function newest(ages: readonly (string | undefined)[]): string | undefined {
  let found: string | undefined;
  for (const age of ages) if (age !== undefined && (found === undefined || isOlder(found, age))) found = age;
  return found;
}
