/** Entry point of the thread that holds a store; `startHistoryThread` starts it. */
import { type SyncHistory, serveHistory } from "./host.ts";
import { createMemory } from "./memory.ts";
import { openSqlite } from "./sqlite.ts";
import type { FromHistoryThread, ToHistoryThread } from "./thread-messages.ts";

declare const self: Worker;

let store: SyncHistory | undefined;
let ports: ReturnType<typeof serveHistory> | undefined;

self.onmessage = ({ data }: MessageEvent<ToHistoryThread>) => {
  if (data.type === "open") {
    let failure: string | undefined;
    try {
      const { target } = data;
      store = target.type === "memory" ? createMemory(target.limits) : openSqlite(target.path, target.schema);
      ports = serveHistory(store);
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
    }
    self.postMessage({ type: "opened", failure } satisfies FromHistoryThread);
  } else if (data.type === "serve") ports?.serve(data.port, data.first);
  else {
    store?.close();
    self.postMessage({ type: "closed" } satisfies FromHistoryThread);
  }
};
