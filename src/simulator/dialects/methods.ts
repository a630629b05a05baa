/** Calls that several dialects answer alike. */
import { GrpcStatus } from "../../engines/grpc-error.ts";
import { type PlainMessage, protoCodec } from "../../protobuf/codec.ts";
import type { ProtoText } from "../../protobuf/proto-text.ts";
import { WireError } from "../../protobuf/wire-error.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import type { GrpcMethod } from "../grpc/server.ts";
import type { ServerCall } from "../grpc/stream.ts";
import type { SimulatorHost } from "../host.ts";
import { packBundle, pieces, type TokenizerZip } from "../model/bundle.ts";

/** One for all: a message is copied out before the next is written. */
const writer = new WireWriter();

export const UNREADABLE = "Exception deserializing request!";
const WRONG_DIGEST = "0".repeat(64);
const PIECE_BYTES = 65_536;

export function failing(status: number, details: string): GrpcMethod {
  return (call) => call.end(status, details);
}

/** Answers with a message that `write` makes. */
export function written(write: (w: WireWriter) => void): GrpcMethod {
  return (call) => {
    write(writer.reset());
    call.send(writer.written());
    call.end();
  };
}

/**
 * The bytes of a reply. As in every proto3 library, members without presence are left out where they are the default: clients have
 * to know it.
 */
export function encodeReply(proto: ProtoText, message: string, value: PlainMessage): Uint8Array {
  return protoCodec(proto).encode(message, withoutDefaults(proto, message, value));
}

function withoutDefaults(proto: ProtoText, message: string, value: PlainMessage): PlainMessage {
  const left: Record<string, unknown> = {};
  for (const { name, kind, label, type } of proto.message(message).fields.values()) {
    const given = value[name];
    const isOwn = kind === "message" && !type.startsWith("google.protobuf.");
    if (given === undefined || (label === "singular" && (given === 0 || given === false || given === ""))) continue;
    if (!isOwn || label === "map") left[name] = given;
    else if (label === "repeated")
      left[name] = (given as readonly PlainMessage[]).map((item) => withoutDefaults(proto, type, item));
    else left[name] = withoutDefaults(proto, type, given as PlainMessage);
  }
  return left;
}

export type AnswerTo = (request: PlainMessage, call: ServerCall) => PlainMessage | undefined;

/**
 * Makes calls out of functions from request to reply, coded by the dialect's proto text. What gives nothing answers over `call`
 * itself, now or later.
 */
export function codedCalls(proto: ProtoText): (request: string, reply: string, answer: AnswerTo) => GrpcMethod {
  const codec = protoCodec(proto);
  return (request, reply, answer) => (call, message) => {
    let plain: PlainMessage;
    try {
      plain = codec.decode(request, message);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      call.end(GrpcStatus.INTERNAL, UNREADABLE);
      return;
    }
    const value = answer(plain, call);
    if (value === undefined) return;
    call.send(encodeReply(proto, reply, value));
    call.end();
  };
}

export function subscribeKvEvents({ kvRelay }: SimulatorHost): GrpcMethod {
  return (call, message) => {
    if (kvRelay) kvRelay.subscribe(call, message);
    else call.end(GrpcStatus.UNIMPLEMENTED, "KV cache events are not enabled");
  };
}

/** GetTokenizer: the model's files as a zip, in pieces. */
export function tokenizerBundle(
  host: SimulatorHost,
  { pieceBytes = PIECE_BYTES, includes }: { pieceBytes?: number; includes?: (name: string) => boolean } = {},
): GrpcMethod {
  let zip: TokenizerZip | undefined;
  return (call) => {
    const files = new Map([...host.model.files].filter(([name]) => includes?.(name) ?? true));
    if (files.size === 0) {
      call.end(GrpcStatus.INTERNAL, "no tokenizer files found");
      return;
    }
    zip ??= packBundle(files);
    let left = zip.bytes.length;
    for (const piece of pieces(zip.bytes, pieceBytes)) {
      left -= piece.length;
      const w = writer.reset();
      w.message(1, piece);
      if (left === 0) w.text(2, host.rules.takeOf("bad-digest") ? WRONG_DIGEST : zip.sha256);
      call.send(w.written());
    }
    call.end();
  };
}

/** How FlushCache waits for running requests to end. */
export interface FlushStyle {
  /** Between two tries, in milliseconds; undefined: it tries once. */
  readonly everyMs: number | undefined;
  /** Shortest time that it tries, in seconds, whatever the request says. */
  readonly leastSecs: number;
  /** What is no finite number from 0 up is refused. */
  readonly checks: boolean;
  readonly done: string;
  readonly busy: string;
}

export function flushCache(host: SimulatorHost, proto: ProtoText, style: FlushStyle): GrpcMethod {
  const coded = codedCalls(proto);
  return coded("smg.grpc.common.FlushCacheRequest", "smg.grpc.common.FlushCacheResponse", ({ timeout_s }, call) => {
    const timeout = timeout_s as number;
    if (style.checks && !(timeout >= 0 && Number.isFinite(timeout))) {
      call.end(GrpcStatus.INVALID_ARGUMENT, "timeout_s must be a finite number that is not negative");
      return undefined;
    }
    const deadline = performance.now() + Math.max(timeout, style.leastSecs) * 1000;
    const attempt = (): void => {
      if (!call.open) return;
      const success = host.ranks.flush();
      if (!success && style.everyMs !== undefined && performance.now() < deadline) {
        setTimeout(attempt, style.everyMs);
        return;
      }
      const reply = { success, message: success ? style.done : style.busy };
      call.send(encodeReply(proto, "smg.grpc.common.FlushCacheResponse", reply));
      call.end();
    };
    attempt();
    return undefined;
  });
}

/** StartProfile and StopProfile of engines that can do it at any time. */
export function profiling(proto: ProtoText): { StartProfile: GrpcMethod; StopProfile: GrpcMethod } {
  const coded = codedCalls(proto);
  let running = false;
  const toggle = (request: string, start: boolean) =>
    coded(`smg.grpc.common.${request}`, "smg.grpc.common.ProfileResponse", () => {
      const success = running !== start;
      if (success) running = start;
      const state = start ? "Profiling is already in progress" : "Profiling is not in progress";
      return { success, message: success ? "Succeeded" : state };
    });
  return { StartProfile: toggle("StartProfileRequest", true), StopProfile: toggle("StopProfileRequest", false) };
}

/** How long a health check by generation waits for a token. */
const HEALTH_TIMEOUT_MS = 20_000;

/** HealthCheck of engines that generate a token for it, and look at intervals whether one has come. */
export function generatingHealthCheck(host: SimulatorHost, proto: ProtoText, intervalMs: number): GrpcMethod {
  return (call) => {
    const driver = host.ranks.at(0);
    const answer = (healthy: boolean, message: string): void => {
      call.send(encodeReply(proto, "HealthCheckResponse", { healthy, message }));
      call.end();
    };
    if (!host.alive) {
      answer(false, "Health check failed: the scheduler is not alive");
      return;
    }
    let hasToken = false;
    const sequence = driver.submit({
      prompt: Uint32Array.of(0),
      plan: () => ({ length: 1, idAt: () => 0, finishReason: "length" }),
      onToken() {
        hasToken = true;
      },
      onFinish() {},
    });
    const started = performance.now();
    const timer = setInterval(() => {
      const isLate = performance.now() - started > HEALTH_TIMEOUT_MS;
      if (!hasToken && !isLate) return;
      clearInterval(timer);
      driver.abort(sequence);
      answer(hasToken, hasToken ? "Health check passed" : "Health check timeout");
    }, intervalMs);
    call.onCancel = () => {
      clearInterval(timer);
      driver.abort(sequence);
    };
  };
}

/** Ends the open requests with an id; false when there are none. */
export function abortRequest(host: SimulatorHost, id: string): boolean {
  const open = host.open.get(id);
  if (!open) host.counts.unknownAborts++;
  for (const request of [...(open ?? [])]) request.abort();
  return open !== undefined;
}
