/** Commands that read a JSON object a line and answer each with one. */
import { BadJsonError, GatewayError } from "../errors.ts";
import { parseObject, refuseDepth } from "../server/json-object.ts";
import { type BlockWriter, LineTooLongError, lineBlocks } from "./byte-streams.ts";

const NEWLINE = 10;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Gives what a line is answered with. `text`: the line itself. Throws GatewayErrors for what is wrong with it. */
export type AnswerLine = (value: object, text: string) => object | Promise<object>;

/**
 * Answers each line of a file with a line, in their order; what is wrong with one is its answer: `{"error": {"code", "message"}}`.
 * Throws LineTooLongError, and what the output throws.
 */
export async function answerLines(fd: number, out: BlockWriter, answer: AnswerLine): Promise<void> {
  let line = 1;
  try {
    for (const block of lineBlocks(fd)) {
      for (let at = 0; at < block.length; line++) {
        const found = block.indexOf(NEWLINE, at);
        const end = found < 0 ? block.length : found;
        out.text(`${JSON.stringify(await answered(block.subarray(at, end), line, answer))}\n`);
        at = end + 1;
      }
      out.flush(); // the next block may be long in coming
    }
  } catch (error) {
    if (!(error instanceof LineTooLongError)) throw error;
    out.flush();
    throw new LineTooLongError(`line ${line}: ${error.message}`);
  }
}

async function answered(bytes: Buffer, line: number, answer: AnswerLine): Promise<object> {
  try {
    const text = lineText(bytes, line);
    const value = parseObject(text, `Line ${line}`);
    refuseDepth(value, `Line ${line}`);
    return await answer(value, text);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

function lineText(bytes: Buffer, line: number): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new BadJsonError(`Line ${line} is not valid UTF-8`);
  }
}
