import type { ServeConfig } from "../../config/serve-options.ts";
import type { WorkerSource } from "../worker-source.ts";
import { staticSource } from "./static.ts";

/** Where the workers come from, by the settings. The workers' API is one more source, which is always there. */
export function sourcesOf(config: ServeConfig): readonly WorkerSource[] {
  return [staticSource(config.workerUrls)];
}
