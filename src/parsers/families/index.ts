import type { Step } from "../input.ts";
import type { Parsing } from "../parsing.ts";
import { jsonBlocks } from "./json-blocks.ts";
import { tagged } from "./tagged.ts";

/** A format of tool calls. */
export interface ToolFamily {
  /** Every marker that may be one token of the vocabulary. */
  readonly markers: readonly string[];
  readonly run: (parsing: Parsing) => Step<void>;
}

const TOOL_CALL = ["<tool_call>", "</tool_call>"];

/** Tool parsers by name. */
export const TOOL_FAMILIES: Readonly<Record<string, ToolFamily>> = {
  json: { markers: [], run: jsonBlocks({ bare: "anywhere" }) },
  qwen: { markers: TOOL_CALL, run: jsonBlocks({ open: ["<tool_call>"], close: ["</tool_call>"] }) },
  qwen_xml: {
    markers: TOOL_CALL,
    run: tagged({
      open: ["<tool_call>"],
      close: ["</tool_call>"],
      call: "<function=",
      callClose: "</function>",
      parameter: "<parameter=",
      parameterClose: "</parameter>",
      bareCalls: true,
      newlines: true,
    }),
  },
};
