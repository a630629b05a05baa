import { describe, expect, test } from "bun:test";
import { ClientClosedError } from "../../../src/errors.ts";
import { RequestScopes } from "../../../src/server/request-scope.ts";
import { trialScope } from "../../../src/server/trial-scope.ts";

function begin() {
  const client = new AbortController();
  const scopes = new RequestScopes(60);
  const whole = scopes.begin("r", client.signal, "t");
  return { client, scopes, whole, trial: trialScope(whole) };
}

describe("a trial", () => {
  test("that fails leaves the request as it was", () => {
    const { scopes, whole, trial } = begin();
    trial.abort(new ClientClosedError());
    trial.finish();
    expect([trial.signal.aborted, whole.signal.aborted, scopes.size]).toEqual([true, false, 1]);
    whole.finish();
    expect(scopes.size).toBe(0);
  });

  test("that is kept is the request: its end, before or after, is the request's", () => {
    const early = begin();
    early.trial.finish();
    expect(early.scopes.size).toBe(1);
    early.trial.keep();
    expect(early.scopes.size).toBe(0);
    const late = begin();
    late.trial.keep();
    expect(late.scopes.size).toBe(1);
    late.trial.abort(new ClientClosedError());
    expect([late.whole.signal.aborted, late.trial.signal.aborted]).toEqual([true, true]);
    late.trial.finish();
    expect(late.scopes.size).toBe(0);
  });

  test("ends when the client leaves", () => {
    const { client, trial } = begin();
    client.abort();
    expect(trial.signal.reason).toBeInstanceOf(ClientClosedError);
    const gone = new AbortController();
    gone.abort();
    expect(trialScope(new RequestScopes(60).begin("r", gone.signal)).signal.aborted).toBe(true);
  });
});
