import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { BUILD_MS } from "./support/binary.ts";
import { chat, startEngine, startGateway, type TestEngine, type TestGateway, user } from "./support/processes.ts";
import { openAiClient } from "./support/responses.ts";

const TEXT = "alpha beta gamma delta epsilon zeta eta theta";
const before = (code: string, words: string) => `
- contains: refuse ${code}
  fault: { kind: status, code: ${code}, message: "${words}" }`;
const midway = (name: string, fault: string) => `
- contains: midway ${name}
  text: ${TEXT}
  ms_per_token: 20
  fault: { ${fault}, after_tokens: 3 }`;

const STATUSES = [
  ["INVALID_ARGUMENT", 400, "the schema is wrong"],
  ["RESOURCE_EXHAUSTED", 429, "the queue is full"],
  ["UNAVAILABLE", 503, ""],
  ["DEADLINE_EXCEEDED", 504, ""],
  ["NOT_FOUND", 404, "no such adapter"],
  ["UNIMPLEMENTED", 501, "cannot do that"],
  ["INTERNAL", 500, "boom"],
] as const;

const SCRIPT = [
  ...STATUSES.map(([code, , words]) => before(code, words)),
  midway("status", "kind: status, code: INTERNAL, message: boom"),
  midway("reset", "kind: reset"),
  midway("disconnect", "kind: disconnect"),
  midway("goaway-error", "kind: goaway, code: INTERNAL_ERROR"),
  `
- contains: forget the end
  text: ${TEXT}
  finish_reason: length
  fault: no-complete
- contains: goodbye
  text: ${TEXT}
  ms_per_token: 10
  fault: { kind: goaway, code: NO_ERROR, after_tokens: 2 }
- contains: aborted inside
  text: ${TEXT}
  finish_reason: abort
- contains: failed inside
  text: ${TEXT}
  finish_reason: error
`,
].join("");

interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly code: string;
    readonly param: string | null;
  };
}

describe("engine faults", () => {
  for (const transport of ["framing", "grpc-js"]) {
    describe(transport, () => {
      let engine: TestEngine;
      let gateway: TestGateway;
      const ask = (prompt: string, stream: boolean) =>
        chat(gateway, { model: gateway.model, messages: user(prompt), stream });

      beforeAll(async () => {
        engine = await startEngine(SCRIPT);
        gateway = await startGateway(
          [engine],
          ["--threads", "1", "--engine-transport", transport, "--disable-circuit-breaker"],
        );
      }, BUILD_MS);
      afterAll(async () => {
        await gateway?.stop();
        await engine?.stop();
      });

      for (const [code, status, words] of STATUSES) {
        for (const stream of [false, true]) {
          test(`${code} before the first byte is ${status}${stream ? ", streamed" : ""}`, async () => {
            const response = await ask(`refuse ${code}`, stream);
            expect(response.status).toBe(status);
            expect(response.headers.get("content-type")).toContain("application/json");
            const { error } = (await response.json()) as ErrorBody;
            expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
            expect(error.message).toContain(words);
            expect(error.message).not.toMatch(/127\.0\.0\.1|:\d{4}/);
            if (status === 429 || status === 503) expect(response.headers.get("retry-after")).toBe("1");
          });
        }
      }

      for (const name of ["status", "reset", "disconnect", "goaway-error"]) {
        test(`${name} in mid-stream is an error event, and no [DONE] or finish follows`, async () => {
          const text = await (await ask(`midway ${name}`, true)).text();
          const frames = text.split("\n\n").filter((frame) => frame.startsWith("data: "));
          expect(text).not.toContain("[DONE]");
          const last = JSON.parse(frames.at(-1)!.slice(6)) as ErrorBody;
          expect(last.error.type).toBeString();
          expect(last.error.code).toBeString();
          const said = frames
            .slice(0, -1)
            .map(
              (f) => JSON.parse(f.slice(6)) as { choices: { delta: { content?: string }; finish_reason: unknown }[] },
            );
          expect(said.every((chunk) => chunk.choices[0]!.finish_reason === null)).toBe(true);
          expect(TEXT.startsWith(said.map((chunk) => chunk.choices[0]!.delta.content ?? "").join(""))).toBe(true);
        });

        test(`${name} in the middle of an unstreamed answer is an error status`, async () => {
          const response = await ask(`midway ${name}`, false);
          expect(response.status).toBeGreaterThanOrEqual(500);
          expect(((await response.json()) as ErrorBody).error.message).toBeString();
        });

        test(`after ${name}, the next request is served`, async () => {
          const response = await ask("hello", false);
          expect(response.status).toBe(200);
        });
      }

      test("the openai client throws at an error event", async () => {
        const client = openAiClient(gateway);
        const stream = client.chat.completions.stream({ model: gateway.model, messages: user("midway status") });
        await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(OpenAI.APIError);
      });

      test("an end without the final message is not a success", async () => {
        const text = await (await ask("forget the end", true)).text();
        expect(text).not.toContain("[DONE]");
        expect(text).toContain('"error"');
        expect((await ask("forget the end", false)).status).toBeGreaterThanOrEqual(500);
      });

      for (const prompt of ["aborted inside", "failed inside"]) {
        test(`${prompt}: the engine's own end of a request is an error`, async () => {
          const text = await (await ask(prompt, true)).text();
          expect(text).not.toContain("[DONE]");
          expect(text).toContain('"error"');
          expect((await ask(prompt, false)).status).toBe(500);
        });
      }

      test("GOAWAY without an error lets the stream finish, and the next request connects anew", async () => {
        const text = await (await ask("goodbye", true)).text();
        expect(text).toContain("[DONE]");
        expect((await ask("hello", false)).status).toBe(200);
      });
    });
  }

  test("an engine that dies in mid-stream ends its streams with an error; without workers the answer is 503", async () => {
    const engine = await startEngine(`
- contains: die
  text: ${TEXT}
  ms_per_token: 20
  fault: { kind: exit, after_tokens: 3 }
`);
    const gateway = await startGateway(
      [engine],
      ["--threads", "1", "--health-check-interval-secs", "1", "--health-failure-threshold", "1"],
    );
    try {
      const text = await (await chat(gateway, { model: gateway.model, messages: user("die"), stream: true })).text();
      expect(text).not.toContain("[DONE]");
      expect(text).toContain('"error"');
      const response = await chat(gateway, { model: gateway.model, messages: user("hello") });
      expect(response.status).toBe(503);
      await Bun.sleep(2500);
      const readiness = await fetch(`${gateway.url}/readiness`);
      expect(readiness.status).toBe(503);
      const later = await chat(gateway, { model: gateway.model, messages: user("hello") });
      expect(later.status).toBe(503);
      expect(((await later.json()) as ErrorBody).error.code).toBe("no_available_workers");
    } finally {
      await gateway.stop();
      await engine.stop();
    }
  });

  test("of two engines one dies: nobody notices but who was streaming from it", async () => {
    const engines = [await startEngine(), await startEngine()];
    const gateway = await startGateway(engines, ["--threads", "1"]);
    try {
      const ask = () => chat(gateway, { model: gateway.model, messages: user("hello"), max_tokens: 3 });
      for (let i = 0; i < 4; i++) expect((await ask()).status).toBe(200);
      engines[0]!.program.kill("SIGKILL");
      await engines[0]!.program.exited;
      for (let i = 0; i < 20; i++) expect((await ask()).status).toBe(200);
      const many = await Promise.all(Array.from({ length: 20 }, ask));
      expect(many.map(({ status }) => status)).toEqual(Array(20).fill(200));
    } finally {
      await gateway.stop();
      for (const engine of engines) await engine.stop();
    }
  });
});
