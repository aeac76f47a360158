import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";

import type { Line } from "./layout";

export type WayEdgeType = Edge<{ line: Line }, "way">;

/** The way from a phase to one that waits for it, as the layout planned it. */
export function WayEdge({ id, data }: EdgeProps<WayEdgeType>) {
  if (data === undefined) return null;
  const { points } = data.line;
  const end = points.at(-1);
  if (end === undefined) return null;
  return (
    <>
      <BaseEdge id={id} path={wayOf(points)} interactionWidth={0} />
      <path d={`M${end.x - 4} ${end.y - 7}h8l-4 7z`} className="way-end" />
    </>
  );
}

/** A curve between layers, a straight line along what it passes. */
function wayOf(points: Line["points"]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let last = first;
  let path = `M${first.x} ${first.y}`;
  for (const point of rest) {
    const middle = (last.y + point.y) / 2;
    path +=
      point.x === last.x
        ? `V${point.y}`
        : `C${last.x} ${middle} ${point.x} ${middle} ${point.x} ${point.y}`;
    last = point;
  }
  return path;
}
