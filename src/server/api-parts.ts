/** Which routes are there from the start, and which are loaded when they are first asked for. */
import type { AnyElysia } from "elysia";
import type { ServerContext } from "./context.ts";
import type { Begin } from "./route-parts.ts";

/** Makes the routes of a part of the API. */
export type Routes = (context: ServerContext, begin: Begin) => AnyElysia;

/**
 * Parts by name, in the order of the API document. Few gateways serve all APIs, and most of them serve Chat: to load all of them takes
 * a third of a start. Each takes some milliseconds when a request first asks for it.
 */
const LOADERS = {
  tokens: async () => (await import("./token-routes.ts")).tokenRoutes,
  completions: async () => (await import("./completions-routes.ts")).completionsRoutes,
  pooling: async () => (await import("./pooling-routes.ts")).poolingRoutes,
  responses: async () => (await import("./responses-routes.ts")).responsesRoutes,
  conversations: async () => (await import("./conversations-routes.ts")).conversationsRoutes,
  messages: async () => (await import("./messages-routes.ts")).messagesRoutes,
  interactions: async () => (await import("./interactions-routes.ts")).interactionsRoutes,
  parse: async () => (await import("./parse-routes.ts")).parseRoutes,
  workers: async () => (await import("./workers-routes.ts")).workersRoutes,
  routing: async () => (await import("./routing-routes.ts")).routingRoutes,
  fleet: async () => (await import("./fleet-routes.ts")).fleetRoutes,
} satisfies Readonly<Record<string, () => Promise<Routes>>>;

export type PartName = keyof typeof LOADERS;

export const PART_NAMES = Object.keys(LOADERS) as readonly PartName[];

/** Parts by the first segment of their paths, but for `/v1`, which some of them have and some have not. */
const SEGMENTS: ReadonlyMap<string, PartName | "document"> = new Map<string, PartName | "document">([
  ["tokenize", "tokens"],
  ["detokenize", "tokens"],
  ["tokenizers", "tokens"],
  ["completions", "completions"],
  ["generate", "completions"],
  ["embeddings", "pooling"],
  ["rerank", "pooling"],
  ["classify", "pooling"],
  ["responses", "responses"],
  ["conversations", "conversations"],
  ["messages", "messages"],
  ["interactions", "interactions"],
  ["v1beta", "interactions"],
  ["v1alpha", "interactions"],
  ["parse", "parse"],
  ["parse_function_call", "parse"],
  ["separate_reasoning", "parse"],
  ["workers", "workers"],
  ["routing", "routing"],
  ["get_loads", "fleet"],
  ["engine_metrics", "fleet"],
  ["get_model_info", "fleet"],
  ["get_server_info", "fleet"],
  ["health_generate", "fleet"],
  ["flush_cache", "fleet"],
  ["start_profile", "fleet"],
  ["stop_profile", "fleet"],
  ["swagger", "document"],
]);

/**
 * The part that a path would belong to, if it belongs to any; `document`: the API document and its page, which show all parts. Undefined:
 * what is there from the start.
 */
export function partOf(path: string): PartName | "document" | undefined {
  const [, first = "", second = ""] = path.split("/", 3);
  return SEGMENTS.get(first === "v1" ? second : first);
}

export const loadPart = (name: PartName): Promise<Routes> => LOADERS[name]();
