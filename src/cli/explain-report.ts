/** The gateway's answer as `collie explain` reads it. What a newer gateway tells besides is left alone. */
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const workers = t.Array(t.String());

const reportSchema = t.Object({
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
      kvUsage: t.Optional(t.Union([t.Number(), t.Null()])),
      score: t.Optional(t.Union([t.Number(), t.Null()])),
    }),
  ),
  spans: t.Array(t.Object({ fromBlock: t.Number(), toBlock: t.Number(), exact: workers, guessed: workers })),
});

export type Report = Static<typeof reportSchema>;
export type ReportedWorker = Report["candidates"][number];

/** Undefined for what is no report. */
export const readReport = (value: unknown): Report | undefined =>
  Value.Check(reportSchema, value) ? value : undefined;
