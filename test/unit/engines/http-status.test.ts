import { describe, expect, test } from "bun:test";
import { statusError } from "../../../src/engines/http/status.ts";
import { outcomeOf } from "../../../src/fleet/dispatch/outcome.ts";

describe("what the status of an HTTP worker says of it", () => {
  // 401 and 403 refuse the gateway's own key, which no client has chosen.
  for (const status of [400, 404, 405, 408, 409, 413, 418, 422, 429])
    test(`${status} is no mark against the worker`, () => {
      expect(outcomeOf(statusError(status, "{}"))).toBe("neutral");
    });
  for (const status of [401, 403, 500, 502, 503, 504])
    test(`${status} is`, () => {
      expect(outcomeOf(statusError(status, "{}"))).toBe("failure");
    });
});
