import type { ParserSink } from "./events.ts";
import { isSpace } from "./input.ts";
import { BARRIER, type SpecialMarkers } from "./markers.ts";

/** Gives events out: counts calls, drops the white space around them that belongs to no one, and writes special tokens as text. */
export class Emitter {
  sink!: ParserSink;
  /** A call is open. */
  inCall = false;
  /** A call came before, and since then nothing but white space. */
  afterCall = false;
  /** Nothing was said so far but white space. */
  atStart = true;
  private index = -1;
  private space = "";
  private args = "";

  /** @param passesOn text goes on to another parser, which knows the codes of special tokens */
  constructor(
    private readonly special: SpecialMarkers,
    private readonly passesOn: boolean,
  ) {}

  text(delta: string): void {
    let text = delta.includes(BARRIER) ? delta.replaceAll(BARRIER, "") : delta;
    if (text === "") return;
    if (this.atStart && text.trim() !== "") this.atStart = false;
    if (this.afterCall) {
      let from = 0;
      while (from < text.length && isSpace(text.charCodeAt(from))) from++;
      if (from === text.length) {
        this.space += text;
        return;
      }
      text = this.space + text;
      this.space = "";
      this.afterCall = false;
    }
    this.sink.text(this.passesOn ? text : this.special.plain(text));
  }

  reasoning(delta: string): void {
    if (delta !== "") this.sink.reasoning(this.special.plain(delta));
  }

  /** A marker that is to be told, but read by no one else. */
  marker(code: string): void {
    const text = this.special.plain(code);
    if (this.sink.marker === undefined) this.sink.text(text);
    else this.sink.marker(text);
  }

  start(name: string, id?: string): void {
    this.space = "";
    this.inCall = true;
    this.atStart = false;
    this.index++;
    this.sink.toolStart(this.index, this.special.plain(name), id === undefined ? undefined : this.special.plain(id));
  }

  /** Pieces of one reading go out together, with `flush`. */
  arguments(delta: string): void {
    this.args += delta;
  }

  /** Gives out what `arguments` collected. */
  flush(): void {
    if (this.args === "") return;
    const { args } = this;
    this.args = "";
    this.sink.toolArguments(this.index, this.special.plain(args));
  }

  end(): void {
    this.flush();
    this.sink.toolEnd(this.index);
    this.leave();
  }

  /** White space that was held belongs to a closer. */
  dropSpace(): void {
    this.space = "";
  }

  /** The open call stays unfinished. */
  leave(): void {
    this.flush();
    this.inCall = false;
    this.afterCall = true;
    this.space = "";
  }
}
