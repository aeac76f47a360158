/** Documents about one job: docs/formats/outline.md and docs/formats/cli-json.md. */

import type { Schemas } from "../api/types";

export type Outline = Schemas["JobOutline"];
export type Segment = Schemas["SegmentRow"];
export type Gap = Schemas["GapRow"];
export type JobDocument = Schemas["JobDocument"];
export type JobDiff = Schemas["JobDiff"];

/** Whether a job may still change by itself. */
export function isOpen(job: { status: string }): boolean {
  return !["completed", "failed", "cancelled"].includes(job.status);
}
