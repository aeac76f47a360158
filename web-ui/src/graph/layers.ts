/** Layers of a graph: each node below those it waits for, in an order with few crossings. */

export interface Edge {
  from: string;
  to: string;
}

/** A node of a layer, or a place that an edge passes on its way over several layers. */
export interface Slot {
  id: string;
  isPassage: boolean;
}

export interface Layers {
  layers: Slot[][];
  /** By edge, the slots that it passes, first to last. */
  routes: { edge: Edge; slots: string[] }[];
}

const SWEEPS = 4;

/** Place nodes in layers. An edge that would close a circle is drawn, and does not count for the order. */
export function layersOf(ids: readonly string[], edges: readonly Edge[]): Layers {
  const known = new Set(ids);
  const real = edges.filter(({ from, to }) => known.has(from) && known.has(to) && from !== to);
  const rank = ranksOf(ids, real);
  const layers: Slot[][] = Array.from({ length: Math.max(0, ...rank.values()) + 1 }, () => []);
  for (const id of ids) layers[rank.get(id) ?? 0]?.push({ id, isPassage: false });
  const routes = real.map((edge) => {
    const [from, to] = [rank.get(edge.from) ?? 0, rank.get(edge.to) ?? 0];
    const slots = [edge.from];
    for (let layer = from + 1; layer < to; layer += 1) {
      const id = `${edge.from} → ${edge.to} @${layer}`;
      layers[layer]?.push({ id, isPassage: true });
      slots.push(id);
    }
    slots.push(edge.to);
    return { edge, slots };
  });
  return { layers: ordered(layers, linksOf(routes)), routes };
}

/** The length of the longest way to each node. */
function ranksOf(ids: readonly string[], edges: readonly Edge[]): Map<string, number> {
  const into = Map.groupBy(edges, ({ to }) => to);
  const rank = new Map<string, number>();
  const open = new Set<string>();
  const visit = (id: string): number => {
    const known = rank.get(id);
    if (known !== undefined) return known;
    if (open.has(id)) return -1;
    open.add(id);
    const found = Math.max(-1, ...(into.get(id) ?? []).map(({ from }) => visit(from))) + 1;
    open.delete(id);
    rank.set(id, found);
    return found;
  };
  ids.forEach(visit);
  return rank;
}

interface Links {
  above: Map<string, string[]>;
  below: Map<string, string[]>;
}

function linksOf(routes: Layers["routes"]): Links {
  const links: Links = { above: new Map(), below: new Map() };
  for (const { slots } of routes) {
    slots.slice(1).forEach((slot, place) => {
      const before = slots[place] ?? slot;
      links.above.set(slot, [...(links.above.get(slot) ?? []), before]);
      links.below.set(before, [...(links.below.get(before) ?? []), slot]);
    });
  }
  return links;
}

/** Sort each layer by the mean place of its neighbours, down and up; equal ones stay as they are. */
function ordered(layers: Slot[][], links: Links): Slot[][] {
  const result = layers.map((layer) => [...layer]);
  const place = new Map<string, number>();
  const note = (layer: Slot[]) => layer.forEach(({ id }, at) => place.set(id, at));
  result.forEach(note);
  const sort = (layer: Slot[] | undefined, near: Map<string, string[]>) => {
    if (layer === undefined) return;
    const weight = new Map(layer.map(({ id }, at) => [id, mean(near.get(id), place) ?? at]));
    layer.sort((one, other) => (weight.get(one.id) ?? 0) - (weight.get(other.id) ?? 0));
    note(layer);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (let at = 1; at < result.length; at += 1) sort(result[at], links.above);
    for (let at = result.length - 2; at >= 0; at -= 1) sort(result[at], links.below);
  }
  for (let at = 1; at < result.length; at += 1) sort(result[at], links.above);
  return result;
}

function mean(ids: readonly string[] | undefined, place: Map<string, number>): number | null {
  if (ids === undefined || ids.length === 0) return null;
  return ids.reduce((sum, id) => sum + (place.get(id) ?? 0), 0) / ids.length;
}
