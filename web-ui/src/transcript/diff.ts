/** The difference of two texts by lines, as hunks with context. */

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
  /** Line numbers in the old and the new text, from 1; null where the line is not in it. */
  before: number | null;
  after: number | null;
}

export interface Hunk {
  lines: DiffLine[];
}

export interface Diff {
  hunks: Hunk[];
  added: number;
  removed: number;
}

const CONTEXT = 3;
/** Edits beyond which a difference is shown as all removed and all added: the search takes their square. */
const MOST_EDITS = 1_000;

/** Return the difference between two texts. */
export function diffLines(before: string, after: string, context = CONTEXT): Diff {
  const lines = compare(split(before), split(after));
  return {
    hunks: hunksOf(lines, context),
    added: lines.filter((line) => line.kind === "added").length,
    removed: lines.filter((line) => line.kind === "removed").length,
  };
}

function split(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function compare(before: string[], after: string[]): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start])
    start += 1;
  let tail = 0;
  while (
    tail < before.length - start &&
    tail < after.length - start &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  ) {
    tail += 1;
  }
  const lines: DiffLine[] = [];
  for (let place = 0; place < start; place += 1) {
    lines.push({ kind: "same", text: before[place] ?? "", before: place + 1, after: place + 1 });
  }
  const old = before.slice(start, before.length - tail);
  const fresh = after.slice(start, after.length - tail);
  for (const step of shortestScript(old, fresh)) {
    if (step.kind === "added") {
      lines.push({
        kind: "added",
        text: fresh[step.after] ?? "",
        before: null,
        after: start + step.after + 1,
      });
    } else if (step.kind === "removed") {
      lines.push({
        kind: "removed",
        text: old[step.before] ?? "",
        before: start + step.before + 1,
        after: null,
      });
    } else {
      const text = old[step.before] ?? "";
      lines.push({
        kind: "same",
        text,
        before: start + step.before + 1,
        after: start + step.after + 1,
      });
    }
  }
  for (let place = tail; place > 0; place -= 1) {
    const text = before[before.length - place] ?? "";
    const [from, to] = [before.length - place + 1, after.length - place + 1];
    lines.push({ kind: "same", text, before: from, after: to });
  }
  return lines;
}

interface Step {
  kind: DiffLine["kind"];
  before: number;
  after: number;
}

/** Myers' algorithm: the fewest lines removed and added. */
function shortestScript(old: string[], fresh: string[]): Step[] {
  const most = old.length + fresh.length;
  if (old.length === 0 || fresh.length === 0) return replaced(old.length, fresh.length);
  let frontier = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let edits = 0; edits <= Math.min(most, MOST_EDITS); edits += 1) {
    trace.push(new Map(frontier));
    const next = new Map(frontier);
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = next.get(diagonal + 1) ?? -1;
      const right = next.get(diagonal - 1) ?? -1;
      let x = diagonal === -edits || (diagonal !== edits && right < down) ? down : right + 1;
      let y = x - diagonal;
      while (x < old.length && y < fresh.length && old[x] === fresh[y]) {
        x += 1;
        y += 1;
      }
      next.set(diagonal, x);
      if (x >= old.length && y >= fresh.length)
        return backtrack(trace, edits, old.length, fresh.length);
    }
    frontier = next;
  }
  return replaced(old.length, fresh.length);
}

function backtrack(trace: Map<number, number>[], edits: number, x: number, y: number): Step[] {
  const steps: Step[] = [];
  for (let count = edits; count >= 0; count -= 1) {
    const frontier = trace[count] ?? new Map<number, number>();
    const diagonal = x - y;
    const down = frontier.get(diagonal + 1) ?? -1;
    const right = frontier.get(diagonal - 1) ?? -1;
    const isDown = diagonal === -count || (diagonal !== count && right < down);
    const fromDiagonal = isDown ? diagonal + 1 : diagonal - 1;
    const fromX = count === 0 ? 0 : (frontier.get(fromDiagonal) ?? 0);
    const fromY = count === 0 ? 0 : fromX - fromDiagonal;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      steps.push({ kind: "same", before: x, after: y });
    }
    if (count === 0) break;
    if (isDown) steps.push({ kind: "added", before: fromX, after: fromY });
    else steps.push({ kind: "removed", before: fromX, after: fromY });
    x = fromX;
    y = fromY;
  }
  return steps.reverse();
}

function replaced(old: number, fresh: number): Step[] {
  return [
    ...Array.from({ length: old }, (_, place): Step => ({
      kind: "removed",
      before: place,
      after: 0,
    })),
    ...Array.from({ length: fresh }, (_, place): Step => ({
      kind: "added",
      before: old,
      after: place,
    })),
  ];
}

function hunksOf(lines: DiffLine[], context: number): Hunk[] {
  const hunks: Hunk[] = [];
  let end = -1;
  lines.forEach((line, place) => {
    if (line.kind === "same") return;
    const from = Math.max(place - context, 0);
    const to = Math.min(place + context + 1, lines.length);
    const last = hunks.at(-1);
    if (last !== undefined && from <= end) last.lines.push(...lines.slice(end, to));
    else hunks.push({ lines: lines.slice(from, to) });
    end = Math.max(end, to);
  });
  return hunks;
}

/** Return a unified diff's lines by what they are, for diffs that the server made. */
export function parseUnified(text: string): DiffLine[] {
  return split(text).map((line) => {
    const kind =
      line.startsWith("+") && !line.startsWith("+++")
        ? "added"
        : line.startsWith("-") && !line.startsWith("---")
          ? "removed"
          : "same";
    return { kind, text: line, before: null, after: null };
  });
}
