// Copies readme, licence and pages into a package when npm packs it. In the repository each has one
// place. Parts that only make sense in the repository are left out: paragraphs between <!--
// repository --> and <!-- /repository -->, and a ([why](…)) that links to a file outside the
// package. Any other link to such a file becomes plain text.
import "./node-version.mjs";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { isMain, SetupError, script } from "./script.mjs";
import { filesBelow, root, stateFolder } from "./workspace.mjs";

const FOR_AUTHORS = /^docs\/(decisions\/|benchmarks\.md|one-acquire\.md|api\.txt)/;
// Matches code, where brackets are not a link, or a link.
const CODE_OR_LINK = /^(```|~~~)[\s\S]*?^\1|`[^`\n]*`|\[([^\]]*)\]\(([^)\s]+)\)/gm;
const OF_THE_REPOSITORY = /^<!-- repository -->\n[\s\S]*?^<!-- \/repository -->\n*/gm;
const BESIDES = /\s\(\[[^\]]*\]\(([^)\s]+)\)\)/g;

/** The pages of each package. Their paths are the same in the repository and in the package. */
export const PAGES = {
  "packages/holdfast": [
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "README.zh-CN.md",
    ...filesBelow("docs").filter((path) => !FOR_AUTHORS.test(path)),
  ],
  "packages/cli": ["LICENSE", "docs/command-line.md"],
};

function copyPages(folder) {
  const pages = PAGES[folder];
  if (pages === undefined) throw new SetupError(`${folder} is no package that has pages`);
  for (const path of filesBelow(`${folder}/docs`)) {
    if (!pages.includes(relative(folder, path))) rmSync(join(root, path));
  }
  for (const page of pages) {
    const text = readFileSync(join(root, page), "utf8");
    write(join(root, folder, page), page.endsWith(".md") ? linkedWithin(pages, page, text) : text);
  }
}

function linkedWithin(pages, page, markdown) {
  const leadsSomewhere = (link) =>
    /^([a-z]+:|#)/i.test(link) ||
    pages.includes(normalize(join(dirname(page), link.split("#")[0])));
  return markdown
    .replace(OF_THE_REPOSITORY, "")
    .replace(BESIDES, (whole, link) => (leadsSomewhere(link) ? whole : ""))
    .replace(CODE_OR_LINK, (whole, _, text, link) =>
      link === undefined || leadsSomewhere(link) ? whole : text,
    );
}

/** Writes a file atomically, because two packings may run at once. */
function write(path, text) {
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  for (const folder of [dirname(path), stateFolder]) mkdirSync(folder, { recursive: true });
  const draft = join(stateFolder, `page.${process.pid}`);
  writeFileSync(draft, text);
  renameSync(draft, path);
}

if (isMain(import.meta.url)) await script(() => copyPages(relative(root, process.cwd())));
