/** The gateway's answer as `collie explain` reads it. What a newer gateway tells besides is left alone. */
import { Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { RouteReport } from "../fleet/explain.ts";

const workers = t.Array(t.String());

const members = {
  model: t.String(),
  policy: t.String(),
  tokens: t.Number(),
  blockSize: t.Number(),
  blocks: t.Number(),
  chosen: t.String(),
  branch: t.String(),
  candidates: t.Array(
    t.Object({
      id: t.String(),
      url: t.String(),
      role: t.String(),
      state: t.String(),
      excluded: t.Optional(t.String()),
      matchedTokens: t.Number(),
      isExact: t.Boolean(),
      queuedTokens: t.Number(),
      running: t.Number(),
      kvUsage: t.Optional(t.Number()),
      score: t.Optional(t.Number()),
    }),
  ),
  spans: t.Array(t.Object({ fromBlock: t.Number(), toBlock: t.Number(), exact: workers, guessed: workers })),
};

const reportSchema = t.Object({ ...members, decode: t.Optional(t.Object(members)) });

/** Undefined for what is no report. */
export const readReport = (value: unknown): RouteReport | undefined =>
  Value.Check(reportSchema, value) ? (value as RouteReport) : undefined;
