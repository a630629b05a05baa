/** Writes calls in the format of each family, as its template does. */
export type Arguments = Readonly<Record<string, unknown>>;
export type Call = readonly [name: string, args: Arguments];

export interface Writer {
  /** Name of the parser. */
  readonly parser: string;
  readonly label?: string;
  /** All calls of an answer. */
  write(calls: readonly Call[]): string;
  /** A string that holds the format's own end marker. */
  readonly trap: string;
  /** Text may not stand before the calls. */
  readonly onlyAtStart?: boolean;
  readonly oneCall?: boolean;
  /** Calls of undeclared tools are found: always by default, only at the begin, or never. */
  readonly unknown?: "atStart" | "never";
  /** What the template puts between text and the block. */
  readonly before?: string;
  /** What can be known of a value that no schema tells of, where that is less than was written. */
  readonly reads?: (value: unknown) => unknown;
}

const json = JSON.stringify;
const spaced = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return json(value);
  return `{${Object.entries(value)
    .map(([key, item]) => `${json(key)}: ${spaced(item)}`)
    .join(", ")}}`;
};
const object =
  (key: string) =>
  ([name, args]: Call) =>
    `{"name": ${json(name)}, ${json(key)}: ${spaced(args)}}`;
const list = (key: string) => (calls: readonly Call[]) => `[${calls.map(object(key)).join(", ")}]`;
/** A value as tagged formats write it: strings as they are. */
const bare = (value: unknown): string => (typeof value === "string" ? value : spaced(value));
const entries = (args: Arguments) => Object.entries(args);

const python = (value: unknown): string => {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") {
    return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n")}'`;
  }
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "object") return json(value);
  return `{${entries(value as Arguments)
    .map(([key, item]) => `${python(key)}: ${python(item)}`)
    .join(", ")}}`;
};
const keywords =
  (literal: (value: unknown) => string) =>
  ([name, args]: Call) =>
    `${name}(${entries(args)
      .map(([key, value]) => `${key}=${literal(value)}`)
      .join(", ")})`;

const functionTags = (open: string, close: string) => (calls: readonly Call[]) =>
  calls
    .map(([name, args]) => {
      const parameters = entries(args).map(([key, value]) => `<parameter=${key}>\n${bare(value)}\n</parameter>\n`);
      return `${open}\n<function=${name}>\n${parameters.join("")}</function>\n${close}`;
    })
    .join("\n");

const dsml = (block: string) => (calls: readonly Call[]) => {
  const invokes = calls.map(([name, args]) => {
    const parameters = entries(args).map(([key, value]) => {
      const kind = typeof value === "string" ? "true" : "false";
      return `<｜DSML｜parameter name="${key}" string="${kind}">${bare(value)}</｜DSML｜parameter>\n`;
    });
    return `<｜DSML｜invoke name="${name}">\n${parameters.join("")}</｜DSML｜invoke>\n`;
  });
  return `<｜DSML｜${block}>\n${invokes.join("")}</｜DSML｜${block}>`;
};

const keyed = (prefix: string, separator: string) => (calls: readonly Call[]) =>
  calls
    .map(([name, args]) => {
      const pairs = entries(args).map(
        ([key, value]) =>
          `${separator}<${prefix}arg_key>${key}</${prefix}arg_key>${separator}<${prefix}arg_value>${bare(value)}</${prefix}arg_value>`,
      );
      return `<${prefix}tool_call>${name}${pairs.join("")}${separator}</${prefix}tool_call>`;
    })
    .join(separator);

const gemmaValue = (quote: string, value: unknown): string => {
  if (typeof value === "string") return quote + value + quote;
  if (Array.isArray(value)) return `[${value.map((item) => gemmaValue(quote, item)).join(",")}]`;
  if (typeof value !== "object" || value === null) return json(value);
  return `{${entries(value as Arguments)
    .map(([key, item]) => `${key}:${gemmaValue(quote, item)}`)
    .join(",")}}`;
};
const gemma = (open: string, close: string, quote: string) => (calls: readonly Call[]) =>
  calls.map(([name, args]) => `${open}call:${name}${gemmaValue(quote, args)}${close}`).join("");

const qwen = (calls: readonly Call[]) =>
  calls.map((call) => `<tool_call>\n${object("arguments")(call)}\n</tool_call>`).join("\n");

const NAMESPACE = "]<]minimax[>[";
const m3Tag = (name: string, body: string): string => `${NAMESPACE}<${name}>${body}${NAMESPACE}</${name}>`;
const m3Value = (value: unknown): string => {
  if (Array.isArray(value)) return value.map((item) => m3Tag("item", m3Value(item))).join("");
  if (typeof value !== "object" || value === null) return bare(value);
  return entries(value as Arguments)
    .map(([key, item]) => m3Tag(key, m3Value(item)))
    .join("");
};
/** Inside a list nothing tells an empty object from an empty string. */
const m3Reads = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map((item) => (json(item) === "{}" ? "" : m3Reads(item)));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(entries(value as Arguments).map(([key, item]) => [key, m3Reads(item)]));
};
const minimaxM3 = (calls: readonly Call[]) =>
  `${NAMESPACE}<tool_call>\n${calls
    .map(([name, args]) => `${NAMESPACE}<invoke name="${name}">${m3Value(args)}${NAMESPACE}</invoke>\n`)
    .join("")}${NAMESPACE}</tool_call>`;

const hunyuan = (suffix: string, separator: string, newline: string) => (calls: readonly Call[]) =>
  `<tool_calls${suffix}>${newline}${calls
    .map(([name, args]) => {
      const pairs = entries(args).map(
        ([key, value]) =>
          `<arg_key${suffix}>${key}</arg_key${suffix}>${newline}<arg_value${suffix}>${bare(value)}</arg_value${suffix}>${newline}`,
      );
      return `<tool_call${suffix}>${name}${separator}${newline}${pairs.join("")}</tool_call${suffix}>${newline}`;
    })
    .join("")}</tool_calls${suffix}>`;

const miniCpm = (text: (value: unknown) => string) => (calls: readonly Call[]) =>
  calls
    .map(([name, args]) => {
      const parts = entries(args).map(([key, value]) => `<param name="${key}">${text(value)}</param>`);
      return `<function name="${name}">${parts.join("")}</function>`;
    })
    .join("\n");

const plamoTag = (name: string, body: string) => `<|plamo:begin_${name}:plamo|>${body}<|plamo:end_${name}:plamo|>`;

export const WRITERS: readonly Writer[] = [
  { parser: "qwen", write: qwen, trap: "a</tool_call>b" },
  {
    parser: "hermes",
    label: "compact",
    write: (calls) => calls.map(([name, args]) => `<tool_call>${json({ name, arguments: args })}</tool_call>`).join(""),
    trap: "</tool_call>",
  },
  { parser: "qwen_xml", write: functionTags("<tool_call>", "</tool_call>"), trap: "a</parameter>b</function>" },
  {
    parser: "qwen3_coder",
    label: "without the outer tag",
    write: (calls) => functionTags("", "")(calls).trim(),
    trap: "</parameter>\n</parameter>x",
  },
  { parser: "llama", write: (calls) => `<|python_tag|>${calls.map(object("parameters")).join("; ")}`, trap: "; }" },
  {
    parser: "llama3_json",
    label: "bare",
    write: (calls) => calls.map(object("parameters")).join(";"),
    trap: "<|python_tag|>",
    onlyAtStart: true,
  },
  {
    parser: "deepseek",
    write: (calls) =>
      `<｜tool▁calls▁begin｜>${calls
        .map(
          ([name, args]) =>
            `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${spaced(args)}\n\`\`\`<｜tool▁call▁end｜>`,
        )
        .join("\n")}<｜tool▁calls▁end｜>`,
    trap: "```<｜tool▁call▁end｜>",
  },
  {
    parser: "deepseek31",
    write: (calls) =>
      `<｜tool▁calls▁begin｜>${calls
        .map(([name, args]) => `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${json(args)}<｜tool▁call▁end｜>`)
        .join("")}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
    trap: "<｜tool▁call▁end｜>",
  },
  { parser: "deepseek32", write: dsml("function_calls"), trap: "a</｜DSML｜parameter>b", before: "\n\n" },
  { parser: "deepseek_v4", write: dsml("tool_calls"), trap: "</｜DSML｜parameter>", before: "\n\n" },
  { parser: "deepseek_v4", label: "4.1", write: dsml(" calls"), trap: "<｜DSML｜invoke", before: "\n\n" },
  {
    parser: "kimik2",
    write: (calls) =>
      `<|tool_calls_section_begin|>${calls
        .map(
          ([name, args], index) =>
            `<|tool_call_begin|>functions.${name}:${index}<|tool_call_argument_begin|>${spaced(args)}<|tool_call_end|>`,
        )
        .join("")}<|tool_calls_section_end|>`,
    trap: "<|tool_call_end|>",
  },
  {
    parser: "kimi_k2",
    label: "singular, without functions.",
    write: (calls) =>
      `<|tool_call_section_begin|>${calls
        .map(
          ([name, args], index) =>
            `<|tool_call_begin|>${name}:${index}<|tool_call_argument_begin|>${json(args)}<|tool_call_end|>\n`,
        )
        .join("")}<|tool_call_section_end|>`,
    trap: "<|tool_calls_section_end|>",
  },
  {
    parser: "harmony",
    write: (calls) =>
      calls
        .map(
          ([name, args]) =>
            `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>${spaced(args)}<|call|>`,
        )
        .join("<|start|>assistant"),
    trap: "a<|call|>b",
    onlyAtStart: true,
  },
  {
    parser: "gpt_oss",
    label: "recipient first",
    write: (calls) =>
      calls
        .map(([name, args]) => ` to=functions.${name}<|channel|>commentary json<|message|>${json(args)}<|call|>`)
        .join("<|start|>assistant"),
    trap: "<|end|>",
    onlyAtStart: true,
  },
  {
    parser: "json",
    write: (calls) => (calls.length === 1 ? object("parameters")(calls[0]!) : list("arguments")(calls)),
    trap: "]}",
  },
  { parser: "mistral", write: (calls) => `[TOOL_CALLS] ${list("arguments")(calls)}`, trap: "[TOOL_CALLS]" },
  {
    parser: "mistral",
    label: "v11",
    write: (calls) => calls.map(([name, args]) => `[TOOL_CALLS]${name}[ARGS]${spaced(args)}`).join(""),
    trap: "[ARGS]",
  },
  {
    parser: "mistral",
    label: "with ids",
    write: (calls) => calls.map(([name, args]) => `[TOOL_CALLS]${name}[CALL_ID]a1B2c3D4e[ARGS]${json(args)}`).join(""),
    trap: "[TOOL_CALLS]x",
  },
  { parser: "glm45_moe", write: keyed("", "\n"), trap: "a</arg_value>b" },
  { parser: "glm47_moe", write: keyed("", ""), trap: "a</arg_value></tool_cal" },
  { parser: "longcat", write: keyed("longcat_", "\n"), trap: "</longcat_arg_value>x" },
  {
    parser: "minimax_m2",
    write: (calls) =>
      `<minimax:tool_call>\n${calls
        .map(
          ([name, args]) =>
            `<invoke name="${name}">\n${entries(args)
              .map(([key, value]) => `<parameter name="${key}">${bare(value)}</parameter>\n`)
              .join("")}</invoke>\n`,
        )
        .join("")}</minimax:tool_call>`,
    trap: "a</parameter>b",
  },
  {
    parser: "step3",
    write: (calls) =>
      `<｜tool_calls_begin｜>${calls
        .map(
          ([name, args]) =>
            `<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="${name}">${entries(args)
              .map(([key, value]) => `<steptml:parameter name="${key}">${bare(value)}</steptml:parameter>`)
              .join("")}</steptml:invoke><｜tool_call_end｜>`,
        )
        .join("")}<｜tool_calls_end｜>`,
    trap: "</steptml:parameter>x",
  },
  { parser: "seed_oss", write: functionTags("<seed:tool_call>", "</seed:tool_call>"), trap: "</parameter>x" },
  {
    parser: "pythonic",
    write: (calls) => `[${calls.map(keywords(python)).join(", ")}]`,
    trap: ")]",
    unknown: "atStart",
  },
  {
    parser: "pythonic",
    label: "marked",
    write: (calls) => `<|python_start|>[${calls.map(keywords(json)).join(", ")}]<|python_end|>`,
    trap: "<|python_end|>",
  },
  {
    parser: "lfm2",
    write: (calls) => `<|tool_call_start|>[${calls.map(keywords(python)).join(", ")}]<|tool_call_end|>`,
    trap: "<|tool_call_end|>",
  },
  {
    parser: "olmo3",
    write: (calls) => `<function_calls>\n${calls.map(keywords(json)).join("\n")}\n</function_calls>`,
    trap: "</function_calls>",
  },
  {
    parser: "sarashina",
    write: (calls) => `<|tool_calls|>${python(calls.map(([name, args]) => ({ name, arguments: args })))}`,
    trap: "}]",
  },
  {
    parser: "cohere",
    write: (calls) =>
      `<|START_ACTION|>\n[${calls
        .map(([name, args], k) => `{"tool_call_id": "${k}", "tool_name": ${json(name)}, "parameters": ${spaced(args)}}`)
        .join(",\n")}]\n<|END_ACTION|>`,
    trap: "<|END_ACTION|>",
  },
  { parser: "granite", write: (calls) => `<|tool_call|>${list("arguments")(calls)}`, trap: "]" },
  { parser: "phi4_mini", write: (calls) => `functools${list("arguments")(calls)}`, trap: "functools[" },
  {
    parser: "internlm",
    write: ([call]) => `<|action_start|><|plugin|>\n${object("parameters")(call!)}<|action_end|>`,
    trap: "<|action_end|>",
    oneCall: true,
  },
  {
    parser: "minimax",
    write: (calls) => `<tool_calls>\n${calls.map(object("arguments")).join("\n")}\n</tool_calls>`,
    trap: "\n</tool_calls>",
  },
  {
    parser: "granite-20b-fc",
    write: (calls) => calls.map((call) => `<function_call> ${object("arguments")(call)}`).join(" "),
    trap: "<function_call>",
  },
  { parser: "jamba", write: (calls) => `<tool_calls>${list("arguments")(calls)}</tool_calls>`, trap: "</tool_calls>" },
  {
    parser: "hunyuan",
    write: (calls) => `<tool_calls>${list("arguments")(calls)}</tool_calls>`,
    trap: "</tool_calls>",
  },
  { parser: "nemotron", write: (calls) => `<TOOLCALL>${list("arguments")(calls)}</TOOLCALL>`, trap: "</TOOLCALL>" },
  { parser: "xlam", write: list("arguments"), trap: "]", onlyAtStart: true },
  { parser: "xlam", label: "fenced", write: (calls) => `\`\`\`json\n${list("arguments")(calls)}\n\`\`\``, trap: "```" },
  { parser: "gemma4", write: gemma("<|tool_call>", "<tool_call|>", '<|"|>'), trap: "}<tool_call|>" },
  {
    parser: "functiongemma",
    write: gemma("<start_function_call>", "<end_function_call>", "<escape>"),
    trap: "<end_function_call>",
  },
  {
    parser: "kimi_k3",
    write: (calls) =>
      `<|open|>tools<|sep|>${calls
        .map(([name, args], k) => {
          const parts = entries(args).map(
            ([key, value]) =>
              `<|open|>argument key="${key}" type="${typeof value === "string" ? "string" : "object"}"<|sep|>${bare(value)}<|close|>argument<|sep|>`,
          );
          return `<|open|>call tool="${name}" index="${k + 1}"<|sep|>${parts.join("")}<|close|>call<|sep|>`;
        })
        .join("")}<|close|>tools<|sep|>`,
    trap: "<|close|>argument<|sep|>x",
  },
  {
    parser: "inkling",
    write: (calls) =>
      calls
        .map(
          ([name, args]) =>
            `<|message_model|>${name}<|content_invoke_tool_json|>${json({ name, args })}<|end_message|>`,
        )
        .join(""),
    trap: "<|end_message|>",
    unknown: "never",
  },
  {
    parser: "solar_open2",
    write: (calls) =>
      calls
        .map(([name, args]) => {
          const parts = entries(args).map(
            ([key, value]) => `<|tool_arg:start|>${key}<|tool_arg:value|>${bare(value)}<|tool_arg:end|>\n`,
          );
          return `<|tool_call:start|>${name}\n${parts.join("")}<|tool_call:end|>`;
        })
        .join("\n"),
    trap: "a<|tool_arg:end|>b",
  },
  { parser: "minicpm5", write: miniCpm(bare), trap: "a</param>b</function>" },
  {
    parser: "minicpm5",
    label: "quoted as XML does",
    write: miniCpm((value) => (typeof value === "string" ? `<![CDATA[${value}]]>` : spaced(value))),
    trap: "</param></function>",
  },
  { parser: "minimax_m3", write: minimaxM3, reads: m3Reads, trap: `a${NAMESPACE}</cmd>b` },
  { parser: "hy_v3", write: hunyuan("", "<tool_sep>", "\n"), trap: "a</arg_value>b" },
  {
    parser: "hy_v3",
    label: "suffixed",
    write: hunyuan(":opensource", "<tool_sep:opensource>", ""),
    trap: "</arg_value:opensource>x",
  },
  { parser: "hy_v4", write: hunyuan(":opensource", "", ""), trap: "</tool_calls:opensource>" },
  {
    parser: "gigachat3",
    write: ([call]) => `function call<|role_sep|>\n${object("arguments")(call!)}`,
    trap: "<|message_sep|>",
    before: "<|message_sep|>\n\n",
    oneCall: true,
  },
  {
    parser: "gigachat3",
    label: "3.1",
    write: ([call]) => `<|function_call|>${object("arguments")(call!)}`,
    trap: "<|function_call|>",
    oneCall: true,
  },
  {
    parser: "gigachat35",
    write: (calls) => dsml("tool_calls")(calls).replaceAll("｜DSML｜", "｜GCML｜"),
    trap: "a</｜GCML｜parameter>b",
  },
  {
    parser: "apertus",
    write: (calls) =>
      `<|tools_prefix|>[${calls.map(([name, args]) => `{${json(name)}: ${spaced(args)}}`).join(", ")}]<|tools_suffix|>`,
    trap: "]<|tools_suffix|>",
  },
  {
    parser: "plamo3",
    write: (calls) =>
      plamoTag(
        "tool_requests",
        calls
          .map(([name, args]) => {
            const body = `<|plamo:constrain|>json<|plamo:msg|>${json(args)}`;
            return plamoTag("tool_request", plamoTag("tool_name", name) + plamoTag("tool_arguments", body));
          })
          .join(""),
      ),
    trap: "<|plamo:end_tool_arguments:plamo|>",
  },
];
