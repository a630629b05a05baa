import type { ServerCall } from "./grpc/stream.ts";
import type { SimulatorHost } from "./host.ts";
import type { ScriptFault } from "./script/rule.ts";

/** Does to a call, its connection or the process what a fault says. */
export function playFault(fault: ScriptFault, call: ServerCall, host: SimulatorHost): void {
  const { connection } = call;
  switch (fault.kind) {
    case "hang":
      return;
    case "no-complete":
      call.end();
      return;
    case "goaway":
      connection.goAway(fault.code);
      if (fault.code === 0) return;
      connection.end();
      connection.lost();
      return;
    case "status":
      call.end(fault.code, fault.message);
      return;
    case "reset":
      call.reset(fault.code);
      return;
    case "disconnect":
      connection.destroy();
      return;
    case "exit":
      connection.flush();
      host.exit(fault.code);
  }
}
