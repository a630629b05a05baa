/** The expected values are those of huggingface_hub 2.4.0 (constants.py); python.test.ts asks it itself where it is there. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hubSettings } from "../../../src/hub/settings.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-hub-settings-"));
afterAll(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, "token"), "hf_home\n");
writeFileSync(join(folder, "other"), " hf_\r\nother ");
writeFileSync(join(folder, "empty"), "\n");

test.each([
  [{ HOME: "/h" }, "/h/.cache/huggingface/hub"],
  [{ HOME: "/h", XDG_CACHE_HOME: "/x" }, "/x/huggingface/hub"],
  [{ HOME: "/h", XDG_CACHE_HOME: "/x", HF_HOME: "/f" }, "/f/hub"],
  [{ HOME: "/h", HF_HOME: "/f", HF_HUB_CACHE: "/c" }, "/c"],
  [{ HOME: "/h", HF_HOME: "/f", HUGGINGFACE_HUB_CACHE: "/old" }, "/old"],
  [{ HOME: "/h", HUGGINGFACE_HUB_CACHE: "/old", HF_HUB_CACHE: "/c" }, "/c"],
  [{ HOME: "/h", HF_HOME: "~/f" }, "/h/f/hub"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell's kind
  [{ HOME: "/h", HF_HOME: "$A/${B}/$C", A: "/a", B: "b" }, "/a/b/$C/hub"],
  [{ HOME: "/h", HF_HUB_CACHE: "~x/c" }, "~x/c"],
  [{}, undefined],
])("the cache of %j", async (environment, cacheDir) => {
  expect((await hubSettings(environment)).cacheDir).toBe(cacheDir);
});

test.each([
  [{ HF_TOKEN: "hf_a" }, "hf_a"],
  [{ HF_TOKEN: " hf_a\r\n" }, "hf_a"],
  [{ HUGGING_FACE_HUB_TOKEN: "hf_old" }, "hf_old"],
  [{ HF_TOKEN: "", HF_HOME: folder }, "hf_home"],
  [{ HF_HOME: folder, HF_TOKEN_PATH: join(folder, "other") }, "hf_other"],
  [{ HF_HOME: folder, HF_TOKEN_PATH: join(folder, "empty") }, undefined],
  [{ HF_HOME: folder, HF_TOKEN_PATH: join(folder, "none") }, undefined],
  [{ HF_HOME: "/no/such" }, undefined],
  [{ HF_TOKEN: "hf_a", HF_HUB_DISABLE_IMPLICIT_TOKEN: "1" }, undefined],
  [{ HF_TOKEN: "hf_a", HF_HUB_DISABLE_IMPLICIT_TOKEN: "0" }, "hf_a"],
  [{ HF_TOKEN: "hf_a", HF_HUB_OFFLINE: "1" }, undefined],
])("the token of %j", async (environment, token) => {
  expect((await hubSettings(environment)).token).toBe(token as string);
});

test.each([
  [{}, false],
  [{ HF_HUB_OFFLINE: "1" }, true],
  [{ HF_HUB_OFFLINE: "Yes" }, true],
  [{ HF_HUB_OFFLINE: "on" }, true],
  [{ HF_HUB_OFFLINE: "TRUE" }, true],
  [{ HF_HUB_OFFLINE: "2" }, false],
  [{ TRANSFORMERS_OFFLINE: "1" }, true],
  [{ HF_HUB_OFFLINE: "", TRANSFORMERS_OFFLINE: "1" }, true],
  [{ HF_HUB_OFFLINE: "0", TRANSFORMERS_OFFLINE: "1" }, false],
])("offline by %j", async (environment, offline) => {
  expect((await hubSettings(environment)).offline).toBe(offline);
});

test("endpoint and time limits", async () => {
  expect(await hubSettings({})).toMatchObject({
    endpoint: "https://huggingface.co",
    etagTimeoutMs: 10_000,
    downloadTimeoutMs: 10_000,
  });
  const given = { HF_ENDPOINT: "https://mirror.example/hf//", HF_HUB_ETAG_TIMEOUT: "3", HF_HUB_DOWNLOAD_TIMEOUT: "60" };
  expect(await hubSettings(given)).toMatchObject({
    endpoint: "https://mirror.example/hf",
    etagTimeoutMs: 3000,
    downloadTimeoutMs: 60_000,
  });
  expect(await hubSettings({ HF_HUB_ETAG_TIMEOUT: "0" })).toMatchObject({ etagTimeoutMs: 10_000 });
});

test.each([
  [{ HF_ENDPOINT: "huggingface.co" }, "HF_ENDPOINT"],
  [{ HF_ENDPOINT: "file:///etc" }, "HF_ENDPOINT"],
  [{ HF_ENDPOINT: "https://user:secret@hub.example" }, "HF_ENDPOINT"],
  [{ HF_HUB_ETAG_TIMEOUT: "soon" }, "HF_HUB_ETAG_TIMEOUT"],
  [{ HF_HUB_DOWNLOAD_TIMEOUT: "-1" }, "HF_HUB_DOWNLOAD_TIMEOUT"],
  [{ HF_TOKEN: "secret with blanks" }, "HF_TOKEN"],
  [{ HF_TOKEN_PATH: folder }, "token"],
])("%j is told by name, without its secret", async (environment, name) => {
  const error = await hubSettings(environment).catch((problem: Error) => problem);
  expect(error).toMatchObject({ name: "HubError", kind: "setting" });
  expect((error as Error).message).toContain(name);
  expect((error as Error).message).not.toContain("secret");
});
