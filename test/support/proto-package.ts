/** The reference that our own codecs are compared with: protobufjs over our `.proto` texts. */
import protobuf from "protobufjs";
import commonText from "../../proto/common.proto" with { type: "text" };
import mlxText from "../../proto/mlx_engine.proto" with { type: "text" };
import sglangText from "../../proto/sglang_scheduler.proto" with { type: "text" };
import tokenspeedText from "../../proto/tokenspeed_scheduler.proto" with { type: "text" };
import trtllmText from "../../proto/trtllm_service.proto" with { type: "text" };
import vllmText from "../../proto/vllm_engine.proto" with { type: "text" };

export type DialectName = "vllm" | "sglang" | "tokenspeed" | "trtllm" | "mlx";

const TEXTS: Readonly<Record<DialectName, string>> = {
  vllm: vllmText,
  sglang: sglangText,
  tokenspeed: tokenspeedText,
  trtllm: trtllmText,
  mlx: mlxText,
};
/** All our `.proto` texts. */
export const PROTO_TEXTS: readonly string[] = [commonText, ...Object.values(TEXTS)];

/** A decoded message with every field present: defaults for what was absent, numbers for 64-bit integers. */
export type PlainMessage = Readonly<Record<string, unknown>>;

export interface ProtoPackage {
  /** Bytes of a message; `message` is its name in the package, or a full name. */
  encode(message: string, value: Record<string, unknown>): Uint8Array;
  decode(message: string, bytes: Uint8Array): PlainMessage;
  readonly packageName: string;
  readonly root: protobuf.Root;
}

const AS_PLAIN: protobuf.IConversionOptions = { longs: Number, defaults: true, arrays: true, enums: String };

/** Google's Struct and Timestamp, as protobufjs ships them. */
export function addWellKnown(root: protobuf.Root): void {
  for (const file of ["struct", "timestamp"])
    root.addJSON(protobuf.common.get(`google/protobuf/${file}.proto`)!.nested!);
}

/** The messages of a dialect. */
export function dialectPackage(dialect: DialectName): ProtoPackage {
  return lazyProtoPackage(/^package ([\w.]+);/m.exec(TEXTS[dialect])![1]!, TEXTS[dialect]);
}

/**
 * Loads one dialect's proto text together with common.proto. One root per dialect: the dialects use the same message names with
 * other numbers. Parsing waits for the first use.
 */
export function lazyProtoPackage(packageName: string, text: string): ProtoPackage {
  let root: protobuf.Root | undefined;
  const load = (): protobuf.Root => {
    if (root === undefined) {
      root = new protobuf.Root();
      addWellKnown(root);
      protobuf.parse(commonText, root, { keepCase: true });
      protobuf.parse(text, root, { keepCase: true });
      root.resolveAll();
    }
    return root;
  };
  const type = (message: string): protobuf.Type =>
    load().lookupType(message.includes(".") ? message : `${packageName}.${message}`);
  return {
    packageName,
    encode: (message, value) => {
      const messageType = type(message);
      return messageType.encode(messageType.fromObject(value)).finish();
    },
    decode: (message, bytes) => {
      const messageType = type(message);
      return messageType.toObject(messageType.decode(bytes), AS_PLAIN);
    },
    get root() {
      return load();
    },
  };
}
