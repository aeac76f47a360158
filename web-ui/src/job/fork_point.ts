/** Where a session is forked: after an event of the job's conversation, or at one of its checkpoints. */
export type ForkPoint = { at_seq: number } | { at_checkpoint: number };

/** Say where that is. */
export function forkText(point: ForkPoint): string {
  return "at_seq" in point ? `after event ${point.at_seq}` : `at checkpoint ${point.at_checkpoint}`;
}
