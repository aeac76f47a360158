/** The id of a job's link in the list, for moving there by keys. */
export function linkId(job: string): string {
  return `list-${job}`;
}
