import { Input, type Step, skipSpace } from "../../parsers/input.ts";
import { decodedString, jsonValue, OPEN_OBJECT, QUOTE } from "../../parsers/json.ts";

/**
 * Reads the free text of a custom tool's call out of its arguments, `{"input": "…"}`, as they come. Arguments of another form are the
 * input as they stand.
 */
export class CustomInput {
  private readonly input = new Input();
  private readonly reading: Step<void>;
  private given = "";
  private args = "";
  /** The text has begun. */
  private isFound = false;
  private isDone = false;

  constructor() {
    this.reading = read(this.input, (text) => {
      this.isFound = true;
      this.given += text;
    });
  }

  /** The next piece of the arguments; gives the next piece of the input. */
  push(args: string): string {
    if (!this.isFound) this.args += args;
    if (this.isDone) return "";
    this.input.feed(args);
    return this.step();
  }

  /** The call is over, complete or not: what is left of the input. */
  end(): string {
    this.input.ended = true;
    const rest = this.step();
    const isCut = '{"input":"'.startsWith(this.args.replace(/[ \n\r\t]/g, ""));
    return this.isFound || isCut || this.args === "{}" ? rest : this.args;
  }

  private step(): string {
    this.isDone = this.reading.next().done === true;
    const text = this.given;
    this.given = "";
    return text;
  }
}

function* read(input: Input, emit: (text: string) => void): Step<void> {
  if ((yield* skipSpace(input)) !== OPEN_OBJECT) return;
  input.at++;
  if ((yield* skipSpace(input)) !== QUOTE) return;
  let key = "";
  yield* jsonValue(input, (raw) => {
    key += raw;
  });
  if (key !== '"input"' || (yield* skipSpace(input)) < 0) return;
  input.at++;
  if ((yield* skipSpace(input)) !== QUOTE) return;
  emit("");
  yield* decodedString(input, emit);
}
