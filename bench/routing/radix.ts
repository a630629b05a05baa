/**
 * A radix tree of prompts' texts, for comparison: what gateways keep that route by text. A node has the text of its edge, children by
 * the first character of theirs, and the workers that hold it with the time of their last use.
 */
interface Node {
  text: string;
  readonly children: Map<number, Node>;
  readonly workers: Map<number, number>;
}

export class RadixTree {
  private readonly root: Node = { text: "", children: new Map(), workers: new Map() };
  /** Nodes, and (node, worker) pairs. */
  nodes = 0;
  pairs = 0;

  insert(text: string, worker: number, now: number): void {
    let node = this.root;
    for (let at = 0; at < text.length; ) {
      const first = text.charCodeAt(at);
      let child = node.children.get(first);
      if (child === undefined) {
        child = { text: text.slice(at), children: new Map(), workers: new Map() };
        node.children.set(first, child);
        this.nodes++;
      }
      const shared = sharedLength(text, at, child.text);
      if (shared < child.text.length) child = this.split(node, child, shared);
      if (!child.workers.has(worker)) this.pairs++;
      child.workers.set(worker, now);
      node = child;
      at += shared;
    }
  }

  /** Characters of the text that each worker holds. */
  match(text: string, depths: Int32Array): void {
    depths.fill(0);
    let node = this.root;
    for (let at = 0; at < text.length; ) {
      const child = node.children.get(text.charCodeAt(at));
      if (child === undefined) return;
      const shared = sharedLength(text, at, child.text);
      at += shared;
      for (const worker of child.workers.keys()) depths[worker] = at;
      if (shared < child.text.length) return;
      node = child;
    }
  }

  /** Makes the beginning of a node's text a node of its own. */
  private split(parent: Node, node: Node, at: number): Node {
    const upper: Node = { text: node.text.slice(0, at), children: new Map(), workers: new Map(node.workers) };
    node.text = node.text.slice(at);
    upper.children.set(node.text.charCodeAt(0), node);
    parent.children.set(upper.text.charCodeAt(0), upper);
    this.nodes++;
    this.pairs += upper.workers.size;
    return upper;
  }
}

function sharedLength(text: string, from: number, edge: string): number {
  const most = Math.min(text.length - from, edge.length);
  let i = 0;
  while (i < most && text.charCodeAt(from + i) === edge.charCodeAt(i)) i++;
  return i;
}
