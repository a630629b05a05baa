/**
 * The store in Redis or Valkey (tested with Redis 7.0). How durable an acknowledged write is, the server's `appendonly` and
 * `appendfsync` say. One connection a thread; what several requests ask for goes out together.
 */
import { HistorySetupError, HistoryUnavailableError } from "../errors.ts";
import type { SchemaSetting } from "../schema.ts";
import type { HistoryStore } from "../store.ts";
import { type ScriptName, scriptsOf } from "./scripts.ts";
import { redisStore, type Script } from "./store.ts";

export interface RedisSetting {
  readonly url: string;
  readonly schema?: SchemaSetting;
  readonly connectTimeoutSecs: number;
}

/** Form of what is stored; a store that a newer program has used is refused. */
const VERSION = 1;

/** Connects. Throws `HistorySetupError` or `HistoryUnavailableError`. */
export async function openRedis(setting: RedisSetting): Promise<HistoryStore> {
  const schema = setting.schema ?? {};
  const connectionTimeout = setting.connectTimeoutSecs * 1000;
  // Bun 1.4.5: a client that tries again does not say why it was refused
  await attempt(setting.url, { connectionTimeout, maxRetries: 0 }, (redis) => redis.send("PING", []));
  return attempt(
    setting.url,
    // a request that comes while the server is away is told so at once
    { connectionTimeout, enableOfflineQueue: false, maxRetries: 1_000_000 },
    async (redis) => {
      await redis.connect();
      const run = scriptRunner(redis, schema);
      const version = Number(await run.openHistory("", VERSION));
      if (version > VERSION)
        throw new HistorySetupError(
          `the history has version ${version}, made by a newer program; this one knows ${VERSION}`,
        );
      return redisStore(redis, run, schema);
    },
    true,
  );
}

/** What `use` gives; the client is closed after it, or if it fails. */
async function attempt<T>(
  url: string,
  options: Bun.RedisOptions,
  use: (redis: Bun.RedisClient) => Promise<T>,
  keep = false,
): Promise<T> {
  const redis = new Bun.RedisClient(url, options);
  try {
    const value = await use(redis);
    if (!keep) redis.close();
    return value;
  } catch (error) {
    redis.close();
    if (error instanceof HistorySetupError || error instanceof HistoryUnavailableError) throw error;
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
    if (code === "ERR_REDIS_AUTHENTICATION_FAILED" || code === "ERR_REDIS_SERVER_ERROR")
      throw new HistorySetupError(`Redis refused the history: ${message}`);
    throw new HistoryUnavailableError(error);
  }
}

function scriptRunner(redis: Bun.RedisClient, schema: SchemaSetting): Readonly<Record<ScriptName, Script>> {
  const owner = schema.owner === undefined ? "" : `${schema.owner}:`;
  const runners = Object.entries(scriptsOf(schema)).map(([name, text]): [string, Script] => {
    const sha = new Bun.CryptoHasher("sha1").update(text).digest("hex");
    return [
      name,
      async (tenant, ...args) => {
        const given = ["0", owner, tenant, ...args.map(String)];
        try {
          return await redis.send("EVALSHA", [sha, ...given]);
        } catch (error) {
          if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT"))
            throw new HistoryUnavailableError(error);
        }
        try {
          return await redis.send("EVAL", [text, ...given]);
        } catch (error) {
          throw new HistoryUnavailableError(error);
        }
      },
    ];
  });
  return Object.fromEntries(runners) as Record<ScriptName, Script>;
}
