import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The script and the style of HTML exports: one file each, which the server's side writes into the page. */
export default defineConfig({
  plugins: [react(), tailwindcss()],
  publicDir: false,
  build: {
    outDir: "../src/nightherd/views/export/built",
    emptyOutDir: true,
    target: "es2024",
    sourcemap: false,
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: "src/export/main.tsx",
      output: {
        entryFileNames: "export.js",
        assetFileNames: "export[extname]",
        codeSplitting: false,
      },
    },
  },
});
