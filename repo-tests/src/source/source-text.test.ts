import assert from "node:assert/strict";
import { test } from "node:test";
import { importsOf, parse } from "./source-text.js";

const bareOf = (text: string) => parse(text).bare;

test("comments are blanked in both texts, strings in the bare one only", () => {
  const text = 'a("x // y"); // z\n/* w */ b';
  assert.equal(parse(text).code, 'a("x // y");     \n        b');
  assert.equal(bareOf(text), 'a("      ");     \n        b');
});

test("code inside a template stays, its text goes", () => {
  const withHole = (before: string, hole: string, after: string) => `${before}$${hole}${after}`;
  const text = withHole("`ab ", "{c({ d: `e` })}", " f` + g");
  assert.equal(bareOf(text), withHole("`   ", "{c({ d: ` ` })}", "  ` + g"));
});

test("a quote in a regular expression opens no string", () => {
  assert.equal(bareOf('x.replace(/["`]/g, y) / z'), "x.replace(/      , y) / z");
  assert.equal(bareOf('a / b; c("d") / 2'), 'a / b; c(" ") / 2');
});

test("every kind of import is found, and none in comments or strings", () => {
  const text = `
    import "side";
    import type { A } from "types"; // import "comment"
    import b, { type C as D } from './two.js';
    export * from "star";
    export { x } from "named";
    const e = await import("dynamic");
    const f = require("required");
    const i = createRequire(import.meta.url)("created");
    const j = await importPeer<Module>("peer");
    const g = 'import "string"';
    export const h = "not-an-import";
  `;
  const found = importsOf(text).map((i) => (i.dynamic ? `${i.specifier}()` : i.specifier));
  const expected = [
    "side",
    "types",
    "./two.js",
    "star",
    "named",
    "dynamic()",
    "required()",
    "created()",
    "peer()",
  ];
  assert.deepEqual(found, expected);
});
