import { describe, expect, test } from "bun:test";
import { AuthenticationError } from "../../../src/errors.ts";
import { keyCheck } from "../../../src/server/auth.ts";
import { corsHeaders, preflight } from "../../../src/server/cors.ts";
import { clientRequestId, randomId } from "../../../src/server/request-id.ts";

describe("keys", () => {
  const check = keyCheck("k-ü-1");
  const passes = (headers: Record<string, string>) => {
    try {
      check(new Headers(headers));
      return true;
    } catch (error) {
      expect(error).toBeInstanceOf(AuthenticationError);
      return false;
    }
  };

  test.each<[Record<string, string>, boolean]>([
    [{ "x-api-key": "k-ü-1" }, true],
    [{ "x-goog-api-key": "k-ü-1" }, true],
    [{ authorization: "Bearer k-ü-1" }, true],
    [{ authorization: "BEARER  k-ü-1" }, true],
    [{ authorization: "Basic k-ü-1", "x-api-key": "k-ü-1" }, true],
    [{ authorization: "Bearer wrong", "x-api-key": "k-ü-1" }, false],
    [{}, false],
    [{ authorization: "k-ü-1" }, false],
    [{ authorization: "Bearer" }, false],
    [{ authorization: "Bearer " }, false],
    [{ authorization: "Basic k-ü-1" }, false],
    [{ "x-api-key": "" }, false],
    [{ "x-api-key": "k-ü-" }, false],
    [{ "x-api-key": "k-ü-12" }, false],
    [{ "x-api-key": "K-Ü-1" }, false],
  ])("%j: %p", (headers, expected) => {
    expect(passes(headers)).toBe(expected);
  });

  test("without a key everybody passes", () => {
    for (const none of [undefined, ""]) expect(() => keyCheck(none)(new Headers())).not.toThrow();
  });

  test("what is told does not repeat the key", () => {
    const message = (headers: Record<string, string>) => {
      try {
        check(new Headers(headers));
      } catch (error) {
        return (error as Error).message;
      }
      return "";
    };
    expect(message({ "x-api-key": "some-other-key" })).toBe("Incorrect API key provided");
    expect(message({})).toContain("Authorization: Bearer");
  });
});

describe("request ids", () => {
  test("are 24 letters and digits, all different, all letters used", () => {
    const ids = new Set(Array.from({ length: 20_000 }, randomId));
    expect(ids.size).toBe(20_000);
    const counts = new Map<string, number>();
    for (const id of ids) {
      expect(id).toMatch(/^[A-Za-z0-9]{24}$/);
      for (const letter of id) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }
    const mean = (20_000 * 24) / 62;
    expect(counts.size).toBe(62);
    for (const count of counts.values()) expect(Math.abs(count / mean - 1)).toBeLessThan(0.08);
  });

  test("a client's id counts in the order of the names, if it is harmless", () => {
    const names = ["x-request-id", "x-trace-id"];
    const of = (headers: Record<string, string>) => clientRequestId(new Headers(headers), names);
    expect(of({ "x-trace-id": "t", "x-request-id": "r" })).toBe("r");
    expect(of({ "x-trace-id": "t" })).toBe("t");
    expect(of({ "x-other": "o" })).toBeUndefined();
    expect(of({ "x-request-id": "has space", "x-trace-id": "t" })).toBe("t");
    for (const bad of ["", "a b", "ü", "x".repeat(129)]) expect(of({ "x-request-id": bad })).toBeUndefined();
    expect(of({ "x-request-id": "x".repeat(128) })).toHaveLength(128);
  });
});

describe("cross-origin", () => {
  test("every origin without a list, only the listed with one", () => {
    expect(corsHeaders(null, [])).toEqual({});
    expect(corsHeaders("https://a", [])["access-control-allow-origin"]).toBe("*");
    expect(corsHeaders("https://a", ["https://a", "https://b"])["access-control-allow-origin"]).toBe("https://a");
    expect(corsHeaders("https://a.evil", ["https://a"])).toEqual({ vary: "origin" });
    expect(corsHeaders("null", ["https://a"])).toEqual({ vary: "origin" });
  });

  test("a preflight allows what the browser asks for, or nothing", () => {
    const ask = (origin: string, headers?: string) =>
      preflight(
        new Request("http://x/", {
          method: "OPTIONS",
          headers: { origin, ...(headers !== undefined && { "access-control-request-headers": headers }) },
        }),
        ["https://a"],
      );
    expect(ask("https://a", "x-one").headers.get("access-control-allow-headers")).toBe("x-one");
    expect(ask("https://a").headers.get("access-control-allow-headers")).toBe("*");
    expect(ask("https://a").headers.get("access-control-allow-methods")).toContain("POST");
    expect(ask("https://b").headers.get("access-control-allow-methods")).toBeNull();
  });
});
