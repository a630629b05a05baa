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
  private isRead = false;

  constructor() {
    this.reading = read(this.input, (text) => {
      this.isRead = true;
      this.given += text;
    });
  }

  /** The next piece of the arguments; gives the next piece of the input. */
  push(args: string): string {
    this.args += args;
    this.input.feed(args);
    return this.step();
  }

  /** The call is over, complete or not: what is left of the input. */
  end(): string {
    this.input.ended = true;
    const rest = this.step();
    return this.isRead || this.args === "{}" ? rest : this.args;
  }

  private step(): string {
    this.reading.next();
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
