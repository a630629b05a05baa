import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BUILD_MS } from "./support/binary.ts";
import {
  chat,
  eventually,
  startEngine,
  startGateway,
  type TestEngine,
  type TestGateway,
  user,
} from "./support/processes.ts";

const SCRIPT = `
- contains: never answer
  fault: hang
- contains: slow stream
  text: "one two three four five six seven eight nine ten"
  ms_per_token: 100
- contains: endless
  text: "${"on and ".repeat(400)}"
  ms_per_token: 100
- contains: late
  delay_ms: 20000
`;
/** From the client's leaving to the engine's abort; the promise is 50 ms, and polling takes some of them. */
const PROMISED_MS = 50;

const cases = [
  { name: "before the first byte of a stream", prompt: "never answer", stream: true, afterMs: 100 },
  { name: "while an unstreamed answer is made", prompt: "slow stream", stream: false, afterMs: 250 },
  { name: "before an unstreamed answer begins", prompt: "never answer", stream: false, afterMs: 100 },
  { name: "while the engine has it queued", prompt: "late", stream: true, afterMs: 100 },
  { name: "in mid-stream", prompt: "slow stream", stream: true, afterMs: 350 },
];

for (const threads of [1, 2]) {
  describe(`a client that leaves, ${threads} thread(s)`, () => {
    let engine: TestEngine;
    let gateway: TestGateway;

    beforeAll(async () => {
      engine = await startEngine(SCRIPT);
      gateway = await startGateway([engine], ["--threads", String(threads)]);
    }, BUILD_MS);
    afterAll(async () => {
      await gateway?.stop();
      await engine?.stop();
    });

    for (const { name, prompt, stream, afterMs } of cases) {
      test(
        `${name}: the engine is told within ${PROMISED_MS} ms`,
        async () => {
          const before = await engine.stats();
          const aborted = ({ abortedByRpc, abortedByCancel }: typeof before) => abortedByRpc + abortedByCancel;
          const client = new AbortController();
          const answer = chat(
            gateway,
            { model: gateway.model, messages: user(prompt), stream, max_tokens: 100 },
            { signal: client.signal },
          )
            .then((response) => response.text())
            .catch(() => "left");
          await eventually(async () => (await engine.stats()).received === before.received + 1);
          await Bun.sleep(afterMs);
          expect((await engine.stats()).open).toBe(1);
          client.abort();
          const took = await eventually(async () => aborted(await engine.stats()) === aborted(before) + 1);
          expect(took).toBeLessThan(PROMISED_MS);
          expect(await answer).toBe("left");
          expect((await engine.stats()).open).toBe(0);
        },
        { retry: 5 },
      ); // a busy machine may be late a few times
    }

    test("a hundred leave at once: nothing is left running, and others go on", async () => {
      const before = await engine.stats();
      const clients = Array.from({ length: 100 }, () => new AbortController());
      const answers = clients.map(({ signal }) =>
        chat(gateway, { model: gateway.model, messages: user("endless"), stream: true }, { signal })
          .then((r) => r.text())
          .catch(() => "left"),
      );
      const bystander = chat(gateway, { model: gateway.model, messages: user("slow stream") }).then((r) => r.json());
      await eventually(async () => (await engine.stats()).received >= before.received + 101);
      await Bun.sleep(150);
      for (const client of clients) client.abort();
      expect(await Promise.all(answers)).toEqual(Array(100).fill("left"));
      await eventually(async () => (await engine.stats()).open <= 1);
      const answer = (await bystander) as { choices: { message: { content: string } }[] };
      expect(answer.choices[0]!.message.content).toBe("one two three four five six seven eight nine ten");
      expect((await engine.stats()).open).toBe(0);
    });
  });
}

test("an engine that does not know stop strings makes no more once all choices have had theirs", async () => {
  const text = `one two three STOP ${"and on ".repeat(2000)}`;
  const engine = await startEngine(JSON.stringify([{ text, ms_per_token: 5 }]), ["--dialect", "sglang"]);
  const gateway = await startGateway([engine]);
  try {
    const answer = await chat(gateway, { model: gateway.model, messages: user("go"), n: 2, stop: "STOP" });
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
    expect(choices.map(({ message }) => message.content)).toEqual(["one two three ", "one two three "]);
    await eventually(async () => (await engine.stats()).open === 0);
    expect((await engine.stats()).tokensSent).toBeLessThan(1000);
  } finally {
    await gateway.stop();
    await engine.stop();
  }
}, 60_000);
