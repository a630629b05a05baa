/** The scripted server of the vLLM dialect. */
import { type DialectServer, type Script, startDialectServer } from "./dialect-server.ts";

export type { Script } from "./dialect-server.ts";
export type VllmServer = DialectServer;

/** RPCs without a script are UNIMPLEMENTED. `service` replaces the service's name. */
export const startVllmServer = (scripts: Record<string, Script>, service?: string): Promise<DialectServer> =>
  startDialectServer("vllm", scripts, service);
