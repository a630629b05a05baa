/**
 * Tools that a client runs and Anthropic defines: a request names the type alone, and the model knows the rest. Other models must be told.
 * The members are those of the public documentation and of the SDK's types.
 */
const string = (description: string) => ({ type: "string", description });
const integer = (description: string) => ({ type: "integer", description });
const LINES = {
  type: "array",
  items: { type: "integer" },
  description: "For view: the first and the last line to show, counted from 1; -1 is the end of the file.",
};

const command = (names: readonly string[]) => ({ type: "string", enum: names, description: "What to do." });
const schema = (properties: Readonly<Record<string, unknown>>, required: readonly string[]) => ({
  type: "object",
  properties,
  required,
});

export interface VendorTool {
  readonly description: string;
  readonly parameters: ReturnType<typeof schema>;
}

const bash: VendorTool = {
  description: "Runs a command in a bash shell that keeps its state from call to call.",
  parameters: schema(
    {
      command: string("The command to run. Needed unless the shell is restarted."),
      restart: { type: "boolean", description: "True to restart the shell." },
    },
    [],
  ),
};

/** @param inserted the member that holds the text of an insert; it was renamed. */
const editor = (commands: readonly string[], inserted: "new_str" | "insert_text"): VendorTool => ({
  description: "Views, creates and edits text files.",
  parameters: schema(
    {
      command: command(commands),
      path: string("Absolute path of the file, or of a folder to view."),
      file_text: string("For create: the text of the file."),
      old_str: string("For str_replace: the text to replace, which must stand in the file exactly once."),
      new_str: string(
        `For str_replace: the new text.${inserted === "new_str" ? " For insert: the text to insert." : ""}`,
      ),
      ...(inserted === "insert_text" && { insert_text: string("For insert: the text to insert.") }),
      insert_line: integer("For insert: the line behind which to insert; 0 is the beginning."),
      view_range: LINES,
    },
    ["command", "path"],
  ),
});

const EDITS = ["view", "create", "str_replace", "insert"];

const memory: VendorTool = {
  description: "Reads and writes files below /memories, which outlive this conversation.",
  parameters: schema(
    {
      command: command([...EDITS, "delete", "rename"]),
      path: string("The path, for all commands but rename."),
      view_range: LINES,
      file_text: string("For create: the text of the file."),
      old_str: string("For str_replace: the text to replace."),
      new_str: string("For str_replace: the new text."),
      insert_line: integer("For insert: the line behind which to insert; 0 is the beginning."),
      insert_text: string("For insert: the text to insert."),
      old_path: string("For rename: the path now."),
      new_path: string("For rename: the path then."),
    },
    ["command"],
  ),
};

const TOOLS: ReadonlyMap<string, VendorTool> = new Map([
  ["bash_20241022", bash],
  ["bash_20250124", bash],
  ["text_editor_20241022", editor([...EDITS, "undo_edit"], "new_str")],
  ["text_editor_20250124", editor([...EDITS, "undo_edit"], "new_str")],
  ["text_editor_20250429", editor(EDITS, "new_str")],
  ["text_editor_20250728", editor(EDITS, "insert_text")],
  ["memory_20250818", memory],
]);

/** What a type of tool stands for; undefined: none of those that a client runs, or one that needs pictures. */
export const vendorTool = (type: string): VendorTool | undefined => TOOLS.get(type);
