import type { Schemas } from "../api/types";

type Landed = Schemas["LandingDocument"];

/** Say what became, or would become, of a job's changes. */
export function landingText(landed: Landed): string {
  const { conflicts, files, how, target, is_dry_run: isDry, is_nothing: isNothing } = landed;
  if (conflicts.length > 0) return `These files conflict, so nothing was changed in ${target}:`;
  if (isNothing) return `There is nothing to do: ${target} has the changes.`;
  const count = files.length === 1 ? "1 file" : `${files.length} files`;
  return `${count} ${isDry ? "would be" : files.length === 1 ? "was" : "were"} ${how}: ${target}`;
}
