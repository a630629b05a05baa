/** Message batches of the compiled program, judged by @anthropic-ai/sdk. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { batch, batchResult, check } from "../support/schemas/messages.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { anthropicClient, type MessagesServer, startMessages } from "./support/messages.ts";
import { eventually, startGateway } from "./support/processes.ts";
import { failureOf, HELLO } from "./support/scripted.ts";

let server: MessagesServer;
let client: Anthropic;
let folder: string;
/** Two threads with one file: whichever is asked, it knows. */
const kept = () => ["--threads", "2", "--history-url", `sqlite:${join(folder, "history.db")}`];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "collie-batches-"));
  server = await startMessages(kept());
  ({ client } = server);
}, BUILD_MS);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Request = Anthropic.Messages.BatchCreateParams.Request;
const request = (custom_id: string, text: string): Request => ({
  custom_id,
  params: { model: server.model, max_tokens: 1000, messages: [{ role: "user", content: text }] },
});
const requests = (...texts: string[]) => ({ requests: texts.map((text, i) => request(`r-${i}`, text)) });
const bare = (value: object): unknown => JSON.parse(JSON.stringify({ ...value, _request_id: undefined }));

async function ended(id: string, by: Anthropic = client): Promise<Anthropic.Messages.MessageBatch> {
  let found!: Anthropic.Messages.MessageBatch;
  await eventually(async () => {
    found = await by.messages.batches.retrieve(id);
    check(batch, bare(found));
    return found.processing_status === "ended";
  }, 60_000);
  return found;
}

async function results(
  id: string,
  by: Anthropic = client,
): Promise<Map<string, Anthropic.Messages.MessageBatchResult>> {
  const found = new Map<string, Anthropic.Messages.MessageBatchResult>();
  for await (const line of await by.messages.batches.results(id)) {
    check(batchResult, line);
    expect(found.has(line.custom_id)).toBe(false);
    found.set(line.custom_id, line.result);
  }
  return found;
}

test(covers("Message Batches", "create, retrieve, results", "@anthropic-ai/sdk"), async () => {
  const made = await client.messages.batches.create(requests("say hello", "refuse this", "say hello"));
  check(batch, bare(made));
  expect(made.request_counts.processing).toBe(3);
  const done = await ended(made.id);
  expect(done.request_counts).toEqual({ processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 });
  const found = await results(made.id);
  const good = found.get("r-0") as Anthropic.Messages.MessageBatchSucceededResult;
  expect(good.message.content).toEqual([{ type: "text", text: HELLO, citations: null }]);
  const bad = found.get("r-1") as Anthropic.Messages.MessageBatchErroredResult;
  expect(bad.error.error.type).toBe("api_error");
});

test(covers("Message Batches", "list", "@anthropic-ai/sdk"), async () => {
  const made: string[] = [];
  for (let i = 0; i < 3; i++) made.unshift((await client.messages.batches.create(requests("say hello"))).id);
  const listed: string[] = [];
  for await (const { id } of client.messages.batches.list({ limit: 2 })) listed.push(id);
  expect(listed.slice(0, 3)).toEqual(made);
  for (const id of made) await ended(id);
});

test(covers("Message Batches", "cancel and delete", "@anthropic-ai/sdk"), async () => {
  const made = await client.messages.batches.create(requests("say hello", ...Array<string>(20).fill("hold on")));
  expect(await failureOf(client.messages.batches.delete(made.id))).toBeInstanceOf(Anthropic.BadRequestError);
  expect(await failureOf(client.messages.batches.results(made.id))).toBeInstanceOf(Error);
  await eventually(async () => (await server.engine.stats()).open > 10);
  expect((await client.messages.batches.cancel(made.id)).processing_status).toBe("canceling");
  const done = await ended(made.id);
  expect(done.request_counts.canceled).toBe(20);
  await eventually(async () => (await server.engine.stats()).open === 0);
  expect(bare(await client.messages.batches.delete(made.id))).toEqual({ id: made.id, type: "message_batch_deleted" });
  expect(await failureOf(client.messages.batches.retrieve(made.id))).toBeInstanceOf(Anthropic.NotFoundError);
});

test(covers("Message Batches", "a gateway that is killed: the next one goes on", "@anthropic-ai/sdk"), async () => {
  const first = await startGateway([server.engine], kept());
  const by = anthropicClient(first);
  const texts = ["say hello", ...Array<string>(30).fill("slowly")];
  const made = await by.messages.batches.create(requests(...texts));
  // the first answers are stored, others are under way
  await eventually(async () => (await server.engine.stats()).open >= 15, 5000);
  await Bun.sleep(3500);
  first.program.kill("SIGKILL");
  await first.program.exited;
  const { succeeded } = (await ended(made.id)).request_counts;
  expect(succeeded).toBe(31);
  expect((await results(made.id)).size).toBe(31);
}, 90_000);

test(covers(
  "Message Batches",
  "a gateway that is stopped: the next one goes on at once",
  "@anthropic-ai/sdk",
), async () => {
  const first = await startGateway([server.engine], kept());
  const by = anthropicClient(first);
  const made = await by.messages.batches.create(requests(...Array<string>(20).fill("slowly")));
  await eventually(async () => (await server.engine.stats()).open >= 15, 5000);
  await first.stop();
  const since = performance.now();
  expect((await ended(made.id)).request_counts.succeeded).toBe(20);
  expect(performance.now() - since).toBeLessThan(10_000);
  expect((await results(made.id)).size).toBe(20);
}, 60_000);
