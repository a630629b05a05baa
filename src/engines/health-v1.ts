/** The standard health service: https://github.com/grpc/grpc/blob/master/doc/health-checking.md */
import { WireReader } from "../protobuf/reader.ts";
import { WireWriter } from "../protobuf/writer.ts";
import type { EngineAdmin } from "./admin.ts";
import type { Channel } from "./channel.ts";
import { toEngineError } from "./engine-error.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

const CHECK_PATH = "/grpc.health.v1.Health/Check";
const SERVING = 1;

/** What the server says of a service; of itself as a whole where it does not know that one. Rejects with EngineErrors. */
export async function askHealth(
  channel: Channel,
  service: string,
  deadlineMs: number,
): Promise<Awaited<ReturnType<EngineAdmin["serving"]>>> {
  for (const name of [service, ""]) {
    const request = new WireWriter();
    request.text(1, name);
    try {
      const reply = new WireReader(await channel.unary(CHECK_PATH, request.written(), { deadlineMs }));
      let status = 0;
      while (reply.next()) {
        if (reply.field === 1) status = reply.varint();
        else reply.skip();
      }
      return status === SERVING ? "serving" : "not_serving";
    } catch (error) {
      const code = error instanceof GrpcError ? error.code : undefined;
      if (code === GrpcStatus.UNIMPLEMENTED) return "unimplemented";
      if (code !== GrpcStatus.NOT_FOUND) throw toEngineError(error);
    }
  }
  return "unimplemented";
}
