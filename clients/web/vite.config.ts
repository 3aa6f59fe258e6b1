import { defineConfig } from "vite";

// HEARTH_URL: the server that `npm run dev` and `npx vite preview` ask.
const server = process.env.HEARTH_URL ?? "http://127.0.0.1:4040";
// The Host stays the page's own: with a session, hearthd refuses an Origin that is not its own.
const proxy = { "^/([a-z]+\\.v1\\.|api/|ready)": { target: server, changeOrigin: false } };

const policy = [
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; worker-src 'self'",
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types hearth",
].join("; ");

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    modulePreload: false,
    // A twentieth smaller than what esbuild makes.
    minify: "terser",
    terserOptions: { module: true, compress: { passes: 3, ecma: 2020 } },
    // Nothing becomes a data: address, which the page's Content-Security-Policy refuses for scripts and styles.
    assetsInlineLimit: 0,
  },
  // The viewer stands beside the page.
  server: { proxy, fs: { allow: [".."] } },
  // What is built, under the policy of hearthd.
  preview: { proxy, headers: { "Content-Security-Policy": policy } },
});
