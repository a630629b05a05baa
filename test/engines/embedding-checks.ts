/** A real embedding model: the gateway in front of vLLM, against transformers with the same model and no engine at all. */
import { join } from "node:path";
import type { CaseResult } from "./results.ts";
import { enginesFolder, startGateway, startVllm } from "./servers.ts";

export const EMBEDDING_MODEL = "minilm";
const CONTEXT = 256;
/** Numbers differ by no more than this: vLLM and transformers add in other orders, in single precision. */
const TOLERANCE = 2e-6;

/** Texts, and the number of tokens that they are cut to. */
const TEXTS: readonly (readonly [text: string, most: number | null])[] = [
  ["A man is eating food.", null],
  ["A man eats a meal.", null],
  ["The girl is carrying a baby.", null],
  ["Ünïcödé 東京 is the capital of Japan 🙂", null],
  ["  Mixed   CASE, punctuation!! and tabs\t.", null],
  ["unaffable antidisestablishmentarianism [MASK] [SEP]", null],
  ["one word after the other ".repeat(40), null],
  ["one word after the other ".repeat(100), 256],
  ["The quick brown fox jumps over the lazy dog.", 7],
  ["The quick brown fox jumps over the lazy dog.", 3],
];

interface Reference {
  readonly vectors: readonly (readonly number[])[];
  readonly counts: readonly number[];
}

function reference(): Reference {
  const { stdout, stderr, exitCode } = Bun.spawnSync(
    [
      join(enginesFolder, "vllm", "bin", "python"),
      join(import.meta.dir, "embedding_reference.py"),
      join(enginesFolder, EMBEDDING_MODEL),
    ],
    { stdin: Buffer.from(JSON.stringify(TEXTS)) },
  );
  if (exitCode !== 0) throw new Error(`transformers failed: ${stderr.toString().slice(-500)}`);
  return JSON.parse(stdout.toString()) as Reference;
}

interface Answer {
  readonly status: number;
  readonly body: {
    readonly data?: readonly { readonly embedding: number[] | string }[];
    readonly results?: readonly { readonly index: number; readonly score: number }[];
    readonly usage?: { readonly prompt_tokens: number };
    readonly error?: { readonly message: string; readonly code: string };
  };
}

async function post(url: string, path: string, body: object): Promise<Answer> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: EMBEDDING_MODEL, ...body }),
  });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

function differences(ours: readonly number[], theirs: readonly number[]): string[] {
  if (ours.length !== theirs.length) return [`${ours.length} numbers, expected ${theirs.length}`];
  const most = Math.max(...ours.map((value, i) => Math.abs(value - theirs[i]!)));
  return most <= TOLERANCE ? [] : [`numbers differ by up to ${most}, cosine ${dot(ours, theirs)}`];
}

function decoded(base64: string): number[] {
  const bytes = Buffer.from(base64, "base64");
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}

async function checks(url: string): Promise<CaseResult[]> {
  const expected = reference();
  const results: CaseResult[] = [];
  const add = (name: string, faults: readonly string[]) =>
    results.push({ name: `MiniLM: ${name}`, faults, note: undefined });

  for (const [i, [text, most]] of TEXTS.entries()) {
    const { status, body } = await post(url, "/v1/embeddings", {
      input: text,
      ...(most !== null && { truncate_prompt_tokens: most }),
    });
    const counted = body.usage?.prompt_tokens;
    add(`vector of ${JSON.stringify(text.slice(0, 40))}${most === null ? "" : ` cut to ${most} tokens`}`, [
      ...(status === 200 ? differences(body.data![0]!.embedding as number[], expected.vectors[i]!) : [`${status}`]),
      ...(counted === expected.counts[i] ? [] : [`${counted} tokens, expected ${expected.counts[i]}`]),
    ]);
  }

  const [eating, meal, baby] = await Promise.all(
    TEXTS.slice(0, 3).map(async ([input]) => {
      const { body } = await post(url, "/v1/embeddings", { input });
      return body.data![0]!.embedding as number[];
    }),
  );
  const [near, far] = [dot(eating!, meal!), dot(eating!, baby!)];
  add("sentences that mean the same are near, others far", near > 0.9 && far < 0.1 ? [] : [`${near} and ${far}`]);

  const whole = TEXTS.flatMap(([text, most], i) => (most === null ? [{ text, vector: expected.vectors[i]! }] : []));
  const many = Array.from({ length: 100 }, (_, i) => whole[i % whole.length]!);
  const batch = await post(url, "/v1/embeddings", { input: many.map(({ text }) => text), encoding_format: "base64" });
  add(
    "100 texts at once, in order, as base64",
    many.flatMap(({ vector }, i) => differences(decoded(batch.body.data![i]!.embedding as string), vector)),
  );

  const [query, ...documents] = whole as [(typeof whole)[0], ...typeof whole];
  const ranked = await post(url, "/rerank", { query: query.text, documents: documents.map(({ text }) => text) });
  const scores = documents.map(({ vector }, index) => ({ index, score: dot(query.vector, vector) }));
  scores.sort((a, b) => b.score - a.score);
  add(
    "rerank sorts by transformers' cosines",
    scores.flatMap(({ index, score }, i) => {
      const got = ranked.body.results![i]!;
      return got.index === index && Math.abs(got.score - score) < 1e-5
        ? []
        : [`place ${i}: document ${got.index} with ${got.score}, expected ${index} with ${score}`];
    }),
  );

  const refused = async (name: string, path: string, body: object, words: string) => {
    const answer = await post(url, path, body);
    const isRight = answer.status === 400 && answer.body.error?.message.includes(words) === true;
    add(name, isRight ? [] : [`${answer.status} ${JSON.stringify(answer.body).slice(0, 150)}`]);
  };
  await refused("a text that is too long", "/v1/embeddings", { input: "word ".repeat(300) }, "302 tokens");
  await refused("a smaller size", "/v1/embeddings", { input: "a", dimensions: 64 }, "not trained");
  await refused("labels", "/v1/classify", { input: "a" }, "no labels");
  await refused("a chat", "/v1/chat/completions", { messages: [{ role: "user", content: "a" }] }, "gives vectors");
  return results;
}

/** Starts the engine with the model and a gateway, and compares. */
export async function embeddingChecks(): Promise<CaseResult[]> {
  const engine = await startVllm("grpc", EMBEDDING_MODEL, CONTEXT, ["--runner", "pooling"]);
  try {
    const gateway = await startGateway(engine.url);
    try {
      return await checks(gateway.url);
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
}
