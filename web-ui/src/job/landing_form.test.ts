import { expect, test } from "vitest";

import { EMPTY_FORM, landingBody, type LandingForm } from "./landing_form";

const FULL: LandingForm = {
  message: "Mend it",
  into: " release ",
  remote: " fork ",
  isOnlyThisJob: true,
  isMergeCommit: true,
  isForced: true,
};

test("a form that was left alone sends nothing", () => {
  expect(landingBody("apply", EMPTY_FORM)).toEqual({});
  expect(landingBody("merge", EMPTY_FORM)).toEqual({});
  expect(landingBody("push", EMPTY_FORM)).toEqual({});
});

test("each way sends its own fields and no others", () => {
  expect(landingBody("apply", FULL)).toEqual({ only_this_job: true });
  expect(landingBody("merge", FULL)).toEqual({
    message: "Mend it",
    into: "release",
    fast_forward: false,
  });
  expect(landingBody("push", FULL)).toEqual({ message: "Mend it", remote: "fork", force: true });
});
