/** The files of a model by what an engine says of it, for engines that send none themselves. */
import { existsSync } from "node:fs";
import { jsonFile } from "../tokenizer/model-files.ts";
import { HubError } from "./hub-error.ts";
import { fetchModelFiles, type ModelFilesOptions } from "./model-files.ts";
import { parseRepository, repositoryOfCachePath, repositoryText } from "./source.ts";

type Files = ReadonlyMap<string, Uint8Array>;

/** What an engine tells of its model. */
export interface ReportedModel {
  /** A folder of the engine's machine, or a repository. */
  readonly modelPath: string;
  /** Where its tokenizer lies, if elsewhere; else empty. */
  readonly tokenizerPath: string;
  /** 0: unknown. */
  readonly vocabSize: number;
}

/** Files that decide ids: of a tokenizer that takes another's place, none of the other's may stay. */
const DECIDES_IDS =
  /^(?:(?:tokenizer|tekken|vocab|added_tokens|special_tokens_map)\.json|merges\.txt|.+\.(?:model|tiktoken))$/;
const OF_THE_MODEL = ["config.json", "generation_config.json"];

/**
 * Gives the files of a model that an engine names: of a folder that is here, too, or of the repository `org/name` that the path is or was
 * downloaded from. Throws `HubError` or `TokenizerError` naming the path.
 */
export async function fetchReportedModel(reported: ReportedModel, options: ModelFilesOptions): Promise<Files> {
  const { modelPath, tokenizerPath } = reported;
  const model = await fetchModelFiles(reportedSource(modelPath), options);
  checkVocabulary(model, reported);
  if (!tokenizerPath || tokenizerPath === modelPath) return model;
  return withTokenizerOf(model, await fetchModelFiles(reportedSource(tokenizerPath), options));
}

/** A path of an engine as one to look for here. */
function reportedSource(path: string): string {
  if (existsSync(path)) return path;
  const repository = repositoryOfCachePath(path) ?? (path.includes("/") ? parseRepository(path) : undefined);
  if (repository !== undefined) return repositoryText(repository);
  throw new HubError(
    "missing",
    `the engine's path ${JSON.stringify(path)} is no folder here, and no repository (org/name)`,
  );
}

/** A relative folder of an engine may look like a repository, of somebody else. */
function checkVocabulary(files: Files, { modelPath, vocabSize }: ReportedModel): void {
  const config = jsonFile(files, "config.json") ?? {};
  const nested = (config["text_config"] ?? {}) as Record<string, unknown>;
  const size = config["vocab_size"] ?? nested["vocab_size"];
  if (typeof size === "number" && vocabSize > 0 && size !== vocabSize)
    throw new HubError(
      "broken",
      `${modelPath} has a vocabulary of ${size} tokens, the engine's model one of ${vocabSize}: they are not the same`,
    );
}

/** A model's files with the tokenizer (and the template, if there is one) of another place. */
export function withTokenizerOf(model: Files, tokenizer: Files): Map<string, Uint8Array> {
  const files = new Map([...model].filter(([name]) => !DECIDES_IDS.test(name)));
  for (const [name, bytes] of tokenizer) if (!OF_THE_MODEL.includes(name) || !model.has(name)) files.set(name, bytes);
  return files;
}
