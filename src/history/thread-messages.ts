import type { CallBatch } from "./host.ts";
import type { MemoryLimits } from "./memory.ts";
import type { SchemaSetting } from "./schema.ts";

export type ThreadTarget =
  | { readonly type: "memory"; readonly limits: MemoryLimits }
  | { readonly type: "sqlite"; readonly path: string; readonly schema: SchemaSetting };

export type ToHistoryThread =
  | { readonly type: "open"; readonly target: ThreadTarget }
  | { readonly type: "serve"; readonly port: MessagePort; readonly first?: CallBatch | undefined }
  | { readonly type: "close" };

export type FromHistoryThread =
  | { readonly type: "opened"; readonly failure: string | undefined }
  | { readonly type: "closed" };
