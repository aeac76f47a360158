/** Where phases stand on the graph. Everything is counted in pixels, from the upper left corner of the whole. */

import { layersOf, type Slot } from "./layers";
import type { Phase } from "./phase";
import { shownOf, type Shown } from "./shown";

export const SIZE = { width: 208, height: 62 };
const GAP = { x: 24, y: 34 };
const INSET = { side: 14, top: 46, bottom: 14 };
/** The room that an edge takes which passes a layer. */
const PASSAGE = 14;

export interface Box {
  phase: Phase;
  /** The path of the group around it; null for a phase of the workflow itself. */
  parent: string | null;
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
  /** What is drawn inside a group; null for a phase without others inside. */
  shown: Shown | null;
}

export interface Line {
  from: string;
  to: string;
  depth: number;
  /** Where it bends, with both ends. */
  points: { x: number; y: number }[];
}

export interface Layout {
  boxes: Box[];
  lines: Line[];
  width: number;
  height: number;
}

interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Lay out phases from top to bottom. `chosen` says which item or iteration of a group is drawn. */
export function layoutOf(
  phases: readonly Phase[],
  chosen: ReadonlyMap<string, number> = new Map(),
): Layout {
  return layOut(phases, chosen, null, 0);
}

function layOut(
  phases: readonly Phase[],
  chosen: ReadonlyMap<string, number>,
  parent: string | null,
  depth: number,
): Layout {
  const inner = new Map<string, { shown: Shown; layout: Layout }>();
  for (const phase of phases) {
    if (phase.inside.length === 0) continue;
    const shown = shownOf(phase, chosen);
    inner.set(phase.path, { shown, layout: layOut(shown.drawn, chosen, phase.path, depth + 1) });
  }
  const ids = phases.map(({ path }) => path);
  const edges = phases.flatMap(({ path, dependsOn }) =>
    dependsOn.map((from) => ({ from, to: path })),
  );
  const { layers: found, routes } = layersOf(ids, edges);
  const layers = routes.length === 0 ? inRows(found.flat()) : found;
  const { places, width, height } = placesOf(layers, (slot) => {
    const group = inner.get(slot.id)?.layout;
    return slot.isPassage ? { width: PASSAGE, height: 0 } : sizeOf(group);
  });
  const layout: Layout = { boxes: [], lines: [], width, height };
  for (const phase of phases) {
    const place = places.get(phase.path);
    if (place === undefined) continue;
    const group = inner.get(phase.path);
    layout.boxes.push({ phase, parent, depth, ...place, shown: group?.shown ?? null });
    if (group !== undefined) {
      const moved = moveBy(group.layout, place.x + INSET.side, place.y + INSET.top);
      layout.boxes.push(...moved.boxes);
      layout.lines.push(...moved.lines);
    }
  }
  for (const { edge, slots } of routes) {
    const passed = slots.flatMap((slot) => places.get(slot) ?? []);
    layout.lines.push({ ...edge, depth, points: pointsOf(passed) });
  }
  return layout;
}

/** Phases beside each other that wait for nothing, such as items: a few in each row. */
function inRows(slots: readonly Slot[]): Slot[][] {
  const columns = slots.length === 4 ? 2 : 3;
  return Array.from({ length: Math.ceil(slots.length / columns) }, (_, row) =>
    slots.slice(row * columns, (row + 1) * columns),
  );
}

function sizeOf(group: Layout | undefined): { width: number; height: number } {
  if (group === undefined) return SIZE;
  return {
    width: Math.max(group.width, SIZE.width) + 2 * INSET.side,
    height: group.height + INSET.top + INSET.bottom,
  };
}

/** Give every slot its place: layers below each other, each near what it follows. */
function placesOf(
  layers: readonly Slot[][],
  size: (slot: Slot) => { width: number; height: number },
): { places: Map<string, Place>; width: number; height: number } {
  const places = new Map<string, Place>();
  const widths = layers.map((layer) =>
    layer.reduce((sum, slot) => sum + size(slot).width + GAP.x, -GAP.x),
  );
  const width = Math.max(0, ...widths);
  let y = 0;
  layers.forEach((layer, at) => {
    const height = Math.max(0, ...layer.map((slot) => size(slot).height));
    let x = (width - (widths[at] ?? 0)) / 2;
    for (const slot of layer) {
      const own = size(slot);
      places.set(slot.id, { x, y, width: own.width, height: slot.isPassage ? height : own.height });
      x += own.width + GAP.x;
    }
    y += height + GAP.y;
  });
  return { places, width, height: Math.max(0, y - GAP.y) };
}

/** An edge leaves below its first box, passes its passages from top to bottom, and ends above its last box. */
function pointsOf(passed: readonly Place[]): { x: number; y: number }[] {
  return passed.flatMap((place, at) => {
    const x = place.x + place.width / 2;
    const [top, bottom] = [
      { x, y: place.y },
      { x, y: place.y + place.height },
    ];
    if (at === 0) return [bottom];
    return at === passed.length - 1 ? [top] : [top, bottom];
  });
}

function moveBy({ boxes, lines, ...size }: Layout, x: number, y: number): Layout {
  return {
    ...size,
    boxes: boxes.map((box) => ({ ...box, x: box.x + x, y: box.y + y })),
    lines: lines.map((line) => ({
      ...line,
      points: line.points.map((point) => ({ x: point.x + x, y: point.y + y })),
    })),
  };
}
