/** What registration keeps of an engine's answers. */
import { type Engine, EngineError } from "../engines/engine.ts";
import type { HttpModel } from "../engines/http/engine.ts";

/** What another engine at the same address would say otherwise: its model, and how it is set up. */
export async function identityOf(engine: Engine, deadlineMs: number): Promise<string> {
  const [model, server] = await Promise.all([
    engine.modelInfo(deadlineMs),
    engine.serverInfo(deadlineMs).catch((error: unknown) => {
      const isAway = error instanceof EngineError && (error.kind === "unavailable" || error.kind === "timeout");
      if (isAway) throw error;
      return undefined; // it serves without telling of itself
    }),
  ]);
  const { servedModelName, modelPath, contextLength, vocabSize } = model;
  const { blockSize = 0, dataParallelSize = 0, maxRunningRequests = 0 } = server ?? {};
  return JSON.stringify([
    servedModelName,
    modelPath,
    contextLength,
    vocabSize,
    blockSize,
    dataParallelSize,
    maxRunningRequests,
  ]);
}

export const identityOfHttp = (models: readonly HttpModel[]): string =>
  JSON.stringify(models.map(({ id, contextLength }) => [id, contextLength]).toSorted());
