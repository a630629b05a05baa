/** What engines tell of their model and of their server, as SGLang's servers do. */
import { EngineError } from "../engines/engine.ts";
import { NoWorkersError } from "../errors.ts";
import type { Found } from "./door.ts";
import type { Answering } from "./worker-record.ts";

const ASK_MS = 5000;

/** Paths of SGLang's servers, the older name first. */
const PATHS = { model: ["/get_model_info", "/model_info"], server: ["/get_server_info", "/server_info"] } as const;
/** Settings of a server that are not for everybody who may use it. */
const SECRET = /(?:^|_)(?:api_key|password|secret|hf_token)$/i;

/** Of the first worker that serves: what its server tells, or what is known of it since it registered. Throws NoWorkersError. */
export async function told(
  workers: readonly Answering[],
  of: keyof typeof PATHS,
  model: string | undefined,
): Promise<object> {
  const worker = workers.find(
    ({ status, found }) => status === "ready" && (model === undefined || found.models.includes(model)),
  );
  if (worker === undefined) throw new NoWorkersError(model);
  const { found, life } = worker;
  if (life.contact?.page !== undefined) {
    for (const path of PATHS[of]) {
      const page = await life.contact.page(path, ASK_MS).catch((error: unknown) => {
        if (error instanceof EngineError) return undefined;
        throw error;
      });
      const object = page === undefined ? undefined : objectIn(page);
      if (object !== undefined) return object;
    }
  }
  return of === "model" ? modelOf(found) : serverOf(found);
}

/** Without what is secret. */
function objectIn(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json, (key, member: unknown) => (SECRET.test(key) ? undefined : member));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Members of SGLang's answer, as far as they are known, and what else the engine told of its model. */
function modelOf({ facts, models }: Found): object {
  const { labels = {}, vocabSize, contextLength } = facts ?? {};
  return {
    model_path: labels["model_path"] ?? models[0],
    served_model_name: models[0],
    ...valuesOf(labels),
    ...(contextLength && { context_length: contextLength }),
    ...(vocabSize && { vocab_size: vocabSize }),
  };
}

function serverOf(found: Found): object {
  const { facts, dialect, kind } = found;
  const { protocol, dataParallelSize, maxRunningRequests, blockSize, role } = facts ?? {};
  return {
    ...modelOf(found),
    runtime_type: dialect,
    connection_mode: kind,
    worker_type: role,
    ...(protocol && { protocol }),
    ...(dataParallelSize && { dp_size: dataParallelSize }),
    ...(maxRunningRequests && { max_running_requests: maxRunningRequests }),
    ...(blockSize && { page_size: blockSize }),
  };
}

/** Labels are texts; numbers, flags and lists are told as what they are. */
function valuesOf(labels: Readonly<Record<string, string>>): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(labels)) {
    if (SECRET.test(name)) continue;
    values[name] = /^(?:true|false|-?\d{1,15}(?:\.\d+)?|\[.*\])$/s.test(text) ? parsed(text) : text;
  }
  return values;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
