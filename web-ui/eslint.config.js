import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  { ignores: ["node_modules", "src/api/schema.d.ts"] },
  js.configs.recommended,
  {
    files: ["**/*.{ts,tsx}"],
    extends: [tseslint.configs.strictTypeChecked, hooks.configs.flat.recommended],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // Numbers in texts are fine; anything else is a mistake.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off",
      // What a request answers with is said where it is made.
      "@typescript-eslint/no-unnecessary-type-parameters": "off",
      "no-restricted-syntax": [
        "error",
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: "Only Markdown.tsx shows HTML, and only what DOMPurify returned.",
        },
      ],
    },
  },
  {
    files: ["public/sw.js"],
    languageOptions: { globals: { self: "readonly", URL: "readonly" } },
  },
  { files: ["src/transcript/Markdown.tsx"], rules: { "no-restricted-syntax": "off" } },
);
