/** The WebSocket transport of Responses in the compiled program, with the client of the openai package. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ResponsesWS } from "openai/resources/responses/ws";
import type { ResponseEvent } from "../support/schemas/responses.ts";
import { checkEvents } from "../support/schemas/responses-order.ts";
import { BUILD_MS } from "./support/binary.ts";
import { covers } from "./support/covers.ts";
import { eventually } from "./support/processes.ts";
import { type ResponsesServer, startResponses } from "./support/responses.ts";
import { failureOf, HELLO, LONG } from "./support/scripted.ts";

let server: ResponsesServer;
const sockets: ResponsesWS[] = [];
beforeAll(async () => {
  server = await startResponses();
}, BUILD_MS);
afterAll(async () => {
  for (const socket of sockets) socket.close();
  await server?.stop();
});

interface Connection {
  readonly socket: ResponsesWS;
  readonly received: ResponseEvent[];
  readonly errors: unknown[];
  /** The events of one response behind those that were taken. */
  response(): Promise<ReturnType<typeof checkEvents>>;
}

async function connect(): Promise<Connection> {
  const socket = new ResponsesWS(server.client);
  sockets.push(socket);
  const received: ResponseEvent[] = [];
  const errors: unknown[] = [];
  socket.on("event", (event) => received.push(event as unknown as ResponseEvent));
  socket.on("error", (error) => errors.push(error));
  let taken = 0;
  return {
    socket,
    received,
    errors,
    async response() {
      const ends = /^response\.(completed|incomplete|failed)$/;
      let end = -1;
      await eventually(() => {
        end = received.findIndex(({ type }, at) => at >= taken && ends.test(type));
        return end >= 0;
      }, 10_000);
      // errors of requests that came to no response have no number
      const events = received.slice(taken, end + 1).filter((event) => !("status" in event));
      taken = end + 1;
      return checkEvents(events);
    },
  };
}
const create = (input: string, more: object = {}) => ({
  type: "response.create" as const,
  model: server.model,
  input,
  ...more,
});

test(covers("Responses", "WebSocket: stream", "openai"), async () => {
  const { socket, response } = await connect();
  socket.send(create("say hello"));
  const body = await response();
  expect((await server.client.responses.retrieve(body.id)).output_text).toBe(HELLO);
});

test(covers("Responses", "WebSocket: previous response that is not stored", "openai"), async () => {
  const { socket, response } = await connect();
  socket.send(create("say hello", { store: false }));
  const first = await response();
  socket.send(create("and again, say hello", { store: false, previous_response_id: first.id }));
  expect(await response()).toMatchObject({ status: "completed", previous_response_id: first.id });
  const stored = server.client.responses.retrieve(first.id);
  expect(await failureOf(stored)).toMatchObject({ status: 404 });
});

test(covers("Responses", "WebSocket: long stream", "openai"), async () => {
  const { socket, response } = await connect();
  socket.send(create("count up"));
  const body = await response();
  expect(body.output).toMatchObject([{ content: [{ text: LONG }] }]);
});

test(covers("Responses", "WebSocket: errors", "openai"), async () => {
  const { socket, response, errors } = await connect();
  socket.send(create("say hello", { model: "no-such-model" }));
  await eventually(() => errors.length === 1);
  expect(errors[0]).toMatchObject({ error: { type: "error", status: 404, error: { code: "model_not_found" } } });
  socket.send(create("refuse"));
  await eventually(() => errors.length === 2);
  expect(errors[1]).toMatchObject({ error: { status: expect.any(Number) } });
  socket.send(create("say hello"));
  expect((await response()).status).toBe("completed");
});

test("a request for a socket that is none is refused at once", async () => {
  const answer = await fetch(`${server.gateway.url}/v1/responses`);
  expect([answer.status, answer.headers.get("upgrade")]).toEqual([426, "websocket"]);
});

test("a gateway that stops does not wait for connections that are idle", async () => {
  const own = await startResponses();
  const socket = new ResponsesWS(own.client);
  const closed = new Promise<number>((resolve) => socket.on("close", (code) => resolve(Number(code))));
  await new Promise<void>((resolve) => socket.socket.on("open", () => resolve()));
  const began = performance.now();
  await own.stop();
  expect(performance.now() - began).toBeLessThan(4000);
  expect(await closed).toBe(1001);
});
