/** A real model on MLX, whose text makes sense. */
import { ask, askStream, type ChatBody } from "./answer.ts";
import type { CaseResult } from "./results.ts";
import { startGateway, startMlx } from "./servers.ts";

const MODEL = "smollm2";

/** Name, request, what the text must have. */
const cases: readonly (readonly [string, ChatBody, RegExp])[] = [
  ["capital of France", { messages: [{ role: "user", content: "What is the capital of France?" }] }, /Paris/],
];

/** Starts the engine with the model and a gateway, and asks. */
export async function mlxRealChecks(): Promise<CaseResult[]> {
  const engine = await startMlx(MODEL, "0.4.28");
  try {
    const gateway = await startGateway(engine.url);
    try {
      const model = await servedModel(gateway.url);
      const results: CaseResult[] = [];
      for (const [name, body, expected] of cases)
        for (const [way, put] of [["whole", ask] as const, ["stream", askStream] as const]) {
          const { choices, error } = await put(gateway.url, { model, temperature: 0, max_tokens: 12, ...body });
          const text = choices[0]?.text;
          const faults = expected.test(text ?? "") ? [] : [`text ${JSON.stringify(text)}, ${error}`];
          results.push({ name: `SmolLM2: ${name} (${way})`, faults, note: undefined });
        }
      return results;
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
}

/** Name of the only model. */
export async function servedModel(url: string): Promise<string> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  return data[0]!.id;
}
