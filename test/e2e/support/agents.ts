/** What @openai/agents are asked, over an engine with the script of scripted.ts, and what must come of it. */
import { expect } from "bun:test";
import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { degrees, failureOf, HELLO, LONG } from "./scripted.ts";

/** Runs agents by the one API or the other. */
export interface Agents {
  readonly runner: Runner;
  /** `more`: members of the agent. */
  agent(more?: object): Agent;
}

export function agentsOf(client: OpenAI, model: string, useResponses: boolean): Agents {
  const modelProvider = new OpenAIProvider({ openAIClient: client as never, useResponses });
  return {
    runner: new Runner({ modelProvider, tracingDisabled: true }),
    agent: (more = {}) => new Agent({ name: "Tester", instructions: "Be brief.", model, ...more }),
  };
}

/** Runs an agent to its end, whole or streamed. */
export async function runTo({ runner }: Agents, one: Agent, input: string, stream: boolean) {
  const result = stream ? await runner.run(one, input, { stream }) : await runner.run(one, input);
  if ("completed" in result) await result.completed;
  return result;
}

export async function answers({ runner, agent }: Agents): Promise<void> {
  const result = await runner.run(agent(), "say hello");
  expect(result.finalOutput).toBe(HELLO);
  expect(result.rawResponses[0]!.usage.outputTokens).toBeGreaterThan(5);
}

export async function streams({ runner, agent }: Agents): Promise<void> {
  const result = await runner.run(agent(), "say hello", { stream: true });
  let text = "";
  for await (const event of result)
    if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") text += event.data.delta;
  await result.completed;
  expect([text, result.finalOutput]).toEqual([HELLO, HELLO]);
}

/** An agent with a tool, whole and streamed: the cities that it is asked for, and the answer. */
export async function callsTools(
  agents: Agents,
  input: string,
  cities: readonly string[],
  answer: string,
  more: object = {},
): Promise<void> {
  for (const stream of [false, true]) {
    const asked: string[] = [];
    const weather = tool({
      name: "get_weather",
      description: "Tells the weather",
      parameters: z.object({ city: z.string() }),
      execute: ({ city }) => {
        asked.push(city);
        return degrees(city);
      },
    });
    const result = await runTo(agents, agents.agent({ tools: [weather], ...more }), input, stream);
    expect([result.finalOutput as unknown, asked]).toEqual([answer, [...cities]]);
  }
}

export async function givesObjects({ runner, agent }: Agents): Promise<void> {
  const outputType = z.object({ city: z.string(), degrees: z.number() });
  const result = await runner.run(agent({ outputType }), "say JSON");
  expect(result.finalOutput as unknown).toEqual({ city: "Oslo", degrees: 4 });
}

export async function refuses({ runner, agent }: Agents): Promise<void> {
  expect(await failureOf(runner.run(agent(), "refuse"))).toBeInstanceOf(OpenAI.InternalServerError);
  expect(await failureOf(runner.run(agent(), "refuse busy"))).toBeInstanceOf(OpenAI.RateLimitError);
}

export async function failsMidway({ runner, agent }: Agents): Promise<void> {
  for (const input of ["fail midway", "cut midway"]) {
    const result = await runner.run(agent(), input, { stream: true });
    expect(await failureOf(result.completed)).toBeInstanceOf(OpenAI.APIError);
  }
}

export async function countsUp({ runner, agent }: Agents): Promise<void> {
  const result = await runner.run(agent(), "count up", { stream: true });
  await result.completed;
  expect(result.finalOutput).toBe(LONG);
}
