/** KV events over gRPC: `SubscribeKvEvents`, which dialects that have it share with its messages. */
import { WireWriter } from "../../protobuf/writer.ts";
import type { Channel } from "../channel.ts";
import { type GrpcError, GrpcStatus } from "../grpc-error.ts";
import type { KvEnd, KvSource } from "../kv-events.ts";
import { decodeKvBatch } from "./decode.ts";

// SubscribeKvEventsRequest: from now on, for a cursor is refused or ignored; loads also before the first batch.
const REQUEST = subscribeRequest();
function subscribeRequest(): Uint8Array {
  const writer = new WireWriter();
  writer.bool(2, true);
  return writer.written().slice();
}

/** The engine no longer has what was asked for, or something of it was lost: what is known of its cache is void, and it may be asked anew at once. */
const GAPS: ReadonlySet<number> = new Set([GrpcStatus.OUT_OF_RANGE, GrpcStatus.DATA_LOSS]);

export function grpcKvSource(channel: Channel, service: string): KvSource {
  return {
    subscribe(onBatch, onEnd) {
      let isOver = false;
      let isBroken = false;
      const call = channel.serverStream(`/${service}/SubscribeKvEvents`, REQUEST, {
        onMessage(bytes, start, end) {
          if (isOver) return;
          let batch: ReturnType<typeof decodeKvBatch>;
          try {
            batch = decodeKvBatch(bytes, start, end);
          } catch (error) {
            isBroken = true;
            throw error; // that fails the call
          }
          onBatch(batch);
        },
        onEnd(error) {
          if (isOver) return;
          isOver = true;
          if (isBroken) onEnd("gap", "a batch could not be understood");
          else onEnd(...endOf(error));
        },
      });
      return {
        close() {
          isOver = true;
          call.cancel();
        },
        pause: () => call.pause(),
        resume: () => call.resume(),
      };
    },
  };
}

function endOf(error: GrpcError | undefined): [KvEnd, string] {
  if (error === undefined) return ["lost", "the engine ended the stream"];
  if (error.code === GrpcStatus.UNIMPLEMENTED) return ["unimplemented", error.message];
  return [GAPS.has(error.code) ? "gap" : "lost", error.message];
}
