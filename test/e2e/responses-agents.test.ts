/** Responses of the compiled program, judged by @openai/agents. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ModelBehaviorError } from "@openai/agents";
import * as agentCases from "./support/agents.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { type ResponsesServer, startResponses } from "./support/responses.ts";
import { BOTH, CITIES, failureOf, ONE, THOUGHT, YES } from "./support/scripted.ts";

let server: ResponsesServer;
let agents: agentCases.Agents;
beforeAll(async () => {
  server = await startResponses();
  agents = agentCases.agentsOf(server.client, server.model, true);
}, BUILD_MS);
afterAll(() => server?.stop());

test(covers("Responses", "text", "@openai/agents"), () => agentCases.answers(agents));

test(covers("Responses", "stream", "@openai/agents"), () => agentCases.streams(agents));

test(covers("Responses", "reasoning", "@openai/agents"), async () => {
  const modelSettings = { reasoning: { summary: "auto" } };
  for (const stream of [false, true]) {
    const result = await agentCases.runTo(agents, agents.agent({ modelSettings }), "think first", stream);
    expect(result.finalOutput?.trim()).toBe(YES);
    const thought = result.newItems.find(({ type }) => type === "reasoning_item");
    expect(JSON.stringify(thought?.rawItem)).toContain(THOUGHT);
  }
});

test(covers("Responses", "one tool", "@openai/agents"), () =>
  agentCases.callsTools(agents, "weather of Oslo", ["Oslo"], ONE),
);
test(covers("Responses", "parallel tools", "@openai/agents"), () =>
  agentCases.callsTools(agents, "both towns", CITIES, BOTH),
);
test(covers("Responses", "tools without store", "@openai/agents"), () => {
  const modelSettings = { store: false, providerData: { include: ["reasoning.encrypted_content"] } };
  return agentCases.callsTools(agents, "weather of Oslo", ["Oslo"], ONE, { modelSettings });
});

test(covers("Responses", "structured output", "@openai/agents"), () => agentCases.givesObjects(agents));

test(covers("Responses", "error before the first byte", "@openai/agents"), () => agentCases.refuses(agents));

test(covers("Responses", "error after it", "@openai/agents"), () => agentCases.failsMidway(agents));

/** An answer that is cut is no answer for an agent. */
test(covers("Responses", "cut stream", "@openai/agents"), async () => {
  const result = await agents.runner.run(agents.agent({ modelSettings: { maxTokens: 20 } }), "count up", {
    stream: true,
  });
  const error = await failureOf(result.completed);
  expect(error).toBeInstanceOf(ModelBehaviorError);
  expect((error as Error).message).toContain("response.incomplete");
});

test(covers("Responses", "long stream", "@openai/agents"), () => agentCases.countsUp(agents));
