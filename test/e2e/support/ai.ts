/** What `ai` is asked of a model of any API, over an engine with the script of scripted.ts, and what must come of it. */
import { expect } from "bun:test";
import { APICallError, generateText, type LanguageModel, Output, streamText, tool } from "ai";
import { z } from "zod";
import { failureOf, HELLO, LONG, YES } from "./scripted.ts";

/** Makes the options of a call. */
export type Ask = (prompt: string) => {
  readonly model: LanguageModel;
  readonly prompt: string;
  readonly maxRetries: number;
  readonly maxOutputTokens?: number;
  onError(): void;
};

/** A tool that notes what it is asked for. */
export const weather = (asked: string[]) => ({
  get_weather: tool({
    description: "Tells the weather",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => {
      asked.push(city);
      return { city, degrees: 4 };
    },
  }),
});

export const town = z.object({ city: z.string(), degrees: z.number() });

/** Gives the tokens of the prompt that were told. */
export async function streams(ask: Ask): Promise<number> {
  const result = streamText(ask("say hello"));
  let text = "";
  for await (const piece of result.textStream) text += piece;
  expect([text, await result.finishReason]).toEqual([HELLO, "stop"]);
  return (await result.usage).inputTokens ?? 0;
}

/** Reasoning is generated, and not shown. */
export async function hidesReasoning(ask: Ask): Promise<void> {
  const { text, usage } = await generateText(ask("think first"));
  expect(text.trim()).toBe(YES);
  expect(usage.outputTokenDetails.reasoningTokens).toBeGreaterThan(0);
}

/** Whole and streamed. */
export async function givesObjects(ask: Ask): Promise<void> {
  const output = Output.object({ schema: town });
  const whole = await generateText({ ...ask("say JSON"), output });
  const streamed = streamText({ ...ask("say JSON"), output });
  await streamed.consumeStream();
  const wanted = { city: "Oslo", degrees: 4 };
  expect([whole.output, await streamed.output]).toEqual([wanted, wanted]);
}

export async function refuses(ask: Ask): Promise<void> {
  const error = await failureOf(generateText(ask("refuse")));
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ statusCode: 500, message: "boom", isRetryable: true });
  expect(await failureOf(generateText(ask("refuse busy")))).toMatchObject({ statusCode: 429, isRetryable: true });
}

/** Gives how each of two streams ended. */
export async function failsMidway(ask: Ask): Promise<{ errors: number; reason: string | undefined }[]> {
  const ends: { errors: number; reason: string | undefined }[] = [];
  for (const prompt of ["fail midway", "cut midway"]) {
    let text = "";
    let errors = 0;
    let reason: string | undefined;
    for await (const part of streamText(ask(prompt)).fullStream) {
      if (part.type === "text-delta") text += part.text;
      if (part.type === "error") errors++;
      if (part.type === "finish") reason = part.finishReason;
    }
    expect(text).toStartWith("alpha");
    expect(errors).toBeGreaterThan(0);
    ends.push({ errors, reason });
  }
  return ends;
}

export async function isCut(ask: Ask): Promise<void> {
  const cut = streamText({ ...ask("count up"), maxOutputTokens: 20 });
  await cut.consumeStream();
  expect([await cut.finishReason, (await cut.usage).outputTokens]).toEqual(["length", 20]);
}

export async function countsUp(ask: Ask): Promise<void> {
  const result = streamText(ask("count up"));
  let pieces = 0;
  for await (const _ of result.textStream) pieces++;
  expect(await result.text).toBe(LONG);
  expect(pieces).toBeGreaterThan(500);
}
