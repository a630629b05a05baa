import { describe, expect, test } from "bun:test";
import { routeHints } from "../../../../src/apis/shared/route-hints.ts";

const SESSION = "0f8fad5b-d9cb-469f-a165-70867728950e";
const of = (headers: Record<string, string>, body: unknown = {}) => routeHints(new Headers(headers), body);

describe("hints", () => {
  test("are absent where a request has none, whatever its body is", () => {
    for (const body of [
      {},
      null,
      "text",
      [],
      { metadata: null },
      { metadata: { user_id: 5 } },
      { prompt_cache_key: 3 },
    ])
      expect(of({ "content-type": "application/json" }, body)).toBeUndefined();
    expect(routeHints(undefined, {})).toBeUndefined();
  });

  test("are SMG's headers; what is empty or longer than any key counts as absent, but for a worker that nobody has", () => {
    expect(of({ "x-smg-routing-key": " team-a ", "X-SMG-Target-Worker": "grpc://a:1" })).toEqual({
      routingKey: "team-a",
      target: "grpc://a:1",
      sessionKey: undefined,
    });
    expect(of({ "x-smg-routing-key": "  ", "x-smg-target-worker": " " })).toBeUndefined();
    expect(of({ "x-smg-routing-key": "x".repeat(513) })).toBeUndefined();
    const target = "x".repeat(513);
    expect(of({ "x-smg-target-worker": target })).toMatchObject({ target });
  });

  test.each([
    ["OpenAI's cache key", {}, { prompt_cache_key: SESSION }],
    ["Claude Code's user with JSON in it", {}, { metadata: { user_id: JSON.stringify({ session_id: SESSION }) } }],
    ["its user of earlier releases", {}, { metadata: { user_id: `user_9a_account__session_${SESSION}` } }],
    ["its header", { "x-claude-code-session-id": SESSION }, {}],
    ["Codex's header", { "session-id": SESSION }, {}],
    ["that of earlier releases", { session_id: SESSION }, {}],
    ["and of the first", { conversation_id: SESSION }, {}],
  ])("know a session by %s", (_, headers, body) => {
    expect(of(headers as Record<string, string>, body)?.sessionKey).toBe(SESSION);
  });

  test("of the body come before those of headers; a user without a session is none", () => {
    const header = { "x-claude-code-session-id": "other" };
    expect(of(header, { prompt_cache_key: "mine" })?.sessionKey).toBe("mine");
    expect(of(header, { metadata: { user_id: "user_42" } })?.sessionKey).toBe("other");
    expect(of(header, { metadata: { user_id: "{not json" } })?.sessionKey).toBe("other");
    expect(of({}, { metadata: { user_id: "user_42" } })).toBeUndefined();
  });
});
