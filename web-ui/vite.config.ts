import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The dashboard. Addresses of its files are relative: the server puts a `<base>` into the page. */
export default defineConfig({
  base: "./",
  plugins: [react(), tailwindcss()],
  build: {
    outDir: "../src/nightherd/web/ui",
    emptyOutDir: true,
    target: "es2024",
    sourcemap: false,
    // No script may be inline, so nothing is preloaded by one either.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
  },
  server: { proxy: { "/v1": "http://localhost:3232" } },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
} as Parameters<typeof defineConfig>[0]);
