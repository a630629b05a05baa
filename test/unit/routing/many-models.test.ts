/** Many models and adapters in one index, whose prompts are the same: nobody is taken to hold what was told of another. */
import { expect, test } from "bun:test";
import { prefixIndex } from "../../../src/routing/prefix-index.ts";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import { TestCaches } from "../../support/prefix.ts";
import { random } from "../generation/random.ts";

const NOW = 1_800_000_000_000;
const MODELS = 40;
const ADAPTERS = 6;
const WORKERS = 3;
const BLOCKS = 20;

test("each has the depths that were written of it, told and guessed, and goes alone", () => {
  const board = PrefixBoard.create(1, 16);
  const writer = board.writer();
  const caches = new TestCaches(writer);
  const index = prefixIndex(board, 0);
  const { below } = random(11);
  const prompts = [1, 2].map(() => Uint32Array.from({ length: BLOCKS * 16 }, () => below(150_000)));
  const spaces = Array.from({ length: MODELS }, (_, model) =>
    Array.from({ length: ADAPTERS }, (__, adapter) => ({
      model: `model-${model}`,
      lora: adapter === 0 ? undefined : `adapter-${adapter}`,
    })),
  ).flat();
  const workers = Array.from({ length: MODELS }, () => Array.from({ length: WORKERS }, (_, i) => writer.claim(i, 0)));
  const membersOf = (model: string) => workers[Number(model.slice("model-".length))]!;
  const chainOf = ({ model, lora }: (typeof spaces)[number], prompt: number) =>
    index.chain(index.root(model, 16, lora), prompts[prompt]!, 16);

  /** Depths by space, prompt and worker; each space in a cache has depths of its own. */
  const depths = spaces.map((space) =>
    prompts.map((_, prompt) =>
      membersOf(space.model).map((member) => {
        const depth = below(BLOCKS + 1);
        const isTold = below(2) === 0;
        const { keys } = chainOf(space, prompt);
        if (isTold) expect(caches.tell({ keys, count: depth }, member)).toBe(depth);
        else index.promise({ keys, count: depth, blockSize: 16 }, 0, member, NOW);
        return { depth, isTold };
      }),
    ),
  );
  const agrees = (gone = -1) => {
    for (const [i, space] of spaces.entries())
      for (const prompt of prompts.keys()) {
        const match = index.match(chainOf(space, prompt), NOW);
        const members = membersOf(space.model);
        for (const [model, others] of workers.entries())
          for (const [w, member] of others.entries()) {
            const isIts = members === others && model !== gone;
            const { depth, isTold } = depths[i]![prompt]![w]!;
            expect(match.depth(member)).toBe(isIts ? depth : 0);
            if (isIts && depth > 0) expect(match.isExact(member)).toBe(isTold);
          }
      }
  };
  agrees();
  for (const member of workers[7]!) caches.release(member);
  agrees(7);
});
