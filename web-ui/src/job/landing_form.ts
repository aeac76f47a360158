/** What the windows that take a job's changes over send. */

export type Way = "apply" | "merge" | "push";

export interface LandingForm {
  message: string;
  into: string;
  remote: string;
  isOnlyThisJob: boolean;
  isMergeCommit: boolean;
  isForced: boolean;
}

export const EMPTY_FORM: LandingForm = {
  message: "",
  into: "",
  remote: "",
  isOnlyThisJob: false,
  isMergeCommit: false,
  isForced: false,
};

/** Return the body of the request: only what differs from what each way does by itself. */
export function landingBody(way: Way, form: LandingForm): Record<string, unknown> {
  if (way === "apply") return form.isOnlyThisJob ? { only_this_job: true } : {};
  const message = form.message.trim() !== "" && { message: form.message };
  if (way === "merge") {
    const into = form.into.trim();
    return {
      ...message,
      ...(into !== "" && { into }),
      ...(form.isMergeCommit && { fast_forward: false }),
    };
  }
  const remote = form.remote.trim();
  return { ...message, ...(remote !== "" && { remote }), ...(form.isForced && { force: true }) };
}
