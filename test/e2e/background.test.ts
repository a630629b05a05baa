/** Responses in the background of the compiled program, asked for with the openai package: several threads, and gateways that die. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { checkResponse, type ResponseEvent } from "../support/schemas/responses.ts";
import { checkEvents } from "../support/schemas/responses-order.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { eventually, startEngine, startGateway, type TestEngine, type TestGateway } from "./support/processes.ts";
import { openAiClient, scatteredClient } from "./support/responses.ts";
import { failureOf } from "./support/scripted.ts";

const WORDS = Array.from({ length: 60 }, (_, n) => `word${n}`).join(" ");
const SCRIPT = JSON.stringify([
  { contains: "slowly", text: WORDS, ms_per_token: 20, finish_reason: "stop" },
  { contains: "never", fault: "hang" },
  {
    contains: "fail midway",
    text: WORDS,
    ms_per_token: 5,
    fault: { kind: "status", code: "INTERNAL", message: "boom", after_tokens: 5 },
  },
  { contains: "quickly", text: "done" },
]);

let engine: TestEngine;
let gateway: TestGateway;
let model: string;
const folders: string[] = [];
/** A history in a file that gateways share, as those of one machine may. */
const historyUrl = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "collie-background-"));
  folders.push(folder);
  return `sqlite:${join(folder, "history.db")}`;
};
const anew = (): OpenAI => scatteredClient(gateway);

beforeAll(async () => {
  engine = await startEngine(SCRIPT);
  gateway = await startGateway([engine], ["--threads", "2", "--history-url", historyUrl()]);
  ({ model } = gateway);
}, BUILD_MS);
afterAll(async () => {
  await gateway?.stop();
  await engine?.stop();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

type Body = OpenAI.Responses.Response;
/** The object as it came, without what the client adds. */
function checked(response: Body): Body {
  const { output_text: _, _request_id: __, ...sent } = response as Body & { _request_id?: unknown };
  checkResponse(JSON.parse(JSON.stringify(sent)));
  return response;
}
const plain = (body: Body): unknown =>
  JSON.parse(JSON.stringify({ ...body, _request_id: undefined, output_text: undefined }));
async function over(client: OpenAI, id: string, ms = 15_000): Promise<Body> {
  let body: Body | undefined;
  await eventually(async () => {
    body = checked(await client.responses.retrieve(id));
    return body.status !== "queued" && body.status !== "in_progress";
  }, ms);
  return body!;
}
const collected = async (stream: AsyncIterable<unknown>): Promise<ResponseEvent[]> => {
  const events: ResponseEvent[] = [];
  for await (const event of stream) events.push(event as ResponseEvent);
  return events;
};

describe("with two threads", () => {
  test(covers("Responses", "background: polled", "openai"), async () => {
    const ids = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const body = checked(await anew().responses.create({ model, input: `Say it slowly, ${n}`, background: true }));
        expect(body).toMatchObject({ status: "queued", background: true });
        return body.id;
      }),
    );
    for (const id of ids) {
      const body = await over(anew(), id);
      expect([body.status, body.output_text]).toEqual(["completed", WORDS]);
    }
  }, 30_000);

  test(covers("Responses", "background: stream, resumed behind an event", "openai"), async () => {
    const stream = await anew().responses.create({ model, input: "Say it slowly", background: true, stream: true });
    const seen: ResponseEvent[] = [];
    for await (const event of stream) {
      seen.push(event as unknown as ResponseEvent);
      if (seen.length === 20) break;
    }
    const id = seen[0]!.response!.id;
    const last = seen.at(-1)!.sequence_number;
    // eight at once, so that both threads have some
    const rests = await Promise.all(
      Array.from({ length: 8 }, async () =>
        collected(await anew().responses.retrieve(id, { stream: true, starting_after: last })),
      ),
    );
    for (const rest of rests) {
      const body = checkEvents([...seen, ...rest]);
      expect(body.status).toBe("completed");
      expect(rest).toEqual(rests[0]!);
    }
    expect((await anew().responses.retrieve(id)).output_text).toBe(WORDS);
    const helper = anew().responses.stream({ response_id: id, starting_after: 10 });
    let first: number | undefined;
    helper.on("event", ({ sequence_number }) => {
      first ??= sequence_number;
    });
    expect([(await helper.finalResponse()).output_text, first]).toEqual([WORDS, 11]);
    expect(checkEvents(await collected(await anew().responses.retrieve(id, { stream: true }))).id).toBe(id);
  }, 30_000);

  test(covers("Responses", "background: cancel", "openai"), async () => {
    for (const input of ["Say it slowly", "never"]) {
      for (let n = 0; n < 4; n++) {
        const before = await engine.stats();
        const { id } = await anew().responses.create({ model, input, background: true, stream: false });
        await eventually(async () => (await engine.stats()).received === before.received + 1);
        const cancelled = checked(await anew().responses.cancel(id));
        expect(cancelled.status).toBe("cancelled");
        expect(plain(await anew().responses.cancel(id))).toEqual(plain(cancelled));
        expect(plain(await anew().responses.retrieve(id))).toEqual(plain(cancelled));
        await eventually(async () => (await engine.stats()).open === 0);
      }
    }
    const { id } = await anew().responses.create({ model, input: "quickly" });
    expect(await failureOf(anew().responses.cancel(id))).toBeInstanceOf(OpenAI.BadRequestError);
  }, 60_000);

  test(covers("Responses", "background: error after the first event", "openai"), async () => {
    const { id } = await anew().responses.create({ model, input: "fail midway", background: true });
    const body = await over(anew(), id);
    expect(body).toMatchObject({ status: "failed", error: { code: "server_error" } });
    expect(body.output).toMatchObject([{ type: "message", status: "incomplete" }]);
    const events: ResponseEvent[] = [];
    const failure = await failureOf(
      (async () => {
        for await (const event of await anew().responses.retrieve(id, { stream: true }))
          events.push(event as unknown as ResponseEvent);
      })(),
    );
    // the client throws at the event `error`
    expect(failure).toBeInstanceOf(OpenAI.APIError);
    expect(events.at(-1)?.type).toBe("response.output_item.done");
  });

  test(covers("Responses", "retrieve, delete", "openai"), async () => {
    const told = checked(await anew().responses.create({ model, input: "quickly", metadata: { a: "b" } }));
    expect(plain(await anew().responses.retrieve(told.id))).toEqual(plain(told));
    await anew().responses.delete(told.id);
    expect(await failureOf(anew().responses.retrieve(told.id))).toBeInstanceOf(OpenAI.NotFoundError);
    const { id } = await anew().responses.create({ model, input: "never", background: true });
    await anew().responses.delete(id);
    await eventually(async () => (await engine.stats()).open === 0);
  });

  test(covers("Responses", "input items, by pages", "openai"), async () => {
    const input = Array.from({ length: 45 }, (_, n) => ({ role: "user" as const, content: `quickly ${n}` }));
    const { id } = await anew().responses.create({ model, input });
    const texts: unknown[] = [];
    for await (const item of anew().responses.inputItems.list(id, { order: "asc", limit: 20 }))
      texts.push((item as { content: { text: string }[] }).content[0]?.text);
    expect(texts).toEqual(input.map(({ content }) => content));
  });

  test(covers("Responses", "input tokens", "openai"), async () => {
    const ask = { model, input: "quickly", instructions: "Be brief" };
    const told = await anew().responses.create(ask);
    const counted = await anew().responses.inputTokens.count(ask);
    expect(counted).toMatchObject({ object: "response.input_tokens", input_tokens: told.usage!.input_tokens });
  });

  test(covers("Responses", "compact", "openai"), async () => {
    const compacted = await anew().responses.compact({ model, input: "Hi, quickly" });
    expect(compacted).toMatchObject({ object: "response.compaction", usage: { total_tokens: expect.any(Number) } });
    expect(compacted.output.map(({ type }) => type)).toEqual(["message", "compaction"]);
    const input = [...compacted.output, { role: "user", content: "Go on, quickly" }] as OpenAI.Responses.ResponseInput;
    expect((await anew().responses.create({ model, input })).status).toBe("completed");
  });

  test(covers("Responses", "previous response", "openai"), async () => {
    let previous: string | null = null;
    for (let n = 0; n < 6; n++) {
      const body: Body = await anew().responses.create({
        model,
        input: `quickly ${n}`,
        previous_response_id: previous,
      });
      previous = body.id;
    }
    const five = await anew().responses.inputTokens.count({ model, input: "x", previous_response_id: previous });
    const none = await anew().responses.inputTokens.count({ model, input: "x" });
    expect(five.input_tokens!).toBeGreaterThan(none.input_tokens! + 50);
    const failure = await failureOf(anew().responses.create({ model, input: "x", previous_response_id: "resp_no" }));
    expect(failure).toMatchObject({ status: 404, code: "previous_response_not_found" });
  });
});

describe("a gateway that is killed", () => {
  test("loses no response that it has told of, and leaves none running for ever", async () => {
    const url = historyUrl();
    const args = ["--threads", "2", "--history-url", url];
    const doomed = await startGateway([engine], args);
    const done: string[] = [];
    const begun: string[] = [];
    let alive = true;
    const ask = async (background: boolean): Promise<void> => {
      for (let n = 0; alive; n++) {
        const body = await openAiClient(doomed)
          .responses.create({ model, input: background && n % 2 === 0 ? "Say it slowly" : "quickly", background })
          .catch(() => undefined);
        if (body !== undefined) (background ? begun : done).push(body.id);
        if (background) await Bun.sleep(50);
      }
    };
    const asking = [ask(false), ask(false), ask(true), ask(true)];
    try {
      await Bun.sleep(2500);
    } finally {
      doomed.program.kill("SIGKILL");
      alive = false;
    }
    await Promise.all(asking);
    await doomed.program.exited;
    expect(Math.min(done.length, begun.length)).toBeGreaterThan(10);

    const heir = await startGateway([engine], args);
    try {
      const client = openAiClient(heir);
      for (const id of done)
        expect(checked(await client.responses.retrieve(id))).toMatchObject({
          status: "completed",
          output_text: "done",
        });
      const states = new Map<string, number>();
      for (const id of begun) {
        const body = await over(client, id, 45_000);
        states.set(String(body.status), (states.get(String(body.status)) ?? 0) + 1);
        if (body.status === "failed") expect(body.error).toMatchObject({ code: "server_error" });
        else expect([body.status, body.output_text]).toEqual(["completed", "done"]);
        const events = await collected(await client.responses.retrieve(id, { stream: true })).catch(() => []);
        if (body.status === "completed") expect(checkEvents(events).status).toBe("completed");
      }
      expect([...states.keys()].sort()).toEqual(["completed", "failed"]);
    } finally {
      await heir.stop();
    }
  }, 120_000);

  test("hands its streams on: another gateway of the history goes on with what it has, and tells the end", async () => {
    const url = historyUrl();
    const doomed = await startGateway([engine], ["--history-url", url]);
    const other = await startGateway([engine], ["--history-url", url]);
    try {
      const stream = await openAiClient(doomed).responses.create({
        model,
        input: "never",
        background: true,
        stream: true,
      });
      const [first] = [await stream[Symbol.asyncIterator]().next()];
      const { id } = (first.value as { response: { id: string } }).response;
      const following = collected(await openAiClient(other).responses.retrieve(id, { stream: true })).then(
        () => "ended",
        (error: unknown) => error,
      );
      await Bun.sleep(300);
      doomed.program.kill("SIGKILL");
      expect(await following).toBeInstanceOf(OpenAI.APIError);
      expect(await openAiClient(other).responses.retrieve(id)).toMatchObject({ status: "failed" });
      await eventually(async () => (await engine.stats()).open === 0);
    } finally {
      await doomed.stop();
      await other.stop();
    }
  }, 60_000);

  test("that is stopped in time ends its work first, within its grace", async () => {
    const url = historyUrl();
    const doomed = await startGateway([engine], ["--history-url", url]);
    const slow = await openAiClient(doomed).responses.create({ model, input: "Say it slowly", background: true });
    await Bun.sleep(200);
    expect(await doomed.program.stop()).toBe(0);
    const heir = await startGateway([engine], ["--history-url", url]);
    try {
      expect(await openAiClient(heir).responses.retrieve(slow.id)).toMatchObject({
        status: "completed",
        output_text: WORDS,
      });
    } finally {
      await heir.stop();
    }
  }, 30_000);
});
