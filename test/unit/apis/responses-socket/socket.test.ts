import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "../../../../src/engines/engine.ts";
import { findChatTemplate } from "../../../../src/template/model-template.ts";
import { until } from "../../../support/until.ts";
import { decodeAll, encode } from "../../generation/demo-tokenizer.ts";
import { type Gateway, MODEL, startGateway } from "../../server/gateway.ts";
import { OSLO, play } from "../../server/tool-chat.ts";
import { answered, comparable, whole } from "../responses/http.ts";
import { engineCall, finish, gatewayOver, get, retrieved, say } from "../responses-store/support.ts";
import { connect, ENDS } from "./client.ts";

let gateway: Gateway;
const answering = (text = "Hello"): Gateway => {
  gateway = gatewayOver(undefined, (call) => play([text], call));
  return gateway;
};
const silent = (): Gateway => {
  gateway = gatewayOver();
  return gateway;
};
afterEach(async () => {
  await gateway.stop();
});

const create = (more: object = {}) => ({ type: "response.create", model: MODEL, input: "Hi", ...more });
const promptOf = (n: number): string => decodeAll([...gateway.engine.calls[n]!.request.tokenIds], false);
const idle = async (): Promise<void> => {
  await until(() => gateway.scopes.size === 0, "the end of all requests");
};

describe("responses over a WebSocket", () => {
  test("are those of HTTP, event for event; the response is stored", async () => {
    answering("<think>\nhm\n</think>\n\nHello");
    const client = await connect(gateway);
    client.send(create());
    const body = await client.response();
    expect(comparable(body)).toEqual(comparable(await whole(gateway, {})));
    expect(await retrieved(gateway, body.id)).toEqual(body);
    client.send(create({ previous_response_id: body.id, input: "And?" }));
    await client.response();
    expect(promptOf(2)).toContain("And?");
    client.close();
    await idle();
  });

  test("go on from one that was not stored, on the same connection only", async () => {
    answering();
    const client = await connect(gateway);
    client.send(create({ store: false, input: "one" }));
    const first = await client.response();
    client.send(create({ store: false, input: "two", previous_response_id: first.id }));
    const second = await client.response();
    client.send(create({ store: false, input: "three", previous_response_id: second.id }));
    await client.response();
    const prompt = promptOf(2);
    const places = ["one", "Hello", "two", "three"].map((word) => prompt.indexOf(word));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
    expect((await get(gateway, second.id)).status).toBe(404);
    const other = await connect(gateway);
    other.send(create({ previous_response_id: second.id }));
    expect(await other.next()).toMatchObject({
      type: "error",
      status: 404,
      error: { code: "previous_response_not_found", param: "previous_response_id", type: "invalid_request_error" },
    });
  });

  test("of one lane come one after the other, of two side by side", async () => {
    silent();
    const client = await connect(gateway);
    client.send(create({ stream_id: "a", input: "a1" }));
    client.send(create({ stream_id: "a", input: "a2" }));
    client.send(create({ stream_id: "b", input: "b1" }));
    await engineCall(gateway, 1);
    await Bun.sleep(50);
    expect(gateway.engine.calls.length).toBe(2);
    const [a, b] = promptOf(0).includes("a1") ? [0, 1] : [1, 0];
    say(gateway.engine.calls[b]!, "B");
    finish(gateway.engine.calls[b]!);
    expect((await client.response("b")).status).toBe("completed");
    say(gateway.engine.calls[a]!, "A");
    finish(gateway.engine.calls[a]!);
    expect((await client.response("a")).status).toBe("completed");
    finish(await engineCall(gateway, 2));
    await client.response("a");
    expect(promptOf(2)).toContain("a2");
  });

  test("without generate the model is not asked, and the response is gone on from", async () => {
    answering();
    const client = await connect(gateway);
    client.send(create({ generate: false, input: "warm", store: false }));
    const warm = await client.response();
    expect(warm).toMatchObject({ status: "completed", output: [], usage: { output_tokens: 0 } });
    expect(gateway.engine.calls.length).toBe(0);
    client.send(create({ previous_response_id: warm.id, input: "go" }));
    await client.response();
    expect(promptOf(0).indexOf("warm")).toBeGreaterThan(0);
    client.send(create({ generate: false, input: "kept" }));
    const kept = await client.response();
    expect(await retrieved(gateway, kept.id)).toEqual(kept);
  });

  test("without generate, before the user has spoken, in a template that takes no such conversation", async () => {
    const file = join(import.meta.dir, "../../../golden/template/chat_templates/tools_in_user.jinja");
    const template = findChatTemplate(new Map([["chat_template.jinja", readFileSync(file)]]));
    gateway = gatewayOver(undefined, (call) => play(["Hello"], call), { template });
    const client = await connect(gateway);
    const tools = [{ type: "function", name: "shell", parameters: { type: "object" } }];
    const input = [{ role: "developer", content: "Be brief." }];
    client.send(create({ generate: false, store: false, tools, input }));
    const warm = await client.response();
    expect(warm).toMatchObject({ status: "completed", output: [], usage: { input_tokens: 0 } });
    client.send(create({ previous_response_id: warm.id, store: false, tools, input: "go" }));
    expect((await client.response()).status).toBe("completed");
    expect(promptOf(0)).toMatch(/Be brief.*"shell".*go/s);
    client.send(create({ tools, input }));
    expect(await client.next()).toMatchObject({ type: "error", status: 400 });
    client.send(create({ generate: false, tools, input: [{ role: "user", content: [{ type: "input_image" }] }] }));
    expect(await client.next()).toMatchObject({ type: "error", status: 400 });
  });

  test("mistakes are told, with their lane; the connection lasts", async () => {
    answering();
    const client = await connect(gateway);
    for (const [message, error, lane] of [
      ["{", { code: "json_parse_error" }, undefined],
      ["[1]", { code: "json_parse_error" }, undefined],
      [{ type: "response.cancel" }, { param: "type" }, undefined],
      [create({ model: undefined, stream_id: "x" }), { param: "model" }, "x"],
      [create({ stream_id: 3 }), { param: "stream_id" }, undefined],
      [create({ temperature: 9, stream_id: "y" }), { param: "temperature" }, "y"],
      [create({ background: true }), { param: "background" }, undefined],
      [create({ model: "no", stream_id: "z" }), { code: "model_not_found" }, "z"],
      [
        create({ input: [{ role: "user", content: [{ type: "input_image" }] }] }),
        { param: "input[0].content[0].type" },
        undefined,
      ],
    ] as const) {
      client.send(message);
      const told = await client.next();
      expect(told).toMatchObject({ type: "error", status: expect.any(Number), error });
      expect(told.stream_id).toBe(lane);
    }
    client.send(create());
    await client.response();
    await idle();
  });

  test("a large one is read in its turn: those behind it wait; the connection lasts", async () => {
    answering();
    const client = await connect(gateway);
    const filler = Array.from({ length: 50_000 }, (_, i) => `text ${i}`);
    client.send(create({ temperature: 9, stream_id: "large", filler }));
    client.send(JSON.stringify(create({ filler })).slice(0, -1));
    client.send(create({ temperature: 9, stream_id: "small" }));
    for (const lane of ["large", undefined, "small"])
      expect(await client.next()).toMatchObject({ type: "error", status: 400, ...(lane && { stream_id: lane }) });
    client.send(create({ filler }));
    await client.response();
    await idle();
  });

  test("an engine that fails: before the first event an error, after it a failed response", async () => {
    silent();
    const client = await connect(gateway);
    client.send(create());
    (await engineCall(gateway)).end(new EngineError("invalid", "no such thing"));
    expect(await client.next()).toMatchObject({ type: "error", status: 400 });
    client.send(create());
    const call = await engineCall(gateway, 1);
    say(call, "Half");
    call.end(new EngineError("unavailable", "gone"));
    expect((await client.response()).status).toBe("failed");
  });

  test("end with their client", async () => {
    silent();
    const client = await connect(gateway);
    client.send(create());
    client.send(create());
    const call = await engineCall(gateway);
    say(call, "Half");
    await client.until("response.output_text.delta");
    client.close();
    await idle();
    expect([call.cancelled, gateway.engine.calls.length]).toEqual([1, 1]);
  });

  test("a client that does not read pauses the engine", async () => {
    gateway = gatewayOver(undefined, undefined, { contextLength: 1 << 28 });
    let read = 0;
    const data = (_: unknown, bytes: Uint8Array) => void (read += bytes.length);
    const socket = await Bun.connect({ hostname: "127.0.0.1", port: gateway.port, socket: { data } });
    socket.write(
      "GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    await until(() => read > 0, "the upgrade");
    const text = Buffer.from(JSON.stringify(create()));
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]));
    const call = await engineCall(gateway);
    socket.pause();
    const ids = encode("word ".repeat(40_000));
    for (let i = 0; call.paused === 0 && i < 150; i++) {
      call.chunk(ids).idle();
      await Bun.sleep(2);
    }
    expect(call.paused).toBeGreaterThan(0);
    expect(call.resumed).toBe(0);
    socket.resume();
    await until(() => call.resumed > 0, "resume");
    socket.end();
    await idle();
  }, 20_000);

  test("a key is needed, and no more work is taken by a gateway that stops", async () => {
    gateway = startGateway(["--api-key", "secret"]);
    const upgrade = (headers: Record<string, string>) =>
      fetch(`${gateway.url}/v1/responses`, {
        headers: { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13", ...headers },
      });
    expect((await answered(await upgrade({}), 401))["error"]).toMatchObject({ code: "invalid_api_key" });
    await answered(await upgrade({ authorization: "Bearer wrong" }), 401);
    await answered(await upgrade({ authorization: "Bearer secret" }), 400); // no key of a WebSocket
    const busy = await connect(gateway, { authorization: "Bearer secret" });
    const quiet = await connect(gateway, { authorization: "Bearer secret" });
    busy.send(create());
    const call = await engineCall(gateway);
    gateway.draining = true;
    gateway.socket.drain();
    expect((await quiet.closed).code).toBe(1001);
    busy.send(create());
    expect(await busy.next()).toMatchObject({ type: "error", status: 503, error: { code: "shutting_down" } });
    say(call, "Hello");
    finish(call);
    await busy.response();
    expect((await busy.closed).code).toBe(1001);
    await answered(await upgrade({ authorization: "Bearer secret" }), 503);
  });
});

test("pages of origins that are not allowed get no connection", async () => {
  gateway = startGateway(["--cors-allowed-origins", "https://ours.example"]);
  const upgrade = (origin: string) =>
    fetch(`${gateway.url}/v1/responses`, {
      headers: { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13", origin },
    });
  expect((await answered(await upgrade("https://theirs.example"), 403))["error"]).toMatchObject({
    code: "origin_not_allowed",
    type: "permission_error",
  });
  await answered(await upgrade("https://ours.example"), 400); // no key of a WebSocket
  const client = await connect(gateway, { origin: "https://ours.example" });
  client.close();
  await client.closed;
});

describe("steering", () => {
  test("what the user says meanwhile is said to the model next, by itself", async () => {
    silent();
    const client = await connect(gateway);
    client.send(create({ stream_id: "a", instructions: "Be brief" }));
    const call = await engineCall(gateway);
    say(call, "One");
    const [created] = await client.until("response.output_text.delta");
    const id = created!.response!.id;
    client.send({ type: "response.steer", previous_response_id: id, input: "Stop at two" });
    const [accepted] = await client.until("response.steer.accepted");
    expect(accepted).toMatchObject({
      steer: { id: expect.stringMatching(/^steer_/), previous_response_id: id },
      stream_id: "a",
    });
    client.send({
      type: "response.steer",
      previous_response_id: id,
      input: [{ role: "user", content: [{ type: "input_text", text: "or three" }] }],
    });
    await client.until("response.steer.accepted");
    finish(call);
    await client.until(...ENDS);
    finish(await engineCall(gateway, 1));
    const next = await client.response("a");
    expect(next).toMatchObject({ previous_response_id: id, instructions: "Be brief" });
    const prompt = promptOf(1);
    const places = ["Be brief", "Hi", "One", "Stop at two", "or three"].map((word) => prompt.indexOf(word));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    client.send({ type: "response.steer", previous_response_id: id, input: "late" });
    expect(await client.next()).toMatchObject({
      type: "response.steer.failed",
      error: { code: "response_already_completed", type: "invalid_request_error" },
      steer: { input: "late", previous_response_id: id },
    });
    await idle();
  });

  test("results of calls are needed first; then it is said with them", async () => {
    silent();
    const client = await connect(gateway);
    const tool = {
      type: "function",
      name: "get_weather",
      parameters: { type: "object", properties: {} },
      strict: null,
    };
    client.send(create({ tools: [tool] }));
    const call = await engineCall(gateway);
    say(call, OSLO);
    const [created] = await client.until("response.output_item.added");
    const id = created!.response!.id;
    client.send({ type: "response.steer", previous_response_id: id, input: "In Celsius" });
    await client.until("response.steer.accepted");
    finish(call);
    const ended = await client.until(...ENDS);
    const output = ended.at(-1)!.response!.output[0] as unknown as { call_id: string };
    expect(await client.next()).toMatchObject({
      type: "response.steer.pending",
      reason: "waiting_for_required_input",
      required_input: [{ type: "function_call_output", call_id: output.call_id, name: "get_weather" }],
      steer: { previous_response_id: id },
    });
    const result = { type: "function_call_output", call_id: output.call_id, output: "12 degrees" };
    client.send(create({ previous_response_id: id, input: [result], tools: [tool] }));
    finish(await engineCall(gateway, 1));
    await client.response();
    expect(promptOf(1)).toContain("In Celsius");
    expect(promptOf(1)).toContain("12 degrees");
  });

  test("what cannot be said is given back", async () => {
    silent();
    const client = await connect(gateway);
    const steer = async (previous_response_id: string, input: unknown) => {
      client.send({ type: "response.steer", previous_response_id, input });
      return (await client.until("response.steer.failed", "response.steer.accepted")).at(-1);
    };
    expect(await steer("resp_no", "x")).toMatchObject({ error: { code: "response_not_found" } });
    client.send(create());
    const call = await engineCall(gateway);
    say(call, "One");
    const [created] = await client.until("response.output_text.delta");
    const id = created!.response!.id;
    for (const input of ["", [], [{ role: "system", content: "x" }], 3])
      expect(await steer(id, input)).toMatchObject({ error: { code: "invalid_input" }, steer: { input } });
    const accepted = await steer(id, "x");
    for (let n = 0; n < 15; n++) expect(await steer(id, "x")).toMatchObject({ type: "response.steer.accepted" });
    expect(await steer(id, "x")).toMatchObject({ error: { code: "too_many_pending_steers" } });
    call.end(new EngineError("unavailable", "gone"));
    await client.until("response.failed");
    expect(await client.next()).toMatchObject({
      type: "response.steer.failed",
      error: { code: "successor_creation_failed" },
      steer: { id: accepted!.steer!.id, input: "x" },
    });
    await idle();
  });
});
