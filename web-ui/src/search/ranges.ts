/** The parts of a text that matched a search. */

export interface Piece {
  text: string;
  isHit: boolean;
}

/** Cut a text where the ranges of its matches begin and end. Ranges count code points. */
export function piecesOf(text: string, ranges: readonly (readonly number[])[]): Piece[] {
  const characters = Array.from(text);
  const pieces: Piece[] = [];
  let at = 0;
  const add = (end: number, isHit: boolean) => {
    if (end > at) pieces.push({ text: characters.slice(at, end).join(""), isHit });
    at = Math.max(at, end);
  };
  for (const [start = 0, end = 0] of ranges) {
    add(Math.min(start, characters.length), false);
    add(Math.min(end, characters.length), true);
  }
  add(characters.length, false);
  return pieces;
}
