import type { OptionTable } from "./option.ts";

/** Settings of what `collie serve` keeps for clients. */
export const historyOptions = {
  historyUrl: {
    flag: "history-url",
    type: "string",
    secret: true,
    group: "History",
    help: "Where responses and conversations are kept: sqlite:///path, postgres://…, redis://… (Valkey too), memory: or none (default: history.db in the state directory).",
  },
  historyBackend: {
    flag: "history-backend",
    type: "enum",
    values: ["sqlite", "memory", "none", "postgres", "redis"],
    group: "History",
    help: "The same by SMG's names; postgres and redis take their URL from the settings below.",
  },
  postgresDbUrl: {
    flag: "postgres-db-url",
    type: "string",
    secret: true,
    group: "History",
    help: "PostgreSQL to use with --history-backend postgres.",
  },
  postgresPoolMaxSize: {
    flag: "postgres-pool-max-size",
    aliases: ["postgres-pool-max"],
    type: "integer",
    default: 16,
    min: 1,
    max: 10_000,
    group: "History",
    help: "Most connections to PostgreSQL, of all serving threads together; each has one at least.",
  },
  redisUrl: {
    flag: "redis-url",
    type: "string",
    secret: true,
    group: "History",
    help: "Redis or Valkey to use with --history-backend redis.",
  },
  historyRetentionDays: {
    flag: "history-retention-days",
    aliases: ["redis-retention-days"],
    type: "integer",
    default: 30,
    min: -1,
    max: 36_500,
    group: "History",
    help: "Days after which what was kept is removed; -1 keeps it.",
  },
  schemaConfig: {
    flag: "schema-config",
    type: "string",
    group: "History",
    help: "YAML file with other names for the tables and columns, in SMG's form.",
  },
  sealingKey: {
    flag: "sealing-key",
    type: "string",
    secret: true,
    group: "History",
    help: "Key that seals reasoning which clients keep for us, the same for all gateways that serve them (default: made once, in the state directory).",
  },
} as const satisfies OptionTable;
