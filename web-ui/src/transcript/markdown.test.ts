// @vitest-environment jsdom
import { describe, expect, it } from "vitest";

import { LONGEST, renderMarkdown, sanitise } from "./markdown";
/** Texts that try to run code, load something or break out of their place. Agents can write any of them. */
import ATTACKS from "./xss_corpus.json";

function parse(html: unknown): DocumentFragment {
  const template = document.createElement("template");
  template.innerHTML = String(html);
  return template.content;
}

const ALLOWED = new Set(
  "P BR HR H1 H2 H3 H4 H5 H6 UL OL LI CODE PRE EM STRONG DEL BLOCKQUOTE TABLE THEAD TBODY TR TH TD A SPAN INPUT".split(
    " ",
  ),
);

function expectHarmless(html: unknown): void {
  for (const element of parse(html).querySelectorAll("*")) {
    expect(ALLOWED).toContain(element.tagName);
    for (const attribute of element.attributes) {
      expect(attribute.name).not.toMatch(/^on|^style$|^src|^srcset$|^formaction$|^action$/i);
    }
    const href = element.getAttribute("href");
    if (href !== null) {
      expect(href).toMatch(/^(https?:\/\/|mailto:)/i);
      expect(element.getAttribute("rel")).toContain("noopener");
      expect(element.getAttribute("target")).toBe("_blank");
    }
  }
}

describe("renderMarkdown", () => {
  it.each(ATTACKS)("makes %j harmless", (attack) => {
    expectHarmless(renderMarkdown(attack));
    expectHarmless(renderMarkdown(`| a |\n|---|\n| ${attack} |\n\n> ${attack}\n\n- ${attack}`));
    expectHarmless(sanitise(attack));
  });

  it("shows markup that an agent wrote as text", () => {
    const shown = parse(renderMarkdown("Use <b>bold</b> and <script>alert(1)</script>."));
    expect(shown.textContent).toContain("<script>alert(1)</script>");
    expect(shown.querySelector("script, b")).toBeNull();
  });

  it("renders what markdown is for", () => {
    const text = "# T\n\n- [x] done\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1 < 2\n```";
    const shown = parse(renderMarkdown(text));
    expect(shown.querySelector("h1")?.textContent).toBe("T");
    expect(shown.querySelector("input[type=checkbox]")?.hasAttribute("disabled")).toBe(true);
    expect(shown.querySelectorAll("td")).toHaveLength(2);
    expect(shown.querySelector("pre code")?.textContent).toBe("x = 1 < 2");
  });

  it("loads no image: it shows its description", () => {
    const shown = parse(renderMarkdown("![a chart](https://tracker.example/p.png)"));
    expect(shown.querySelector("img")).toBeNull();
    expect(shown.textContent).toContain("[image: a chart]");
  });

  it("opens links of other schemes and relative ones nowhere", () => {
    const shown = parse(
      renderMarkdown("[a](javascript:alert(1)) [b](/v1/jobs) [c](https://example.org)"),
    );
    expect([...shown.querySelectorAll("a")].map((link) => link.textContent)).toEqual(["c"]);
  });

  it("does not parse texts that would block the page", () => {
    expect(renderMarkdown("x".repeat(LONGEST + 1))).toBeNull();
  });
});
