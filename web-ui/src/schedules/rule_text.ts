/** Rules of schedules: the API shows `0 3 * * * (UTC)` and `every 30m`, and takes `0 3 * * *` and `30m`. */
export function editableRule(rule: string | null): string {
  return (rule ?? "").replace(/^every /, "").replace(/ \([^()]*\)$/, "");
}
