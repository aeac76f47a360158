import "@xyflow/react/dist/base.css";
import "./graph.css";

import { ReactFlow, ReactFlowProvider, useReactFlow } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";

import { Button } from "../ui/Button";
import { layoutOf, type Layout } from "./layout";
import { directionOf, nextBox } from "./moves";
import type { Phase } from "./phase";
import { BoxContext, PhaseBox, type PhaseBoxNode } from "./PhaseBox";
import { WayEdge, type WayEdgeType } from "./WayEdge";

const NODES = { phase: PhaseBox };
const EDGES = { way: WayEdge };
const PAD = 16;
const LEAST_ZOOM = 0.55;
const MOST_HEIGHT = 640;

export interface GraphViewProps {
  phases: readonly Phase[];
  selected: string | null;
  onSelect: (path: string) => void;
}

/** Phases as a graph. Loaded when it is first shown: the library that draws it is large. */
export default function GraphView(props: GraphViewProps) {
  return (
    <ReactFlowProvider>
      <Graph {...props} />
    </ReactFlowProvider>
  );
}

function Graph({ phases, selected, onSelect }: GraphViewProps) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, number>>(new Map());
  const [focused, setFocused] = useState<string | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const layout = useMemo(() => layoutOf(phases, chosen), [phases, chosen]);
  const nodes = useMemo(() => nodesOf(layout), [layout]);
  const edges = useMemo(() => edgesOf(layout), [layout]);
  const view = useView(frame, layout);

  const paths = layout.boxes.map(({ phase }) => phase.path);
  const start = [focused, selected, paths[0]].find((path) => path != null && paths.includes(path));
  const actions = useMemo(
    () => ({
      selected,
      focused: start ?? null,
      select: (path: string) => {
        setFocused(path);
        onSelect(path);
      },
      choose: (path: string, place: number) =>
        setChosen((before) => new Map(before).set(path, place)),
    }),
    [selected, start, onSelect],
  );
  const move = (event: KeyboardEvent) => {
    const direction = directionOf(event.key);
    const from = (event.target as HTMLElement).dataset["phase"];
    if (direction === null || from === undefined) return;
    event.preventDefault();
    const next = nextBox(layout.boxes, from, direction);
    if (next === null) return;
    setFocused(next);
    frame.current?.querySelector<HTMLElement>(`[data-phase="${CSS.escape(next)}"]`)?.focus();
    view.show(next);
  };
  return (
    <div
      ref={frame}
      role="group"
      aria-label="Graph of the phases; arrow keys move, Enter shows a phase"
      onKeyDown={move}
      className="relative overflow-hidden rounded-lg border border-line bg-page"
      style={{ height: Math.min(layout.height * view.zoom + 2 * PAD, MOST_HEIGHT) }}
    >
      <BoxContext value={actions}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODES}
          edgeTypes={EDGES}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          disableKeyboardA11y
          zoomOnScroll={false}
          zoomOnDoubleClick={false}
          preventScrolling={false}
          minZoom={0.2}
          maxZoom={1.5}
          onMoveStart={view.onMoveStart}
          onInit={view.onInit}
          proOptions={{ hideAttribution: true }}
        />
      </BoxContext>
      <div className="absolute right-2 bottom-2 z-10 flex gap-1">
        <Button aria-label="Zoom out" onClick={view.zoomOut}>
          −
        </Button>
        <Button aria-label="Zoom in" onClick={view.zoomIn}>
          +
        </Button>
        <Button onClick={view.reset}>Fit</Button>
      </div>
    </div>
  );
}

/** Which part of the graph is seen: its whole width from the top, until a person moves it. */
function useView(frame: React.RefObject<HTMLDivElement | null>, layout: Layout) {
  const flow = useReactFlow();
  const [width, setWidth] = useState(0);
  const [isReady, setReady] = useState(false);
  const isMoved = useRef(false);
  const wanted = (width - 2 * PAD) / Math.max(layout.width, 1);
  const zoom = width === 0 ? 1 : Math.min(1, Math.max(LEAST_ZOOM, wanted));
  useEffect(() => {
    const shown = frame.current;
    if (shown === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(shown);
    return () => observer.disconnect();
  }, [frame]);
  const fit = useCallback(() => {
    const x = Math.max(PAD, (width - layout.width * zoom) / 2);
    void flow.setViewport({ x, y: PAD, zoom });
  }, [flow, width, layout.width, zoom]);
  useEffect(() => {
    if (isReady && width > 0 && !isMoved.current) fit();
  }, [isReady, width, fit]);
  return {
    zoom,
    onInit: () => setReady(true),
    onMoveStart: (event: unknown) => {
      if (event !== null) isMoved.current = true;
    },
    reset: () => {
      isMoved.current = false;
      fit();
    },
    zoomIn: () => void flow.zoomIn(),
    zoomOut: () => void flow.zoomOut(),
    /** Bring a box into view, when it is outside. */
    show: (path: string) => {
      const box = layout.boxes.find(({ phase }) => phase.path === path);
      const height = frame.current?.clientHeight ?? 0;
      if (box === undefined) return;
      const now = flow.getViewport();
      const [left, top] = [box.x * now.zoom + now.x, box.y * now.zoom + now.y];
      const isSeen = left >= 0 && left < width - 80 && top >= 0 && top < height - 40;
      if (isSeen) return;
      void flow.setCenter(box.x + box.width / 2, box.y + 40, { zoom: now.zoom });
    },
  };
}

/** Frames lie below the ways between what is in them, and these below the boxes. */
function nodesOf({ boxes }: Layout): PhaseBoxNode[] {
  return boxes.map((box) => ({
    id: box.phase.path,
    type: "phase",
    position: { x: box.x, y: box.y },
    width: box.width,
    height: box.height,
    data: { box },
    zIndex: 2 * box.depth + 1,
    domAttributes: { "aria-roledescription": undefined },
  }));
}

function edgesOf({ lines }: Layout): WayEdgeType[] {
  return lines.map((line) => ({
    id: `${line.from} → ${line.to}`,
    type: "way",
    source: line.from,
    target: line.to,
    data: { line },
    zIndex: 2 * line.depth,
    domAttributes: { "aria-hidden": true },
  }));
}
