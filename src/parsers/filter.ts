import type { SpecialMarkers } from "./markers.ts";

/** What looks at visible text before tool calls are looked for: stop strings. Its output is its input, late and perhaps cut off. */
export interface ContentFilter {
  push(text: string): string;
  end(): string;
  readonly stopped: boolean;
}

/** Leads text with coded special tokens through a filter that knows text only: each code comes out where its text does. */
export class FilteredText {
  private pushed = 0;
  private given = 0;
  private rest = "";
  private readonly waiting: { readonly at: number; readonly text: string }[] = [];

  /** @param next takes what the filter gives, special tokens as codes again */
  constructor(
    private readonly filter: ContentFilter,
    private readonly special: SpecialMarkers,
    private readonly next: (text: string) => void,
  ) {}

  push(text: string): void {
    this.special.split(text).forEach((part, k) => {
      if (part === "") return;
      if (k % 2 === 1) this.waiting.push({ at: this.pushed, text: part });
      this.pushed += part.length;
      this.take(this.filter.push(part));
    });
  }

  end(): void {
    this.take(this.filter.end());
    this.give(this.rest.length);
  }

  private take(text: string): void {
    this.rest += text;
    for (;;) {
      const special = this.waiting[0];
      if (special === undefined) {
        this.give(this.rest.length);
        return;
      }
      const before = special.at - this.given;
      this.give(Math.min(before, this.rest.length));
      if (this.given < special.at || this.rest.length < special.text.length) return;
      this.rest = this.rest.slice(special.text.length);
      this.given += special.text.length;
      this.waiting.shift();
      this.next(this.special.code(special.text)!);
    }
  }

  private give(length: number): void {
    if (length === 0) return;
    const text = this.rest.slice(0, length);
    this.rest = this.rest.slice(length);
    this.given += length;
    this.next(text);
  }
}
