// @vitest-environment jsdom
import { expect, it } from "vitest";

import { bytesOf, labelOf } from "./push";

it("reads keys in base64url without padding", () => {
  expect([...bytesOf("-_8")]).toEqual([251, 255]);
});

it("names browsers and systems", () => {
  const chrome =
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/150.0.0.0 Mobile Safari/537.36";
  const safari =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1";
  expect(labelOf({ userAgent: chrome })).toBe("Chrome on Android");
  expect(labelOf({ userAgent: safari })).toBe("Safari on iOS");
  expect(labelOf({ userAgent: "curl/8" })).toBe("Browser on this device");
});
