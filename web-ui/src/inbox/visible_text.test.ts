import { expect, it } from "vitest";

import { visibleText, visibleValue } from "./visible_text";

it("leaves plain text, lines and tabs as they are", () => {
  expect(visibleText("ls -l\n\techo ä 日本 👍")).toBe("ls -l\n\techo ä 日本 👍");
});

it("shows characters that hide what runs", () => {
  expect(visibleText("ls\u001b[8m; rm -rf /\u001b[0m")).toBe("ls␛[8m; rm -rf /␛[0m");
  expect(visibleText("rm -rf /\rls")).toBe("rm -rf /␍ls");
  expect(visibleText("a\u007fb")).toBe("a␡b");
  expect(visibleText("a\u202eb\u200bc\u2066d\u00ade")).toBe(
    "a⟨U+202E⟩b⟨U+200B⟩c⟨U+2066⟩d⟨U+00AD⟩e",
  );
});

it("shows them in every text of a value, names too", () => {
  expect(visibleValue({ "a\u202e": ["\u001b", 1, null, { b: "\u200b" }] })).toEqual({
    "a⟨U+202E⟩": ["␛", 1, null, { b: "⟨U+200B⟩" }],
  });
});
