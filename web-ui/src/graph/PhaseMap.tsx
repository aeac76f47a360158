import { lazy, Suspense } from "react";

import { Loading } from "../ui/Page";
import type { GraphViewProps } from "./GraphView";
import { PhaseList } from "./PhaseList";

const GraphView = lazy(() => import("./GraphView"));

/** Phases as a graph or as a list: the same, in two forms. */
export function PhaseMap({ isList, ...props }: GraphViewProps & { isList: boolean }) {
  if (props.phases.length === 0) return null;
  if (isList) return <PhaseList {...props} />;
  return (
    <Suspense fallback={<Loading />}>
      <GraphView {...props} />
    </Suspense>
  );
}
