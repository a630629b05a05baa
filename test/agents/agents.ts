/** The coding agents: how each is pointed at a gateway, as docs/agents.md tells users to, and asked one thing without a terminal. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";

const TURN_MS = 120_000;

/** Where an agent works. */
export interface Place {
  /** Address of the gateway, without a path. */
  readonly gateway: string;
  readonly key: string;
  readonly model: string;
  /** Tokens that the model takes. */
  readonly contextLength: number;
  /** Empty at first: what the agent keeps is there. */
  readonly home: string;
  /** The project. */
  readonly folder: string;
  /** More environment. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface Agent {
  readonly name: string;
  /** Name of the tool that runs a command in a shell, and of its argument for the command. */
  readonly shell: readonly [tool: string, argument: string];
  /** What it asks of the gateway, all of it, and how that is answered: a request and its status. */
  readonly asks: string;
  version(): Promise<string>;
  /** One turn in the place's session, which the first one begins. Gives the final text; throws with all output when the agent fails. */
  turn(place: Place, prompt: string, isFirst: boolean): Promise<string>;
}

export class AgentError extends Error {
  override readonly name = "AgentError";
}

/** The program in the packages of this platform; the wrappers around them would be made by install scripts, which are off. */
function program(pattern: string): string {
  const [found] = [...new Glob(pattern).scanSync({ cwd: join(import.meta.dir, "node_modules"), absolute: true })];
  if (found === undefined) throw new AgentError(`no ${pattern} for this platform`);
  return found;
}

async function run(command: readonly string[], cwd: string, environment: Record<string, string>): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TURN_MS,
    killSignal: "SIGKILL",
  });
  const [out, err, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new AgentError(`it ended with status ${status}\n${out}\n${err}`);
  return out;
}

const versionOf = async (command: string): Promise<string> =>
  (await run([command, "--version"], import.meta.dir, { HOME: "/nonexistent" })).trim();

const codexProgram = () => program("@openai/codex-*/vendor/*/bin/codex");
const claudeProgram = () => program("@anthropic-ai/claude-code-*/claude");

interface CodexEvent {
  readonly type: string;
  readonly item?: { readonly type: string; readonly text?: string };
}

/** Codex, over HTTP or over the WebSocket of /v1/responses. */
function codex(name: string, webSocket: boolean): Agent {
  const config = ({ gateway, model, contextLength }: Place) => `
model = "${model}"
model_provider = "collie"
model_context_window = ${contextLength}
check_for_update_on_startup = false

[model_providers.collie]
name = "Collie"
base_url = "${gateway}/v1"
env_key = "COLLIE_API_KEY"
wire_api = "responses"
${webSocket ? "supports_websockets = true" : ""}

[features]
plugins = false

[analytics]
enabled = false
`;
  return {
    name,
    shell: ["exec_command", "cmd"],
    asks: webSocket ? "GET /v1/responses 101" : "POST /v1/responses 200",
    version: () => versionOf(codexProgram()),
    async turn(place, prompt, isFirst) {
      const codexHome = join(place.home, ".codex");
      mkdirSync(codexHome, { recursive: true });
      writeFileSync(join(codexHome, "config.toml"), config(place));
      const flags = [
        "--strict-config",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--json",
      ];
      const session = isFirst ? [] : ["resume", "--last"];
      const out = await run([codexProgram(), "exec", ...session, ...flags, prompt], place.folder, {
        HOME: place.home,
        COLLIE_API_KEY: place.key,
        ...place.environment,
      });
      const events = out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as CodexEvent);
      if (!events.some(({ type }) => type === "turn.completed")) throw new AgentError(`no turn was completed\n${out}`);
      const said = events.filter(({ type, item }) => type === "item.completed" && item?.type === "agent_message");
      return said.at(-1)?.item?.text ?? "";
    },
  };
}

/** Claude Code's answer with `--output-format json`. */
interface ClaudeResult {
  readonly is_error: boolean;
  readonly result: string;
}

const claudeCode: Agent = {
  name: "Claude Code",
  shell: ["Bash", "command"],
  asks: "POST /v1/messages 200",
  version: () => versionOf(claudeProgram()),
  async turn(place, prompt, isFirst) {
    const session = isFirst ? [] : ["--continue"];
    const flags = ["--output-format", "json", "--allowedTools", "Bash"];
    const out = await run([claudeProgram(), "-p", ...session, ...flags, "--", prompt], place.folder, {
      HOME: place.home,
      ANTHROPIC_BASE_URL: place.gateway,
      ANTHROPIC_AUTH_TOKEN: place.key,
      ANTHROPIC_MODEL: place.model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: place.model,
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(place.contextLength),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      ...place.environment,
    });
    const answer = JSON.parse(out) as ClaudeResult;
    if (answer.is_error) throw new AgentError(`it says that it failed\n${out}`);
    return answer.result;
  },
};

export const AGENTS: readonly Agent[] = [codex("Codex", false), codex("Codex over a WebSocket", true), claudeCode];
