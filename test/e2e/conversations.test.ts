/** Conversations of the compiled program, asked for with the openai package. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { conversation, item, itemList } from "../support/schemas/conversations.ts";
import { check } from "../support/schemas/responses.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { startEngine, startGateway, type TestEngine, type TestGateway } from "./support/processes.ts";
import { scatteredClient } from "./support/responses.ts";
import { failureOf } from "./support/scripted.ts";

const SCRIPT = JSON.stringify([
  { contains: "I am Ann", text: "You are Ann" },
  { contains: "number 159", text: "I see the newest" },
  { contains: "hello", text: "Hi" },
]);
const folder = mkdtempSync(join(tmpdir(), "collie-conversations-"));
let engine: TestEngine;
let gateway: TestGateway;
let model: string;
const anew = (): OpenAI => scatteredClient(gateway);

beforeAll(async () => {
  engine = await startEngine(SCRIPT);
  gateway = await startGateway([engine], ["--threads", "2", "--state-dir", folder]);
  ({ model } = gateway);
}, BUILD_MS);
afterAll(async () => {
  await gateway?.stop();
  await engine?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const plain = (value: object): unknown => {
  const { _request_id: _, ...rest } = JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
  return rest;
};
const textOf = (value: unknown): unknown => (value as { content: { text: string }[] }).content[0]?.text;

test(covers("Conversations", "create, retrieve, update, delete", "openai"), async () => {
  const made = await anew().conversations.create({ metadata: { topic: "a" } });
  check(conversation, plain(made), "created");
  expect(plain(await anew().conversations.retrieve(made.id))).toEqual(plain(made));
  const renamed = await anew().conversations.update(made.id, { metadata: { topic: "b" } });
  expect(renamed.metadata).toEqual({ topic: "b" });
  expect(await anew().conversations.delete(made.id)).toMatchObject({
    id: made.id,
    object: "conversation.deleted",
    deleted: true,
  });
  expect(await failureOf(anew().conversations.retrieve(made.id))).toBeInstanceOf(OpenAI.NotFoundError);
});

test(covers("Conversations", "items: create, list by pages, retrieve, delete", "openai"), async () => {
  const { id } = await anew().conversations.create({ items: [{ role: "user", content: "n0" }] });
  for (let n = 1; n < 60; n += 20) {
    const items = Array.from({ length: Math.min(20, 60 - n) }, (_, i) => ({
      role: "user" as const,
      content: `n${n + i}`,
    }));
    const added = await anew().conversations.items.create(id, { items });
    check(itemList, plain(added), "added");
  }
  const texts: unknown[] = [];
  for await (const each of anew().conversations.items.list(id, { order: "asc" })) {
    check(item, plain(each), "item");
    texts.push(textOf(each));
  }
  expect(texts).toEqual(Array.from({ length: 60 }, (_, n) => `n${n}`));
  const newest = await anew().conversations.items.list(id, { limit: 1 });
  const last = newest.data[0] as { id: string };
  expect(textOf(last)).toBe("n59");
  expect(plain(await anew().conversations.items.retrieve(last.id, { conversation_id: id }))).toEqual(plain(last));
  const left = await anew().conversations.items.delete(last.id, { conversation_id: id });
  check(conversation, plain(left), "conversation");
  expect(await failureOf(anew().conversations.items.retrieve(last.id, { conversation_id: id }))).toBeInstanceOf(
    OpenAI.NotFoundError,
  );
});

test(covers("Conversations", "responses go on from it and add to it", "openai"), async () => {
  const { id } = await anew().conversations.create({ items: [{ role: "user", content: "I am Ann" }] });
  const told = await anew().responses.create({ model, conversation: id, input: "Who am I?" });
  expect([told.output_text, told.conversation]).toEqual(["You are Ann", { id }]);
  const streamed = anew().responses.stream({ model, conversation: { id }, input: "Again?" });
  expect((await streamed.finalResponse()).output_text).toBe("You are Ann");
  const texts: unknown[] = [];
  for await (const each of anew().conversations.items.list(id, { order: "asc" })) texts.push(textOf(each));
  expect(texts).toEqual(["I am Ann", "Who am I?", "You are Ann", "Again?", "You are Ann"]);
  const failure = await failureOf(
    anew().responses.create({ model, conversation: id, previous_response_id: told.id, input: "x" }),
  );
  expect(failure).toBeInstanceOf(OpenAI.BadRequestError);
});

test(covers("Conversations", "the newest items of a long one are kept", "openai"), async () => {
  const { id } = await anew().conversations.create();
  const filler = "lorem ipsum dolor sit amet ".repeat(80);
  for (let n = 0; n < 160; n += 20)
    await anew().conversations.items.create(id, {
      items: Array.from({ length: 20 }, (_, i) => ({ role: "user" as const, content: `number ${n + i} ${filler}` })),
    });
  const told = await anew().responses.create({ model, conversation: id, input: "hello", truncation: "auto" });
  expect(told.output_text).toBe("I see the newest");
}, 60_000);
