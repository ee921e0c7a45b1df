import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// While one works on a page, `npm run dev` serves the sources, and every call goes to a Continuo that runs.
const server = process.env.CONTINUO_URL ?? 'http://127.0.0.1:8787';

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: '../inspector/dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { host: '127.0.0.1', proxy: { '/api': server, '/chat': server, '/metrics': server, '/healthz': server, '/readyz': server } },
});
