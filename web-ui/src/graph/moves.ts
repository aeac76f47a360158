/** Which box the arrow keys go to. */

import type { Box } from "./layout";

export type Direction = "up" | "down" | "left" | "right";

const KEYS: Record<string, Direction> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

/** Return the direction of an arrow key; null for another key. */
export function directionOf(key: string): Direction | null {
  return KEYS[key] ?? null;
}

/** Return the path of the nearest box in a direction; null when there is none. */
export function nextBox(boxes: readonly Box[], from: string, direction: Direction): string | null {
  const start = boxes.find(({ phase }) => phase.path === from);
  if (start === undefined) return boxes[0]?.phase.path ?? null;
  const isVertical = direction === "up" || direction === "down";
  const sign = direction === "down" || direction === "right" ? 1 : -1;
  let best: { path: string; far: number } | null = null;
  for (const box of boxes) {
    if (box === start) continue;
    const [dx, dy] = [anchor(box).x - anchor(start).x, anchor(box).y - anchor(start).y];
    const [along, beside] = isVertical ? [dy * sign, Math.abs(dx)] : [dx * sign, Math.abs(dy)];
    if (along <= 0) continue;
    // A box that is a little further on but straight ahead is nearer than one at the side.
    const far = along + 3 * beside;
    if (best === null || far < best.far) best = { path: box.phase.path, far };
  }
  return best?.path ?? null;
}

/** The middle of a box's heading: a group's own heading is above what is inside it. */
function anchor(box: Box): { x: number; y: number } {
  return { x: box.x + box.width / 2, y: box.y + Math.min(box.height, 40) / 2 };
}
