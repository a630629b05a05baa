import type { EngineCall } from "./call.ts";
import type { SimulatorHost } from "./host.ts";
import type { ScriptFault } from "./script/rule.ts";

/** Does to a call, its connection or the process what a fault says. What only a generation can do is left to it. */
export function playFault(fault: ScriptFault, call: EngineCall, host: SimulatorHost): void {
  switch (fault.kind) {
    case "hang":
    case "stall":
    case "double":
    case "transfer-slow":
    case "transfer-fail":
    case "bad-digest":
    case "kv-gap":
    case "kv-silent":
    case "kv-late":
    case "kv-reset":
    case "kv-out-of-range":
      return;
    case "no-complete":
      call.end();
      return;
    case "goaway":
      call.goAway(fault.code);
      return;
    case "status":
      call.end(fault.code, fault.message, fault.trailers);
      return;
    case "reset":
      call.reset(fault.code);
      return;
    case "disconnect":
      call.disconnect();
      return;
    case "garble":
      call.garble();
      return;
    case "oversize":
      call.oversize(fault.bytes);
      return;
    case "freeze":
      call.flush();
      host.freeze(fault.ms);
      return;
    case "exit":
      call.flush();
      host.exit(fault.code);
  }
}
