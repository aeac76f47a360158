/** Markdown that agents wrote, as HTML that can do nothing: no scripts, no remote images, no markup of its own. */

import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";

const TAGS = [
  "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "code", "pre", "em", "strong",
  "del", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "a", "span", "input",
]; // prettier-ignore
const ATTRIBUTES = [
  "href",
  "title",
  "start",
  "align",
  "type",
  "checked",
  "disabled",
  "target",
  "rel",
  "class",
];
const LINK = /^(?:https?:\/\/|mailto:)/i;

const marked = new Marked({
  gfm: true,
  breaks: false,
  async: false,
  renderer: {
    // Markup in a text is shown as text: what an agent wrote stays visible.
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    image: ({ href, text }: Tokens.Image) => escape(`[image: ${text || href}]`),
    link({ href, tokens }: Tokens.Link) {
      const label = this.parser.parseInline(tokens);
      if (!LINK.test(href)) return `<span title="${escape(href)}">${label}</span>`;
      return `<a href="${escape(href)}" target="_blank" rel="noopener noreferrer nofollow">${label}</a>`;
    },
    code({ text, lang }: Tokens.Code) {
      const language = (lang ?? "").split(/\s/)[0] ?? "";
      const title = language ? ` title="${escape(language)}"` : "";
      return `<pre${title}><code>${escape(text)}</code></pre>\n`;
    },
  },
});

const purifier = DOMPurify();
purifier.addHook("uponSanitizeAttribute", (node, data) => {
  if (data.attrName === "href" && !LINK.test(data.attrValue)) data.keepAttr = false;
  if (data.attrName === "type" && data.attrValue !== "checkbox") data.keepAttr = false;
  if (data.attrName === "class") data.keepAttr = false;
  if (node.nodeName === "INPUT" && data.attrName === "type" && !data.keepAttr) node.remove();
});
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
  if (node.nodeName === "INPUT") node.setAttribute("disabled", "");
});

/** Parsing longer texts would block the page; they are shown as they are. */
export const LONGEST = 200_000;
const CACHED = 400;
const cache = new Map<string, TrustedHTML>();

/** Return safe HTML for `dangerouslySetInnerHTML`; null when the text is too long to parse. */
export function renderMarkdown(text: string): TrustedHTML | null {
  if (text.length > LONGEST) return null;
  const known = cache.get(text);
  if (known !== undefined) return known;
  const html = sanitise(marked.parse(text) as string);
  if (cache.size >= CACHED) cache.delete(cache.keys().next().value ?? "");
  cache.set(text, html);
  return html;
}

/** Return HTML with nothing in it but the tags and attributes of rendered markdown. */
export function sanitise(html: string): TrustedHTML {
  return purifier.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  });
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
