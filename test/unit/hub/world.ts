/** A stand-in hub, an empty cache of its own, and what a model repository holds. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fetchModelFiles, type ModelFilesOptions } from "../../../src/hub/model-files.ts";
import { StandInHub, type StandInRepository, textFile } from "./stand-in.ts";

export const COMMIT = "0123456789abcdef0123456789abcdef01234567";
export const NEXT_COMMIT = "fedcba9876543210fedcba9876543210fedcba98";
export const ID = "org/name";
/** Names that `repository()` holds of a model's files, in order. */
export const NAMES = [
  "additional_chat_templates/tools.jinja",
  "chat_template.jinja",
  "config.json",
  "tokenizer.json",
  "tokenizer_config.json",
];

export function repository(): StandInRepository {
  return {
    commit: COMMIT,
    files: {
      "README.md": textFile("# read me"),
      "model.safetensors": textFile("weights"),
      "1_Pooling/config.json": textFile("{}"),
      "original/tokenizer.model": textFile("another"),
      "config.json": textFile('{"vocab_size": 7}'),
      "tokenizer_config.json": textFile("{}"),
      "chat_template.jinja": textFile("{{ messages }}"),
      "additional_chat_templates/tools.jinja": textFile("{{ tools }}"),
      "tokenizer.json": { bytes: new TextEncoder().encode("ü".repeat(100_000)), large: true },
    },
  };
}

export class World {
  readonly folder = mkdtempSync(join(tmpdir(), "collie-hub-"));
  readonly hub = new StandInHub();
  /** Lines of level and message. */
  readonly log: string[] = [];
  readonly environment: Record<string, string | undefined> = { HOME: this.folder, HF_ENDPOINT: this.hub.url };

  constructor() {
    this.hub.repositories[ID] = repository();
  }

  get cache(): string {
    return join(this.folder, ".cache", "huggingface", "hub");
  }

  get model(): string {
    return join(this.cache, "models--org--name");
  }

  async fetch(source = ID, more: Partial<ModelFilesOptions> = {}): Promise<Map<string, Uint8Array>> {
    const say = (level: string) => (message: string, fields: object | undefined) =>
      void this.log.push(
        `${level} ${message} ${JSON.stringify(fields, (_, value) => (value instanceof Error ? value.message : value))}`,
      );
    const log = { info: say("info"), warn: say("warn") };
    return new Map(await fetchModelFiles(source, { environment: this.environment, log, pausesMs: [5, 10], ...more }));
  }

  /** What a fetch fails with; throws if it does not. */
  async failure(source = ID, more: Partial<ModelFilesOptions> = {}): Promise<Error & { kind?: string }> {
    return this.fetch(source, more).then(
      (files) => {
        throw new Error(`it worked: ${[...files.keys()]}`);
      },
      (error: Error) => error,
    );
  }

  async close(): Promise<void> {
    await this.hub.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
