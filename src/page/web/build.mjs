// Builds the page: one HTML file that needs nothing else, and the policy that lets a browser run exactly that.
//
//     node build.mjs [FOLDER]     writes FOLDER/index.html and FOLDER/policy.txt (default: ../built)
//
// The same sources and the same locked packages give the same bytes: no clock, no path and no name of a machine goes in.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { compile, compileModule } from "svelte/compiler";

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, "..", "built");

const svelte = {
    name: "svelte",
    setup(bundler) {
        const options = (path) => ({ filename: relative(here, path), generate: "client", dev: false });
        bundler.onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
            const { js, css, warnings } = compile(await readFile(path, "utf8"), {
                ...options(path),
                css: "external",
                cssHash: ({ css, hash }) => `s${hash(css)}`,
            });
            styles.set(relative(here, path), css?.code ?? "");
            return { contents: js.code, loader: "js", warnings: warnings.map(({ message, code }) => ({ text: `${message} (${code}) in ${path}` })) };
        });
        bundler.onLoad({ filter: /\.svelte\.js$/ }, async ({ path }) => ({
            contents: compileModule(await readFile(path, "utf8"), options(path)).js.code,
            loader: "js",
        }));
    },
};

const styles = new Map();   // of the components, by path, so that their order does not hang on who was read first
const settings = { bundle: true, write: false, minify: true, charset: "utf8", target: ["es2022"], legalComments: "none", logLevel: "warning" };

async function script() {
    const result = await build({
        ...settings,
        absWorkingDir: here,
        entryPoints: ["src/main.js"],
        format: "iife",
        conditions: ["svelte", "browser", "production"],
        define: { "process.env.NODE_ENV": '"production"' },
        plugins: [svelte],
    });
    if (result.warnings.length > 0) throw new Error("the page is built without warnings, or not at all");
    return result.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
}

async function style() {
    const components = [...styles.keys()].sort().map((path) => styles.get(path));
    const result = await build({
        ...settings,
        stdin: { contents: ['@import "./src/style.css";', ...components].join("\n"), loader: "css", resolveDir: here },
        absWorkingDir: here,
    });
    return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const js = await script();
const css = await style();   // after the script: it collects what the components brought
const shell = await readFile(join(here, "src", "index.html"), "utf8");
const html = shell.replace("/*style*/", () => css).replace("/*script*/", () => js);
const policy = [
    "default-src 'none'",
    `script-src ${hash(js)}`,
    `style-src ${hash(css)}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
].join("; ");

await mkdir(folder, { recursive: true });
await writeFile(join(folder, "index.html"), html);
await writeFile(join(folder, "policy.txt"), policy);
console.error(`page: ${html.length} characters`);
