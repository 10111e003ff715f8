/**
 * A TypeScript text with blanks in place of comments (`code`), and of strings as well (`bare`).
 * Both are as long as the original, so a position is the same in all three. The parser is small on
 * purpose: the compiler has none to call, and these tests need no more than this.
 */
export interface SourceText {
  readonly code: string;
  readonly bare: string;
}

export interface Import {
  readonly specifier: string;
  readonly dynamic: boolean;
}

// Comments, strings, the pieces of templates, and what may be a regular expression.
const LEXEME =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'|\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*|[`{}]/g;
const TEMPLATE_PIECE = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(`|\$\{)/y;
// After one of these a slash begins a regular expression; after anything else it divides.
const BEFORE_REGEXP = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|do|else|void))$/;
const IMPORTS =
  /\b(?:import|export)\b(?:[\w\s{},*$]*?\bfrom)?\s*(\()?\s*(["'])(.+?)\2|\b(?:require(?:\.resolve)?|createRequire\([^)]*\)|importPeer(?:<\w+>)?)\s*\(\s*(["'])(.+?)\4/g;

export function parse(text: string): SourceText {
  // By UTF-16 unit, as regular expressions count.
  const code = text.split("");
  const bare = text.split("");
  // For every open brace, whether it is a template's `${`, whose text goes on after it closes.
  const braces: boolean[] = [];
  let at = 0;
  const template = (from: number): number => {
    TEMPLATE_PIECE.lastIndex = from;
    const end = TEMPLATE_PIECE.exec(text);
    if (end === null) return text.length;
    const length = end[0].length - (end[1] ?? "").length;
    blank(bare, from, from + length);
    if (end[1] === "${") braces.push(true);
    return from + end[0].length;
  };
  for (;;) {
    LEXEME.lastIndex = at;
    const found = LEXEME.exec(text);
    if (found === null) return { code: code.join(""), bare: bare.join("") };
    const [lexeme] = found;
    const end = found.index + lexeme.length;
    at = end;
    if (lexeme.startsWith("//") || lexeme.startsWith("/*")) {
      blank(code, found.index, end);
      blank(bare, found.index, end);
    } else if (lexeme === "`") at = template(end);
    else if (lexeme === "{") braces.push(false);
    else if (lexeme === "}") at = braces.pop() === true ? template(end) : end;
    else if (lexeme.startsWith("/")) {
      const before = bare
        .slice(Math.max(0, found.index - 20), found.index)
        .join("")
        .trimEnd();
      if (BEFORE_REGEXP.test(before)) blank(bare, found.index + 1, end);
      else at = found.index + 1;
    } else blank(bare, found.index + 1, end - 1);
  }
}

/** Every import, export … from, import(), importPeer() and require() of a text. */
export function importsOf(text: string): Import[] {
  const { code, bare } = parse(text);
  return [...code.matchAll(IMPORTS)]
    .filter((match) => bare[match.index] === code[match.index])
    .map((match) => ({
      specifier: match[3] ?? match[5] ?? "",
      dynamic: match[1] === "(" || match[5] !== undefined,
    }));
}

/** The line of a place, counted from 1. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

function blank(characters: string[], from: number, to: number): void {
  for (let at = from; at < to; at++) if (characters[at] !== "\n") characters[at] = " ";
}
