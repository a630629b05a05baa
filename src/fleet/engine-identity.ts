/** By what an engine is told from another one that answers at the same address later. */
import { type Engine, EngineError, type ModelInfo, type ServerInfo } from "../engines/engine.ts";
import type { HttpModel } from "../engines/http/engine.ts";

type Setup = Pick<ServerInfo, "blockSize" | "dataParallelSize" | "maxRunningRequests">;
/** Of one that does not tell. */
const UNTOLD: Setup = { blockSize: 0, dataParallelSize: 0, maxRunningRequests: 0 };

/** Its model, and how it is set up. */
export function identityOf(
  { servedModelName, modelPath, contextLength, vocabSize }: ModelInfo,
  { blockSize, dataParallelSize, maxRunningRequests }: Setup,
): string {
  const ranks = dataParallelSize || 1;
  return JSON.stringify([servedModelName, modelPath, contextLength, vocabSize, blockSize, ranks, maxRunningRequests]);
}

/** The same of an engine as it is now. Rejects with EngineErrors. */
export async function askIdentity(engine: Engine, deadlineMs: number): Promise<string> {
  const [model, server] = await Promise.all([
    engine.modelInfo(deadlineMs),
    engine.serverInfo(deadlineMs).catch((error: unknown) => {
      const isAway = error instanceof EngineError && (error.kind === "unavailable" || error.kind === "timeout");
      if (isAway) throw error;
      return UNTOLD; // it serves without telling of itself
    }),
  ]);
  return identityOf(model, server);
}

export const identityOfHttp = (models: readonly HttpModel[]): string =>
  JSON.stringify(models.map(({ id, contextLength }) => [id, contextLength]).toSorted());
