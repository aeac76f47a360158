import { expect, it } from "vitest";

import { patchFiles } from "./patch_files";

const PATCH = `diff --git a/one.txt b/one.txt
index 1..2 100644
--- a/one.txt
+++ b/one.txt
@@ -1 +1 @@
-old
+diff --git is only a word here
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/a b.txt b/c d.txt
similarity index 100%
rename from a b.txt
rename to c d.txt
diff --git a/picture.png b/picture.png
Binary files a/picture.png and b/picture.png differ
`;

it("splits a patch by its files", () => {
  const files = patchFiles(PATCH);
  expect(files.map(({ path }) => path)).toEqual(["one.txt", "gone.txt", "c d.txt", "picture.png"]);
  expect(files[0]?.patch.split("\n")).toHaveLength(7);
  expect(files.map(({ patch }) => patch).join("\n") + "\n").toBe(PATCH);
});

it("finds nothing in an empty patch", () => {
  expect(patchFiles("")).toEqual([]);
});
